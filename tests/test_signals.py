"""Ctrl-C, SIGTERM and SIGHUP at any moment: one line that says what was kept and how to go on, and no traceback."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from engram.api import recheck
from engram.records import Record
from engram.records.index import being_written
from engram.records.shelf import all_records
from engram.records.state import State

LONG = ["run", "birth.joint", "--scale", "smoke", "--set", "plan.steps=30000"]
# Touches `here` and waits when a module is about to be imported: so a signal comes at a known moment.
WAIT = """
import os, runpy, sys, time
from pathlib import Path
def wait(*arguments):
    Path("here").touch()
    while True:
        time.sleep(0.05)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("WAIT_AT"):
            wait()
sys.meta_path.insert(0, Finder())
"""
START = "runpy.run_module('engram', run_name='__main__', alter_sys=True)\n"
# The first state is saved; whoever saves the second one waits.
SLOW = """
from engram.records import writer
writer.SECONDS_BETWEEN_STATES = 0.0
save, calls = writer.Writer.save, []
def slow(self, *arguments):
    calls.append(1)
    return save(self, *arguments) if len(calls) == 1 else wait()
writer.Writer.save = slow
"""


STARTED = list[subprocess.Popen[str]]()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """What a failed test has started would take both cores from all tests after it."""
    yield
    for run in STARTED:
        run.kill()
    STARTED.clear()


def start(*words: str, at: str = "", code: str = WAIT + START, **options: Any) -> subprocess.Popen[str]:
    env = os.environ | {"WAIT_AT": at} | options.pop("env", {})
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    STARTED.append(subprocess.Popen([sys.executable, "-c", code, *words], text=True, env=env, **pipes))
    return STARTED[-1]


def until(run: subprocess.Popen[str], done: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not done():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def ended(run: subprocess.Popen[str], *codes: int) -> str:
    """The last line that it said, after which there was nothing left to say."""
    out, err = run.communicate(timeout=60)
    assert run.returncode in codes, err
    assert "Traceback" not in out + err
    assert "Error" not in out + err
    *_, last = err.splitlines()
    assert err.count("engram: stopped") == 1, err
    assert last.startswith("engram: stopped"), err
    return last


def begun(home: Path, rows: int = 5, count: int = 1) -> bool:
    """Whether so many runs have more than so many rows, which are not parsed: that would slow the runs down."""
    written = [file.read_bytes().count(b"\n") for file in home.glob("*/rows.jsonl")]
    return len([length for length in written if length > rows]) >= count


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_command_is_being_loaded(home: Path, number: int) -> None:
    run = start("runs", "ls", at="cyclopts")
    until(run, Path("here").exists)
    run.send_signal(number)
    assert "the same command" in ended(run, 128 + number)


MOMENTS = {
    "preparing Specs": (["run", "birth.joint"], "engram.experiments.birth.joint"),
    "ledger": (["ledger", "birth"], "engram.claims.ledger"),
    "runs ls": (["runs", "ls"], "engram.records.index"),
    "verify": (["verify", "birth", "--scale", "smoke"], "engram.experiments.birth.joint"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_outside_the_loop(home: Path, moment: str) -> None:
    words, at = MOMENTS[moment]
    run = start(*words, at=at)
    until(run, Path("here").exists)
    run.send_signal(signal.SIGINT)
    assert "what was saved is kept; the same command" in ended(run, 130)


def test_ctrl_c_while_figures_are_drawn(home: Path) -> None:
    run = start(*LONG[:-1], "plan.steps=3", at="engram.show.save")
    until(run, Path("here").exists)
    run.send_signal(signal.SIGINT)
    assert "all runs are finished and kept; the same command" in ended(run, 130)
    (record,) = all_records(home)
    assert record.finished


def test_a_signal_in_a_place_that_cannot_raise(home: Path) -> None:
    """Python would print a traceback, forget the signal and go on."""
    code = "from engram.signals import listen\nlisten()\nclass A:\n    __del__ = wait\nA()\nprint('went on')\n"
    run = start(code=WAIT + code)
    until(run, Path("here").exists)
    run.send_signal(signal.SIGINT)
    assert "the same command" in ended(run, 130)


def test_a_signal_that_comes_out_as_another_error(home: Path) -> None:
    """As from compiled modules, which turn what interrupts their import into an ImportError."""
    turn = "def wait(wait=wait):\n try:\n  wait()\n except BaseException:\n  raise ImportError('odd')\n"
    run = start("runs", "ls", at="engram.records.index", code=WAIT + turn + START)
    until(run, Path("here").exists)
    run.send_signal(signal.SIGINT)
    assert "the same command" in ended(run, 130)


def test_it_saves_and_resumes_to_the_same_bytes(home: Path) -> None:
    steps, stopped_at = 1000, 0
    run = start(*LONG[:-1], f"plan.steps={steps}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        until(run, lambda at=stopped_at: begun(home, at + 5))
        (record,) = all_records(home)
        run.send_signal(number)
        assert f"saved; resume with: engram runs resume {record.id}" in ended(run, 128 + number)
        assert stopped_at + 5 < State.read(record.folder).step < steps
        stopped_at = State.read(record.folder).step
        run = start("runs", "resume", record.id)
    run.communicate(timeout=120)
    found = recheck(Record(record.folder), steps + 1)
    assert (found["ok"], found["compared"], "to the byte" in found["message"]) == (True, steps + 1, True), found


def test_a_birth_saves_too(home: Path) -> None:
    run = start("birth")
    until(run, lambda: begun(home))
    run.send_signal(signal.SIGTERM)
    (record,) = all_records(home)
    assert f"engram runs resume {record.id}" in ended(run, 143)
    assert State.read(record.folder).step > 5


@pytest.mark.parametrize(
    "command", [["run", "birth.joint"], ["verify", "birth.joint", "--anew"]], ids=["run", "verify"]
)
def test_a_parent_that_is_terminated_leaves_no_workers(home: Path, command: list[str]) -> None:
    more = ["--seeds", "4", "--set", "plan.steps=30000"] if command[0] == "run" else []
    run = start(*command, "--scale", "smoke", *more, start_new_session=True)
    until(run, lambda: begun(home, 2, count=2))
    run.send_signal(signal.SIGTERM)
    assert "resume with: the same command" in ended(run, 143)
    unfinished = [record for record in all_records(home) if record.ended is None]
    assert all((record.folder / "state.safetensors").exists() for record in unfinished)
    assert not any(being_written(record) for record in all_records(home))


def test_the_signal_of_a_terminal_that_is_closed(home: Path) -> None:
    """Nothing can be said any more, and yet everything is saved."""
    master, slave = pty.openpty()
    run = start(*LONG, stdout=slave, stderr=slave, stdin=slave, preexec_fn=_own_terminal, env={"TERM": "xterm"})
    os.close(slave)
    drawn = b""
    while not begun(home):
        drawn += os.read(master, 65536)
    os.close(master)
    assert run.wait(timeout=60) == 129, drawn
    (record,) = all_records(home)
    assert State.read(record.folder).step > 5


def _own_terminal() -> None:
    """As a shell does: a session whose terminal is that of stdin."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_nohup_is_respected(home: Path) -> None:
    run = start(*LONG, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None)
    until(run, lambda: begun(home))
    run.send_signal(signal.SIGHUP)
    (before,) = all_records(home)
    until(run, lambda: begun(home, len(before.rows) + 20))
    run.send_signal(signal.SIGINT)
    ended(run, 130)


def test_the_lab_closes_its_page(home: Path) -> None:
    run = start("lab", "--no-browser", "--json")
    assert run.stdout is not None
    port = int(json.loads(run.stdout.readline())["url"].split(":")[2].split("/")[0])
    until(run, lambda: _answers(port))
    run.send_signal(signal.SIGHUP)
    assert "nothing is being trained" in ended(run, 129)


def _answers(port: int) -> bool:
    """That it listens is not enough: it must be serving."""
    with socket.socket() as asking, suppress(OSError):
        asking.settimeout(5)
        asking.connect(("127.0.0.1", port))
        asking.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        return asking.recv(1) != b""
    return False


def hurry(run: subprocess.Popen[str]) -> None:
    """Twice; two that are alike could become one on their way, and these two are taken in this order."""
    run.send_signal(signal.SIGHUP)
    run.send_signal(signal.SIGINT)


def test_a_second_signal_while_it_saves_says_what_was_kept(home: Path) -> None:
    run = start(*LONG, code=WAIT + SLOW + START)
    until(run, Path("here").exists)
    hurry(run)
    last = ended(run, 130)
    (record,) = all_records(home)
    assert f"run {record.id} is kept up to step {State.read(record.folder).step}" in last
    assert f"engram runs resume {record.id}" in last


def test_a_second_signal_to_a_sweep_whose_workers_hang(home: Path) -> None:
    run = start(*LONG, "--seeds", "2", start_new_session=True)
    until(run, lambda: begun(home, count=2))
    workers = [record.env["sittings"][0]["pid"] for record in all_records(home)]
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    try:
        hurry(run)
        assert "0 of 2 runs are finished" in ended(run, 129, 130)  # both are there when it looks, on a busy machine
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


def test_ctrl_c_at_a_terminal_does_not_reach_the_compiler(home: Path, tmp_path: Path) -> None:
    """A compiler that is stopped would leave the run on the other path, and its last digits differ."""
    compiler = tmp_path / "bin" / "c++"
    compiler.parent.mkdir()
    compiler.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/here\nexec sleep 60\n")
    compiler.chmod(0o755)
    paths = {"PATH": f"{compiler.parent}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    run = start(*LONG, env=paths, start_new_session=True)
    until(run, lambda: Path("here").exists() and Path("here").read_text().strip())
    os.killpg(run.pid, signal.SIGHUP)
    os.killpg(run.pid, signal.SIGINT)
    assert "nothing of run" in ended(run, 130)

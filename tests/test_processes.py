"""Commands as processes: Ctrl-C, a killed parent, two at once, a terminal; nothing is lost, nothing is left behind."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engram.records import Record
from engram.records.index import being_written
from engram.records.shelf import all_records

SMOKE = ["run", "birth.joint", "--scale", "smoke"]


STARTED = list[subprocess.Popen[str]]()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """What a failed test has started would take both cores from all tests after it."""
    yield
    for run in STARTED:
        run.kill()
    STARTED.clear()


def start(*words: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "engram", *words]
    STARTED.append(subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options))
    return STARTED[-1]


def test_help_and_version_come_without_torch() -> None:
    code = "import sys; from engram.cli.main import app; app(['--help'], result_action='return_value'); "
    code += "assert not {'torch', 'numpy', 'matplotlib', 'pydantic'} & set(sys.modules), sorted(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "parent only"])
def test_ctrl_c_with_many_runs_keeps_them_all_and_begins_no_other(home: Path, to_all: bool) -> None:
    run = start(*SMOKE, "--seeds", "4", "--set", "plan.steps=30000", start_new_session=True)
    while len([r for r in all_records(home) if len(r.rows) > 5]) < 2:
        assert run.poll() is None, run.communicate()
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT) if to_all else run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "resume with: the same command" in err
    assert "Traceback" not in err
    assert [(record.folder / "state.safetensors").exists() for record in all_records(home)] == [True, True]


def test_workers_end_with_a_parent_that_was_killed(home: Path) -> None:
    run = start(*SMOKE, "--seeds", "2", "--set", "plan.steps=30000")
    while len([r for r in all_records(home) if len(r.rows) > 5]) < 2:
        assert run.poll() is None, run.communicate()
        time.sleep(0.05)
    run.kill()
    run.communicate()
    limit = time.monotonic() + 30
    while any(being_written(record) for record in all_records(home)):
        assert time.monotonic() < limit, "a worker goes on without its parent"
        time.sleep(0.1)
    assert all((record.folder / "state.safetensors").exists() for record in all_records(home))


def test_a_resumed_run_keeps_its_threads(home: Path) -> None:
    words = [*SMOKE, "--set", "plan.steps=800"]
    run = start(*words)
    while not any(len(record.rows) > 5 for record in all_records(home)):
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    run.communicate()
    (first,) = all_records(home)
    many = start(*words, "--seeds", "2")
    many.communicate()
    assert many.returncode == 0
    assert len({sitting["threads"] for sitting in Record(first.folder).env["sittings"]}) == 1


def test_two_processes_on_one_run(home: Path) -> None:
    first = start(*SMOKE, "--set", "plan.steps=3000")
    while not any(len(record.rows) > 3 for record in all_records(home)):
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    second = start(*SMOKE, "--set", "plan.steps=3000")
    _, err = second.communicate(timeout=60)
    assert (second.returncode, "being written by another process" in err) == (2, True)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 130


@pytest.mark.parametrize("seeds", ["1", "3"])
def test_a_terminal_sees_the_live_view(home: Path, seeds: str) -> None:
    """In a pseudo-terminal the live view draws; elsewhere there are plain lines without escape codes."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "engram", *SMOKE, "--set", "plan.steps=60", "--seeds", seeds]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=slave, env=os.environ | {"TERM": "xterm"})
    os.close(slave)
    drawn = b""
    try:
        while chunk := os.read(master, 4096):
            drawn += chunk
    except OSError:  # the terminal closes with the process
        assert process.wait() == 0
    os.close(master)
    assert (b"in-context accuracy" if seeds == "1" else b"of 3 trainings over") in drawn
    assert b"\x1b[" in drawn

"""Processes that are hit in flight: commands, workers of a sweep, the lab, and a start without a kernel."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from websockets.sync.client import connect

from chaos.workshop import LONG, SMALL, Failed, Verdict, Workshop, judged, refuse_other_result, small, words
from engram import native
from engram.engines.local import Local
from engram.errors import Interrupted
from engram.records import Record
from engram.specs.spec import run_id
from lab import Page, answers, served

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENCE = 120.0  # seconds; a busy machine is no fault


def wait_for(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"waited in vain for {what}")
        time.sleep(0.005)


def engram(*command: str, home: Path, **environment: str) -> subprocess.Popen[str]:
    env = os.environ | {"ENGRAM_HOME": str(home)} | environment
    call = [sys.executable, "-m", "engram", *command]
    return subprocess.Popen(call, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=home)


def rows_in(folder: Path) -> int:
    try:
        return (folder / "rows.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def signal_to_run(shop: Workshop, chance: Random) -> Verdict:
    return _hit(shop, chance, shop.fresh(), words())


def signal_to_resume(shop: Workshop, chance: Random) -> Verdict:
    """The run was stopped before, and is hit again."""
    spec, home = small(steps=LONG), shop.fresh()
    at = chance.randrange(1, LONG // 2)
    try:
        Local(home).run([spec], _stop_at(at))
    except Interrupted:
        return _hit(shop, chance, home, ["runs", "resume", run_id(spec)])
    raise Failed("a Ctrl-C in this process did not stop the run")


def _stop_at(row: int) -> Callable[[object, object], None]:
    """Ctrl-C at a row."""

    def see(spec: object, told: object) -> None:
        if told["step"] == row:  # type: ignore[index]
            os.kill(os.getpid(), signal.SIGINT)

    return see


def _hit(shop: Workshop, chance: Random, home: Path, command: list[str]) -> Verdict:
    """At a random moment: while it starts, or after so many rows."""
    number, spec = chance.choice(SIGNALS), small(steps=LONG)
    folder, early = home / run_id(spec), chance.random() < 0.2
    begun, at = rows_in(folder), chance.randrange(1, LONG - 50)
    run = engram(*command, home=home)
    if early:
        time.sleep(chance.random() * 3)
    else:
        wait_for(lambda: rows_in(folder) >= max(at, begun + 1) or run.poll() is not None, "rows")
    run.send_signal(number)
    _, err = run.communicate(timeout=PATIENCE)
    in_flight = not early and not (folder / "digest.json").exists()
    if in_flight:
        _refuse_silent_end(run.returncode, number, err)
    return judged(shop, spec, home, f"{number.name} to {command[0]} {'at its start' if early else f'at row {at}'}")


def _refuse_silent_end(code: int, number: signal.Signals, err: str) -> None:
    """Whoever can be asked to stop saves, says so in one line, and ends with 128 + the number of the signal."""
    if number == signal.SIGKILL:
        return
    last = err.strip().splitlines()[-1:] or [""]
    if code != 128 + number or not last[0].startswith("engram: ") or "Traceback" in err:
        raise Failed(f"{number.name} ended it with code {code}, and it said {last[0]!r}")


def workers_killed(shop: Workshop, chance: Random) -> Verdict:
    """Another worker takes the run up again."""
    specs, home, at = [small(seed, LONG) for seed in (0, 1)], shop.fresh(), chance.randrange(LONG - 50)
    killed: list[int] = []

    def kill(spec: object, row: object) -> None:
        if row["step"] >= at and not killed:  # type: ignore[index]
            killed.append(chance.choice(_children("engram.engines.worker")))
            os.kill(killed[0], signal.SIGKILL)

    Local(home).run(specs, kill).all_records()
    for spec in specs:
        refuse_other_result(shop, spec, home, threads=1)
    return Verdict(f"a worker killed at row {at}", "survived")


def _children(module: str, home: Path | None = None) -> list[int]:
    """Processes of this module, here or for this home."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode().split("\0")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        ours = parent == os.getpid() if home is None else str(home) in command
        found += [int(folder.name)] if module in command and ours else []
    return found


def trainer_killed(shop: Workshop, chance: Random) -> Verdict:
    home, at = shop.fresh(), chance.randrange(1, 200)
    with served(home) as lab, lab.page() as page:
        run = _start(page)
        page.until(run, at)
        for pid in _children("engram.lab.trainer", home):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not lab.backend.mailbox.has_trainer(), "the trainer's end")
    return judged(shop, small(steps=LONG), home, f"trainer killed at row {at}")


def _start(page: Page) -> str:
    settings = SMALL | {"plan.steps": LONG}
    answer = page.ask("start", preset="birth.joint", seed=0, settings=settings)
    if not answer["ok"] or answer["run"] != run_id(small(steps=LONG)):
        raise Failed(f"the lab did not start the run: {answer}")
    return answer["run"]


def server_killed(shop: Workshop, chance: Random) -> Verdict:
    """The training outlives its server."""
    home, at = shop.fresh(), chance.randrange(1, 100)
    server = engram("lab", "--no-browser", "--json", home=home)
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["url"].replace("http", "ws").replace("/?", "/ws?")
    wait_for(lambda: answers(address), "the lab")
    with connect(address, max_size=None) as ws:
        page = Page(ws)
        run = _start(page)
        page.until(run, at)
    server.kill()
    server.communicate()
    wait_for(lambda: not _children("engram.lab.trainer", home), "the end of the training")
    if not Record(home / run).finished:
        raise Failed("the training ended with its server")
    return judged(shop, small(steps=LONG), home, f"server killed at row {at}")


COMPILER = """#!{python}
import shutil, sys
target = sys.argv[sys.argv.index("-o") + 1]
shutil.copy({library!r}, target) if target.endswith(".so") else open(target, "w").close()
"""


def cold_start(shop: Workshop, chance: Random) -> Verdict:
    """No kernel, a cut one, no compiler, or one that fails. The compiler copies what was compiled before."""
    what, home = chance.choice(["empty cache", "cut kernel", "no compiler", "broken compiler"]), shop.fresh()
    tools, cache = home / "tools", home / "cache"
    tools.mkdir()
    fast = what in ("empty cache", "cut kernel") and _offer_compiler(tools)
    if what == "broken compiler":
        (tools / "c++").write_text(f"#!{sys.executable}\nimport sys\nsys.exit('out of order')\n")
        (tools / "c++").chmod(0o700)
    if what == "cut kernel":
        _run_once(home / "first", tools, cache)
        for library in (cache / "engram" / "kernel").glob("*.so"):
            os.truncate(library, chance.randrange(library.stat().st_size))
    said = _run_once(home / "runs", tools, cache)
    if fast:
        refuse_other_result(shop, small(), home / "runs")
    return Verdict(what, "survived", said)


def _offer_compiler(tools: Path) -> bool:
    """Whether there is a compiler on this machine that the real kernel could be made with."""
    real = next(filter(None, map(shutil.which, native.COMPILERS)), None)
    if real is None:
        return False
    (tools / "c++").write_text(COMPILER.format(python=sys.executable, library=str(native.build_kernel(real))))
    (tools / "c++").chmod(0o700)
    return True


def _run_once(home: Path, tools: Path, cache: Path) -> str:
    home.mkdir()
    run = engram(*words(steps=small().steps), home=home, PATH=str(tools), XDG_CACHE_HOME=str(cache))
    _, err = run.communicate(timeout=PATIENCE)
    if run.returncode != 0 or "Traceback" in err or not Record(home / run_id(small())).finished:
        raise Failed(f"a cold start ended with code {run.returncode}: {err.strip()[-300:]}")
    return err.strip().splitlines()[-1]

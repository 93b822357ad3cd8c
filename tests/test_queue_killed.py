"""The queue as a process: killed at any time it goes on to the same bytes, two of them at once are refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engram.experiments import find
from engram.records import Record
from engram.records.shelf import all_records
from engram.runner.execute import execute
from engram.specs import Spec, Train
from engram.specs.spec import run_id

SEEDS, STEPS = 3, 600
# A little less priority stands for the lowest one, at which tests beside other tests would take minutes.
SCRIPT = f"""
import os
nice = os.nice
os.nice = lambda more: nice({{19: 1}}[more])
from types import ModuleType
import engram.experiments
from engram.__main__ import main
from engram.claims.experiment import Experiment
from test_queue_killed import long_specs
module = ModuleType("long")
module.specs, module.SEEDS = long_specs, {{"smoke": {SEEDS}}}
engram.experiments.matching = lambda names: [Experiment("long", module, "")]
main()
"""


def long_specs(scale: str, seeds: list[int]) -> list[Spec]:
    """birth.joint at smoke scale, but longer."""
    found = find("birth.joint").specs("smoke", seeds)
    plans = [
        spec.plan.model_copy(update={"steps": int(os.environ.get("STEPS", STEPS))})
        for spec in found
        if isinstance(spec, Train)
    ]
    return [spec.model_copy(update={"plan": plan}) for spec, plan in zip(found, plans, strict=True)]


def start(*words: str, steps: int = STEPS) -> subprocess.Popen[str]:
    """`engram queue` with this experiment as its only one."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-c", SCRIPT, "queue", *words, "--scales", "smoke"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "STEPS": str(steps)}
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)


def wait_for_rows(home: Path, queue: subprocess.Popen[str]) -> list[int]:
    """Until two runs have begun; the processes that write them."""
    while len(begun := [record for record in all_records(home) if len(record.rows) > 20]) < 2:
        assert queue.poll() is None, queue.communicate()
        time.sleep(0.05)
    return [record.env["sittings"][-1]["pid"] for record in begun]


@pytest.mark.parametrize("all_at_once", [True, False], ids=["with its workers", "alone"])
def test_a_queue_that_was_killed_goes_on_to_the_same_bytes(home: Path, tmp_path: Path, all_at_once: bool) -> None:
    """Its workers finish their step and save; if they are killed, too, what was saved before counts."""
    first = start("run")
    workers = wait_for_rows(home, first)
    first.kill()
    for worker in workers if all_at_once else ():
        os.kill(worker, signal.SIGKILL)
    first.communicate()
    again = start("run", "--json")
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert json.loads(out)["total"] == {"done": SEEDS, "running": 0, "left": 0, "failed": 0, "hours": 0.0}
    for spec in long_specs("smoke", [*range(SEEDS)]):
        truth = execute(spec, tmp_path / "whole").folder / "rows.jsonl"
        assert (home / run_id(spec) / "rows.jsonl").read_bytes() == truth.read_bytes()
    resumed = [s["from_step"] for r in all_records(home) for s in Record(r.folder).env["sittings"][1:]]
    assert len(resumed) == 2
    assert all_at_once or min(resumed) > 20


def test_one_queue_at_a_time_at_the_lowest_priority_and_ctrl_c_saves(home: Path) -> None:
    long = 100_000  # none of them comes to its end
    first = start("run", steps=long)
    workers = wait_for_rows(home, first)
    lower = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 1)
    assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in (first.pid, *workers)} == {lower}
    second, state = start("run", steps=long), start("state", "--json", steps=long)
    _, err = second.communicate(timeout=60)
    assert (second.returncode, "a queue is running in" in err, err.count("\n")) == (2, True, 1)
    found = json.loads(state.communicate(timeout=60)[0])
    assert (found["is_running"], found["total"]["running"], found["total"]["left"]) == (True, 2, 1)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130, err
    assert "saved; resume with: the same command" in err
    assert [(record.folder / "state.safetensors").exists() for record in all_records(home)] == [True, True]
    out, _ = start("state", steps=long).communicate(timeout=60)
    assert f"{SEEDS} runs: 0 done, 0 running, {SEEDS} left, 0 failed" in " ".join(out.split())
    assert "the queue is not running" in " ".join(out.split())

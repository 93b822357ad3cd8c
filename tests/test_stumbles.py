"""What a newcomer stumbled over at the command line, each with what is said or done instead."""

from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from engram.engines.ahead import ahead
from engram.errors import Interrupted
from engram.experiments import find
from engram.runner.execute import execute
from engram.specs.spec import run_id

Said = Callable[..., tuple[int, str, str]]
SMOKE = ("run", "birth.joint", "--scale", "smoke")
OWN = """from engram import *
from engram import figure


def specs(scale, seeds):
    how = Plan(optimiser=SGD(lr=0.2), steps=3, batch=2)
    return [Train(task=Bigram(K=3, T=16), model=Simplified(d=8), plan=how, seed=seed) for seed in seeds]
"""


def test_what_a_file_imports_from_engram_is_no_hook(home: Path, said: Said) -> None:
    """engram.figure draws an experiment by its name; a file that imports it has not said how its own runs look."""
    Path("own.py").write_text(OWN)
    code, out, err = said("run", "./own.py")
    assert (code, "unexpected" in err) == (0, False), err
    assert "figure  runs/figures/own-quick" in out
    Path("none.py").write_text("from engram import *\nfrom engram import specs\n")
    assert "an experiment needs a function specs(scale, seeds)" in said("run", "./none.py")[2]


def test_a_hook_of_the_file_itself_is_called(home: Path, said: Said) -> None:
    Path("own.py").write_text(OWN + "\n\ndef table(runs):\n    return [{'mine': len(runs)}]\n")
    assert "mine" in said("run", "./own.py")[1]


def stop_after(home: Path, steps: int, of: int) -> None:
    """A run of birth.joint that was stopped."""
    (spec,) = find("birth.joint").specs("smoke", [0])
    spec = spec.model_copy(update={"plan": spec.plan.model_copy(update={"steps": of})})  # type: ignore[union-attr]
    seen = list[int]()
    with pytest.raises(Interrupted):
        execute(spec, home, on_row=lambda row: seen.append(1), stop=lambda: len(seen) >= steps)


def test_a_resumed_run_takes_the_share_of_its_steps_that_is_left(home: Path, said: Said) -> None:
    joint, longer = find("birth.joint"), {"plan.steps": 40}
    fresh = ahead(joint, "smoke", [0], longer, home)
    stop_after(home, 10, of=40)
    (begun,) = [folder for folder in home.iterdir() if folder.is_dir()]
    (begun / "timing.jsonl").write_text('{"seconds": 1000000}\n')  # a machine that was busy says nothing of the rest
    now = ahead(joint, "smoke", [0], longer, home)
    assert (now.begun, now.left) == (1, 0)
    assert fresh.seconds is not None
    assert now.seconds == pytest.approx(fresh.seconds * 0.75)


def test_a_run_that_another_process_writes_is_told_before_anything_else(home: Path, said: Said) -> None:
    stop_after(home, 3, of=12)
    (spec,) = find("birth.joint").specs("smoke", [0])
    with FileLock(home / run_id(spec) / "lock"):
        code, _, err = said(*SMOKE)
        assert code == 2
        assert err == (
            f"engram: run {run_id(spec)} is being written by another process; wait for it, "
            "or use another seed (--seeds)\n"
        )
        others = ahead(find("birth.joint"), "smoke", [0, 1], {}, home)
        assert (others.blocked, others.left) == (None, 1)
        assert "1 being written by another process, 1 to compute" in others.sentence
        assert said("runs", "resume", run_id(spec))[2].endswith("wait for it, or stop it first\n")


def test_several_values_lead_to_a_sweep(home: Path, said: Said) -> None:
    code, _, err = said(*SMOKE, "--set", "task.K=1,3")
    assert (code, err.count("\n")) == (2, 1)
    assert err.endswith("got '1,3'; for several values: engram sweep birth.joint --set task.K=1,3\n")
    err = said("sweep", "birth.joint", "--scale", "smoke", "--set", "model.d=8:32")[2]
    assert err.endswith("got '8:32'; values are separated by commas, as in --set model.d=8,16,32\n")

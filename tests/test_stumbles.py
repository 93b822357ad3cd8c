"""What a newcomer stumbled over at the command line, each with what is said or done instead."""

import errno
import json
import re
from collections.abc import Callable
from math import isnan, log
from pathlib import Path

import pytest
from filelock import FileLock
from rich.console import Console

from engram.claims import Measure
from engram.claims.findings import declared
from engram.engines.ahead import ahead
from engram.errors import EngramError, Interrupted
from engram.experiments import find
from engram.records.about import change, with_note
from engram.records.files import writing_to
from engram.runner.execute import execute
from engram.show.tables import factor, print_rows
from engram.specs.spec import run_id

Said = Callable[..., tuple[int, str, str]]
EXAMPLES = Path(__file__).parents[1] / "examples"
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


def test_a_ratio_of_two_memories_that_are_not_born_is_not_measured(home: Path, said: Said) -> None:
    """At least and at most what stands for both: that is no number."""
    ratio = Measure.over_seeds("log of a over b", [0.0, 0.0], low=0)
    neither = ratio.bounded("≤", 2).bounded("≥", 2)
    assert (isnan(neither.measured), neither.estimate.note, neither.verdict) == (True, "", "inconclusive")
    some = ratio.bounded("≤", 2).bounded("≥", 1)
    assert (some.measured, some.values) == (0.0, (0.0, 0.0))
    code, out, _ = said(*SMOKE, "--set", "task.K=10")
    assert code == 0
    assert "log of birth step of W_K2 over that of W_O2 (recall > 0.5)\n      –  predicted: > 0  not measured\n" in out
    assert "a bound, at most" not in out
    Path("own_claim.py").write_text((EXAMPLES / "own_claim.py").read_text())
    assert "–  predicted: > 0  not measured" in said("run", "./own_claim.py", "--scale", "smoke")[1]


def test_what_is_true_of_all_claims_is_said_once(home: Path, said: Said) -> None:
    out = said(*SMOKE, "--set", "task.K=3")[1]
    words = "this seed at smoke scale, which is too small to decide; fields were set, so that no verdict of the ledger"
    assert " ".join(out.split()).count(words) == 1
    assert "birth.learns  outside the predicted range\n" in out
    plain = " ".join(said(*SMOKE)[1].split())
    assert plain.count("too small to decide") == 1
    assert "birth.learns outside the predicted range; over 10 seeds at quick scale: the claim" in plain


def test_the_logarithm_of_a_ratio_is_followed_by_the_ratio() -> None:
    def ratio(value: float | None, name: str = "log of a over b") -> str:
        return factor({"name": name, "measured": value})

    assert [ratio(log(4)), ratio(log(0.25)), ratio(-0.01), ratio(1e9)] == [" ×4.0", " ×0.25", " ×0.99", " ×1e+304"]
    assert [ratio(None), ratio(1.0, "accuracy")] == ["", ""]


@pytest.fixture
def two_runs(home: Path) -> Path:
    """A run with a note, and another."""
    for seed in (0, 1):
        execute(find("birth.joint").specs("smoke", [seed])[0], home)
    about = home / run_id(find("birth.joint").specs("smoke", [0])[0])
    change(about, lambda now: with_note(now, "the head is born late"))
    return home


def runs(said: Said, *words: str) -> list[str]:
    code, out, err = said("runs", "ls", *words, "--json")
    assert code == 0, err
    return [run["run"][:26] for run in json.loads(out)["runs"]]


def test_runs_are_sorted_and_chosen_by_the_names_of_the_list(two_runs: Path, said: Said) -> None:
    exact = runs(said, "--sort", "accuracy.in_context")
    assert runs(said, "--sort", "accuracy") == runs(said, "--sort", "final") == exact
    assert len(runs(said, "--where", "accuracy > 0")) <= 2
    assert len(runs(said, "--where", "took > 0")) == 2
    assert len(runs(said, "--where", "loss < 1000", "loss>= 0")) == 2
    assert len(runs(said, "--where", "note~Head")) == len(runs(said, "--where", "note ~ born late")) == 1
    assert "is a number" in said("runs", "ls", "--where", "loss~4")[2]
    assert "did you mean" in said("runs", "ls", "--sort", "accuraccy")[2]


def test_names_are_whole_and_numbers_short_where_two_runs_are_compared(two_runs: Path, said: Said) -> None:
    one, other = runs(said)
    code, out, _ = said("runs", "diff", one, other)
    assert code == 0
    assert "\nfinal.recall.W_K1.t<64 " in out
    assert not re.search(r"\d\.0*[1-9]\d{4,}", out)
    assert max(map(len, out.splitlines())) < 200
    console = Console(width=40, record=True, force_terminal=True)
    print_rows(console, [{"field": "final.recall.W_K1.t<64", "a": "some words " * 5, "b": "others " * 9}])
    assert "final.recall.W_K1.t<64" in console.export_text()


def test_a_home_that_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    (tmp_path / "full").write_text("")
    for given in ("full", "full/x"):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ENGRAM_HOME", given)
        code, out, err = said("runs", "ls")
        assert (code, out, err.startswith(f"engram: ENGRAM_HOME: {given} is not a folder; ")) == (2, "", True)


def test_only_a_full_disk_is_told_to_be_full(tmp_path: Path) -> None:
    for number, full in ((errno.ENOSPC, True), (errno.ENOENT, False), (errno.EACCES, False)):
        with pytest.raises(EngramError) as found, writing_to(tmp_path):
            raise OSError(number, "no")
        assert ("free space there" in str(found.value)) is full
        assert "set ENGRAM_HOME to another folder" in str(found.value)


def test_one_finding_is_printed_in_full(home: Path, said: Said) -> None:
    second = declared()[1]
    code, out, _ = said("findings", "2")
    assert (code, out.startswith(f"2. {second.title}\n\n{second.about}")) == (0, True)
    assert "What it means. " in out
    assert "](" not in out
    assert said("findings", second.title[:20].lower())[1] == out
    assert len(json.loads(said("findings", "2", "--json")[1])["findings"]) == 1
    assert said("findings", "99")[:2] == (2, "")
    assert "`engram findings` lists 1 to 13" in said("findings", "zzz")[2]
    assert said("findings")[1].startswith("1. ")


@pytest.mark.parametrize("number", ["10,000", "10_000", "1e4"])
def test_thousands_may_be_parted(number: str, home: Path, said: Said) -> None:
    assert said("predict", "pairs", number) == said("predict", "pairs", "10000")
    assert said("predict", "facts", number) == said("predict", "facts", "10000")


def test_numbers_that_are_none(home: Path, said: Said) -> None:
    assert said("predict", "pairs", "1,5")[2] == "engram: NUMBER: must be a number; got '1,5'\n"
    assert said("predict", "facts", "1.5")[2].endswith("must be a whole number; got '1.5'\n")


def test_a_width_needs_a_unit_and_a_file_its_folder(home: Path, said: Said) -> None:
    err = said("show", "memory.margin", "-o", "f.pdf", "--width", "3.25")[2]
    assert err == "engram: --width 3.25: give a unit, as in 3.25in or 8cm\n"
    Path("figures").mkdir()
    for command in (("show", "memory.margin"), ("report", "last")):
        code, _, err = said(*command, "-o", "figure/deep/x.pdf")
        assert code == 2
        assert err.startswith("engram: -o figure/deep/x.pdf: figure/deep does not exist; did you mean figures? ")
    assert not Path("figure").exists()
    assert said("show", "memory.margin", "-o", "figures/x.csv")[0] == 0

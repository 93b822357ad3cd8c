"""`engram show`, `list` and what `run` says before it begins: nothing is trained to look at what is known."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engram import shown
from engram.claims.experiment import Experiment
from engram.engines.ahead import LONG, Ahead, ahead, cost, in_words
from engram.experiments import find, groups, names, searched
from engram.records.shelf import all_records
from engram.runner.execute import execute
from engram.show import tables
from engram.specs import Train

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than all else."""
    monkeypatch.setattr(shown, "_draw", lambda experiment, runs: [])


def test_show_decides_from_committed_records_and_gives_reasons(home: Path, said: Said, undrawn: None) -> None:
    code, out, _ = said("show", "birth.fig3")
    assert code == 0
    for id, sentence in find("birth.fig3").statements.items():
        assert f"{id}  " in out
        assert sentence in out
    assert "birth.joint-from-thaw  disagrees" in out
    assert "Control: readings of the same runs agree" in " ".join(out.split())
    assert "nothing was computed" in out
    assert all_records(home) == []


def test_a_claim_is_shown_with_its_experiment(home: Path, said: Said, undrawn: None) -> None:
    found = json.loads(said("show", "memory.margin", "--json")[1])
    assert json.loads(said("show", *find("memory.margin").statements, "--json")[1]) == found
    assert (found["experiment"], found["scale"]) == ("memory.margin", "quick")
    assert found["records"]
    assert len(found["seeds"]) == find("memory.margin").least_seeds("quick")
    assert {claim["id"] for claim in found["claims"]} == set(find("memory.margin").statements)


def test_figures_are_drawn_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are drawn again when one is gone."""
    drawn = [Path(path) for path in shown.show("memory.margin").to_json()["figures"]]
    assert {path.suffix for path in drawn} >= {".png", ".svg", ".pdf", ".json"}
    with monkeypatch.context() as patched:
        patched.setattr(shown, "_draw", lambda *_: pytest.fail("drawn again"))
        assert shown.show("memory.margin").figures == drawn
    drawn[0].unlink()
    assert shown.show("memory.margin").figures == drawn
    assert drawn[0].exists()


def test_local_records_at_another_scale(home: Path, said: Said, undrawn: None) -> None:
    code, out, err = said("show", "memory.margin", "--scale", "smoke")
    assert (code, "no record at smoke scale" in err) == (0, True)
    for spec in find("memory.margin").specs("smoke", [0, 1]):
        execute(spec, home)
    code, out, _ = said("show", "memory.margin", "--scale", "smoke")
    assert (code, "at smoke scale, 2 seeds" in out) == (0, True)


OWN = """
from engram import SGD, Bigram, Plan, Simplified, Train

def specs(scale, seeds):
    plan = Plan(optimiser=SGD(lr=0.1), steps=3, batch=2)
    return [Train(task=Bigram(K=2, T=12), model=Simplified(d=8), plan=plan, seed=seed) for seed in seeds]
"""


def test_an_own_file_is_shown_after_it_was_run(home: Path, said: Said) -> None:
    Path("mine.py").write_text(OWN)
    assert "no record" in said("show", "./mine.py")[2]
    code, out, err = said("run", "./mine.py", "--seeds", "2")
    assert (code, "2 runs: 2 to compute; how long is not known" in err) == (0, True), err
    code, out, err = said("run", "./mine.py", "--seeds", "2")
    assert (code, "2 runs: all are here, nothing to compute" in err) == (0, True), err
    code, out, _ = said("show", "./mine.py")
    assert (code, "2 records" in out, "figure  " in out) == (0, True, True)


def test_unknown_names_have_a_hint(home: Path, said: Said) -> None:
    code, out, err = said("show", "birth.joint-from-thw")
    assert (code, out) == (2, "")
    assert "did you mean birth.joint-from-thaw?" in err


def test_a_group_lists_its_experiments(home: Path, said: Said) -> None:
    code, out, err = said("run", "theory")
    assert code == 2
    assert (out, err.count("\n")) == ("", 1)
    assert "run: theory is a group of experiments; name one, as in engram run theory." in err
    assert err.rstrip().endswith(": " + ", ".join(n for n in names() if n.startswith("theory.")))
    assert all_records(home) == []


def test_list_takes_words_and_prints_verdicts(home: Path, said: Said) -> None:
    assert [one.name for one in searched(("birth.fig4",))] == [n for n in names() if n.startswith("birth.fig4")]
    assert {one.name.partition(".")[0] for one in searched(("birth",))} == {"birth"}
    assert "memory.hopfield" in [one.name for one in searched(("hopfield", "1982"))]
    code, out, _ = said("list", "birth.fig3")
    assert code == 0
    assert "    disagrees     It is also faster than each of them counted from its unfreezing." in out
    rows = json.loads(said("list", "birth.fig3", "--json")[1])["experiments"]
    assert rows[0]["verdicts"]["birth.joint-from-thaw"] == "disagrees"
    code, out, err = said("list", "birth.fig3", "elephants")
    assert (code, out, "no experiment speaks of birth.fig3 and elephants" in err) == (2, "", True)
    assert set(groups()) >= {"birth", "memory", "theory"}


def test_what_is_here_and_what_is_left(home: Path) -> None:
    joint = find("birth.joint")
    first = ahead(joint, "smoke", [0, 1], {}, home)
    assert (first.here, first.begun, first.left) == (0, 0, 2)
    execute(joint.specs("smoke", [0])[0], home)
    now = ahead(joint, "smoke", [0, 1], {}, home)
    assert (now.here, now.begun, now.left) == (1, 0, 1)
    assert now.seconds is not None
    assert now.sentence.startswith("2 runs: 1 here already, 1 to compute; ")
    (home / joint.specs("smoke", [1])[0].title).mkdir()
    assert ahead(joint, "smoke", [0, 1], {"task.K": 3}, home).left == 2


def test_time_grows_with_seeds_settings_and_scale(home: Path) -> None:
    joint = find("birth.joint")
    one = ahead(joint, "quick", [0], {}, home).seconds
    assert one is not None
    many = ahead(joint, "quick", range(10000), {}, home)
    assert (many.runs, many.seconds) == (10000, pytest.approx(10000 * one))
    assert ahead(joint, "quick", [0], {"plan.steps": 10**9}, home).seconds > 10**5 * one  # type: ignore[operator]
    assert ahead(joint, "paper", [0], {}, home).seconds > one  # type: ignore[operator]


def test_the_cost_of_runs(tiny: Callable[..., Train]) -> None:
    assert cost(tiny(steps=20)) == 2 * cost(tiny(steps=10))


def test_what_takes_long_is_asked_first(home: Path, said: Said) -> None:
    code, out, err = said("run", "birth.joint", "--seeds", "0-9999")
    assert (code, out) == (2, "")
    assert "run: 10000 runs, about " in err
    assert "Not interactive: add --yes" in err
    assert all_records(home) == []
    assert Ahead(0, 0, 1, LONG + 1).is_long
    assert not Ahead(0, 0, 1, LONG - 1).is_long
    assert Ahead(0, 0, 1000, None).is_long


def test_yes_begins_what_takes_long(home: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    def minutes(self: Experiment, scale: Any) -> float:
        return 1e9

    monkeypatch.setattr(Experiment, "minutes", minutes)
    code, out, err = said("run", "memory.margin", "--scale", "smoke")
    assert (code, "add --yes" in err) == (2, True)
    code, out, err = said("run", "memory.margin", "--scale", "smoke", "--yes")
    assert (code, "record  " in out) == (0, True), err


def test_times_in_words() -> None:
    assert [in_words(seconds) for seconds in (0.2, 30, 119, 7000)] == [
        "less than a second",
        "about 30 s",
        "about 2 min",
        "about 1.9 h",
    ]


def test_a_scale_of_which_some_registered_seeds_are_there_is_drawn_and_not_decided(
    home: Path, said: Said, undrawn: None
) -> None:
    """Committed: one of three seeds at the published sizes."""
    code, out, _ = said("show", "hops.depth", "--scale", "paper")
    words = " ".join(out.split())
    assert (code, "hops.depth this seed: " in words) == (0, True)
    assert "only 1 of 3 registered seeds have ended" in words
    assert "from 4 records at paper scale, 1 seed (10000)" in words
    assert json.loads(said("show", "hops.depth", "--json")[1])["scale"] == "quick"


def test_a_list_of_everything_begins_with_its_groups(home: Path, said: Said) -> None:
    out = said("list")[1]
    assert len(out.splitlines()) < 20
    assert {name.partition(".")[0] for name in names()} <= {line.split()[0] for line in out.splitlines() if line}
    assert "`engram list --all` lists everything" in out
    assert all(name in said("list", "--all")[1] for name in ("birth.joint", "memory.hopfield"))


def test_what_goes_with_a_written_figure_is_its_caption(home: Path, said: Said) -> None:
    out = said("show", "memory.margin", "-o", "one.pdf")[1]
    assert [line.split()[0] for line in out.splitlines()] == ["figure", "caption"]
    assert "must be positive" in said("show", "memory.margin", "--width", "-1in", "-o", "one.pdf")[2]


def test_printed_intervals_of_shares_end_at_one() -> None:
    about = {"measured": 0.97, "interval": [0.93, 1.02], "predicted": [0.5, None], "n": 5, "counts": "seeds"}
    told = [tables.in_words(about | {"name": name, "method": "t", "bound": None})[2] for name in SHARES]
    assert told == ["0.93 … 1", "0.93 … 1", "0.93 … 1.02", "0.93 … 1.02"]


SHARES = ("share of the top head", "layer 1: share of its top head", "log of a step over another", "share of a minus b")

"""Readings of rows by hand, and the ledger's care: no survivors, no verdict on too few seeds."""

import json
import shlex
from collections.abc import Callable, Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram import api
from engram.claims import Claim, Measure
from engram.claims.experiment import Labelled, Runs, unique
from engram.claims.ledger import Entry, Index, entries_of, ledger
from engram.claims.readings import birth, fallen, late_mean, mean_between, mean_difference, reached, value_at
from engram.errors import EngramError
from engram.experiments import find
from engram.experiments.birth import fig3, fig4_left, fig5, fig8, joint
from engram.records import Record
from engram.records.files import line_of, sha256
from engram.records.shelf import all_records
from engram.specs import Spec
from engram.specs.encode import encode
from engram.specs.settings import parse_settings
from engram.specs.spec import run_id

Curves = dict[str, list[float]]  # by column


def record_of(home: Path, seed: int, curves: Curves) -> Record:
    """A finished record of birth.joint at smoke scale with columns made up."""
    return made_up(home, joint.specs("smoke", [seed])["joint"][0], curves)


def made_up(home: Path, spec: Spec, curves: Curves) -> Record:
    """A finished record of any Spec whose rows hold these columns; accuracies differ a little between seeds."""
    own = {"accuracy.in_context": 1 - spec.seed / 1000}
    folder = home / run_id(spec)
    folder.mkdir(parents=True)
    rows = b"".join(
        line_of({"step": s} | {n: float(v[s]) * own.get(n, 1) for n, v in curves.items()})
        for s in range(len(next(iter(curves.values()), [])))
    )
    (folder / "rows.jsonl").write_bytes(rows)
    (folder / "spec.json").write_text(json.dumps(encode(spec)))
    spec_sum = sha256((folder / "spec.json").read_bytes())
    digest = {"end": "finished", "spec.json": spec_sum, "rows.jsonl": sha256(rows)}
    (folder / "digest.json").write_text(json.dumps(digest))
    return Record(folder)


def made_up_runs(home: Path, labelled: Labelled, curves: Callable[[Any], Curves]) -> Runs:
    """Finished records of all these Specs; the label of the first of equal ones says which columns they hold."""
    labels = {run_id(spec): label for label, specs in reversed(list(labelled.items())) for spec in specs}
    index = {run_id(spec): made_up(home, spec, curves(labels[run_id(spec)])) for spec in unique(labelled)}
    return Runs.of(labelled, index, "smoke")


def step_at(step: float, low: float = 0.0, high: float = 1.0) -> list[float]:
    return [high if s >= step else low for s in range(13)]


def test_births_and_means(tmp_path: Path) -> None:
    ramp = [s / 12 for s in range(13)]
    record = record_of(tmp_path, 0, {"a": ramp, "b": [0.5] * 13, "c": step_at(4)})
    assert birth(record, "a") == 7  # 6/12 is not above one half
    assert birth(record, "b") is None
    assert birth(record, "c") == birth(record, "c", 0.9) == 4
    assert late_mean(record, "a", 12, width=3) == pytest.approx(np.mean([10, 11, 12]) / 12)
    assert late_mean(record, "a", 6, width=2) == pytest.approx(np.mean([5, 6]) / 12)
    assert mean_difference(record, "a", "b", 10) == pytest.approx(np.mean([10, 11, 12]) / 12 - 0.5)
    with pytest.raises(EngramError, match="no a at step 400"):
        late_mean(record, "a", 400)


def joint_record(home: Path, seed: int, output: float, key2: float, key1: float) -> Record:
    columns = {"recall.W_O2": output, "recall.W_K2": key2, "recall.W_K1.t<64": key1, "recall.W_K1": 99}
    return record_of(home, seed, {n: step_at(s) for n, s in columns.items()} | {"accuracy.in_context": step_at(0)})


def measured(records: list[Record]) -> dict[str, Sequence[Measure]]:
    return dict(joint.claims(Runs({"joint": records}, "smoke")))


def verdicts(records: list[Record]) -> dict[str, list[str]]:
    return {id: [measure.verdict for measure in measures] for id, measures in measured(records).items()}


def test_output_first_is_decided_by_births(tmp_path: Path) -> None:
    early = [joint_record(tmp_path / "a", s, 2, 5 + s % 2, 6) for s in range(8)]
    assert verdicts(early)["birth.output-first"] == ["agrees"] * 3
    assert measured(early)["birth.output-first"][1].measured == pytest.approx(log(6 / 2))
    late = [joint_record(tmp_path / "b", s, 7, 5, 12) for s in range(8)]
    assert verdicts(late)["birth.output-first"] == ["disagrees", "agrees", "agrees"]
    unborn = [joint_record(tmp_path / "c", s, 2, 5, 6 if s else 99) for s in range(8)]
    assert verdicts(unborn)["birth.output-first"] == ["agrees"] * 3  # a W_K1 that is not born is born later still
    never = [joint_record(tmp_path / "d", s, 99, 5, 6) for s in range(8)]
    assert set(verdicts(never)["birth.output-first"]) == {"disagrees"}
    bounds = [[m.estimate.bound for m in measured(of)["birth.output-first"]] for of in (early, unborn, never)]
    assert bounds == [["", "", ""], ["", "≥", ""], ["≤", "≤", ""]]  # a W_O2 that is not born is born later still


def test_too_few_seeds_do_not_agree() -> None:
    claim = Claim("x", "", "", (Measure.over_seeds("a", [0.93, 0.931, 0.932], low=0.9),))
    exact = Claim("x", "", "", (Measure.exact("a", 0.0, 0.1),))
    assert claim.verdict == "agrees"
    assert [claim.has_seeds(3), claim.has_seeds(5), exact.has_seeds(5)] == [True, False, True]


def test_a_diverged_seed_does_not_leave_the_mean_unseen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough finished seeds and one more that diverged: the ledger names it and cannot agree."""
    monkeypatch.setitem(joint.SIZES, "quick", joint.SIZES["smoke"])
    experiment = find("birth.joint")
    last = experiment.least_seeds("quick")
    for seed in range(last + 1):
        joint_record(home, seed, 2, 5, 6)
    assert {entry.verdict for entry in ledger([experiment], Index.of([home])) if entry.id == "birth.output-first"} == {
        "agrees"
    }
    diverged = next(record for record in all_records(home) if f"-s{last}-" in record.id)
    digest = diverged.folder / "digest.json"
    digest.write_text(digest.read_text().replace("finished", "the loss is not finite at step 9"))
    entries = {entry.id: entry for entry in ledger([experiment], Index.of([home]))}
    assert entries["birth.output-first"].diverged == (last,)
    assert entries["birth.output-first"].verdict == "inconclusive"
    with pytest.raises(EngramError, match="not finite at step 9"):
        api.run("birth.joint", seeds=last + 1)


def test_fields_set_otherwise_are_said(home: Path) -> None:
    claims = api.run("birth.joint", scale="smoke", seeds=2, settings={"task.K": 2}).claims
    assert claims[0]["settings"] == {"task.K": 2}
    assert claims[0]["command"] == "engram run birth.joint --scale smoke --seeds 2 --set task.K=2"


def test_a_command_can_be_typed_as_it_is_printed() -> None:
    """A shell gives back each setting whole: brackets, quotes and blanks are quoted."""
    settings = {"plan.trained": ["W_O2", "it's"], "plan.loss": "all", "plan.frozen_until": {"W_O2": 3}, "task.K": 2}
    entry = Entry("x", "", find("birth.joint"), "smoke", settings=settings)
    words = shlex.split(entry.command)
    assert words[:6] == ["engram", "run", "birth.joint", "--scale", "smoke", "--set"]
    assert parse_settings(tuple(words[6:])) == settings


def test_a_stale_record_is_said_to_be_stale(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = joint_record(home, 0, 2, 5, 6)
    monkeypatch.setattr(type(record.train.model), "revision", 2)
    stale = Record(record.folder)
    assert all(entry.stale for entry in entries_of(find("birth.joint"), Runs({"joint": [stale]}, "smoke")))


def test_first_steps_above_and_below(tmp_path: Path) -> None:
    """A column that falls from 4 to 1 in a straight line, and one that rises: steps that can be read off."""
    record = record_of(tmp_path, 0, {"down": [4 - s / 4 for s in range(13)], "up": [s / 12 for s in range(13)]})
    assert fallen(record, "down", 0.5, 0.0, width=1) == 9  # below 2, not at it
    assert fallen(record, "down", 0.5, 2.0, width=1) == 5
    assert fallen(record, "down", 0.5, 0.0, width=3) == 10  # the mean of three lags by one
    assert reached(record, "up", 0.5, width=1) == 7
    assert np.isnan(reached(record, "up", 2.0))
    assert np.isnan(reached(record, "up", 1.0, width=1))  # at the level, never above it
    assert np.isnan(fallen(record, "down", 0.5, -2.0, width=1))  # it ends at 1, half of its way
    assert np.isnan(fallen(record, "up", 0.5, 0.0))
    assert value_at(record, "up", 3) == pytest.approx(0.25)
    assert mean_between(record, "up", 0.25, 0.75) == pytest.approx(0.5)


SEEDS = range(3)
FIG3 = ("accuracy.in_context", "recall.W_O2", "recall.W_K2", "recall.W_K1.t<64")
NEVER = 99  # a step beyond any of these runs


def decided(experiment: str, runs: Runs) -> dict[str, str]:
    """Verdicts by what is measured."""
    return {measure.name: measure.verdict for claim in find(experiment).claims(runs) for measure in claim.measures}


def only(verdicts: dict[str, str], unreached: str) -> bool:
    """Inconclusive where the measure's name holds this word; agreeing everywhere else."""
    return all(found == ("inconclusive" if unreached in name else "agrees") for name, found in verdicts.items())


def schedules(home: Path, unreached: str) -> Runs:
    """Fig. 3 as published: a mean over ten steps above 0.8 at once if joint, at step 12 if frozen until step 6."""

    def curves(schedule: str) -> Curves:
        memories = dict.fromkeys(("recall.W_K2", "recall.W_K1.t<64"), [0.0] * 13)
        begins = NEVER if schedule == unreached else 0 if schedule == "joint" else 4
        return memories | {"accuracy.in_context": step_at(begins), "recall.W_O2": step_at(0)}

    return made_up_runs(home, find("birth.fig3").labelled("smoke", SEEDS), curves)


@pytest.mark.parametrize("unreached", ["W_O2 frozen", "W_K1, W_K2 frozen", "W_K2 frozen", "W_K1 frozen", "joint"])
def test_a_schedule_that_never_learns_is_not_slower(tmp_path: Path, unreached: str) -> None:
    """Neither a schedule that does not reach accuracy 0.8 nor joint training that does not is a ratio of steps."""
    names = [f": {kind}, from" for kind in fig3.SCHEDULES if kind != "joint"]
    measures = tuple(dict(fig3.claims(schedules(tmp_path, unreached)))["birth.joint-is-faster"])
    assert [m.verdict for m in measures] == [
        "inconclusive" if unreached == "joint" or f": {unreached}, from" == name else "agrees" for name in names
    ]
    assert Claim("birth.joint-is-faster", "", "", measures).verdict == "inconclusive"


BORN = {"K=1 random": 8, "K=5 random": 5, "K=5 fixed, ranks 6–10": 5}  # all others at step 2
BORN_KEY = {"K=1 random": 4, "K=5 random": 9, "K=5 fixed, ranks 6–10": 3}


@pytest.mark.parametrize("unborn", list(fig4_left.DATA))
def test_a_memory_that_is_never_born_is_not_slow(tmp_path: Path, unborn: str) -> None:
    """Fig. 5: a law of data whose memories never reach the level decides nothing that it takes part in."""

    def curves(law: str) -> Curves:
        steps = {fig5.OUTPUT: BORN.get(law, 2), fig5.KEY: BORN_KEY.get(law, 2)}
        return {column: step_at(NEVER if law == unborn else step) for column, step in steps.items()}

    runs = made_up_runs(tmp_path, find("birth.fig5").labelled("smoke", SEEDS), curves)
    assert only(decided("birth.fig5", runs), unborn)


FALLEN = {"K=5 fixed, ranks 1–5": 3, "K=5 fixed, ranks 6–10": 4, "K=1 fixed, most frequent": 5, "K=5 random": 5}


def losses(home: Path, unlearned: str, column: str) -> Runs:
    """Fig. 4 left: the loss in context falls to 0 at a step, the global one below its floor at once; one does not."""

    def curves(label: str | tuple[str, str]) -> Curves:
        if label not in fig4_left.DATA:
            return {"floor": step_at(0, high=2.0)}
        steps = {"loss.in_context": FALLEN.get(str(label), 7), "loss.global": 1}
        steps |= {column: NEVER} if label == unlearned else {}
        lows = {"loss.in_context": 0.0, "loss.global": 1.0}
        return {name: step_at(step, low=4.0, high=lows[name]) for name, step in steps.items()}

    return made_up_runs(home, find("birth.fig4-left").labelled("smoke", SEEDS), curves)


@pytest.mark.parametrize("unlearned", list(fig4_left.DATA))
def test_a_loss_that_never_falls_is_not_learned_later(tmp_path: Path, unlearned: str) -> None:
    """Fig. 4 left: without the fall in context every ratio with this law is unknown, without the global one its own."""
    assert only(decided("birth.fig4-left", losses(tmp_path / "a", unlearned, "loss.in_context")), unlearned)
    verdicts = decided("birth.fig4-left", losses(tmp_path / "b", unlearned, "loss.global"))
    assert only(verdicts, f"{unlearned}: ")


def everything_trained(home: Path, unborn: str) -> Runs:
    """Fig. 10 with accuracy 1 and memories born at steps 1, 3 and 4, but for one."""
    births = {"recall.W_O2": 1, "recall.W_K2": 3, "recall.W_K1.t<64": 4} | {unborn: NEVER}
    columns = {name: step_at(step) for name, step in births.items()} | {"accuracy.in_context": step_at(0)}
    return made_up_runs(home, find("birth.fig10").labelled("smoke", SEEDS), lambda label: columns)


def test_an_order_of_births_needs_births(tmp_path: Path) -> None:
    """Fig. 10: an unborn key memory is not born later than W_O2, and nothing is later than a W_O2 that is not born."""
    cases = {"none": [], "recall.W_K2": [1], "recall.W_K1.t<64": [2], "recall.W_O2": [1, 2]}
    for unborn, unknown in cases.items():
        verdicts = list(decided("birth.fig10", everything_trained(tmp_path / unborn, unborn)).values())
        assert verdicts == ["inconclusive" if i in unknown else "agrees" for i in range(3)]


def without(runs: Runs, *labels: Any) -> Runs:
    return Runs({label: records for label, records in runs.items() if label not in labels}, runs.scale)


def test_a_label_that_is_missing_is_named(tmp_path: Path) -> None:
    """Claims that ask for a kind of training that is not there say which one, and which are."""
    joint_only = Runs({"joint": schedules(tmp_path / "3", "none")["joint"]}, "smoke")
    with pytest.raises(EngramError, match=r"^no record has the label 'W_O2 frozen'; the labels are 'joint'$"):
        list(fig3.claims(joint_only))
    four_laws = without(losses(tmp_path / "4", "none", ""), "K=5 fixed, ranks 1–5")
    with pytest.raises(EngramError, match="'K=5 fixed, ranks 1–5'; the labels are 'K=1 fixed, most frequent'"):
        list(fig4_left.claims(four_laws))


def test_a_field_set_otherwise_leaves_the_label(tmp_path: Path) -> None:
    """Widths that are all the same are still told apart as those of the experiment, and so are its schedules."""
    narrow = api.labelled_specs(find("birth.fig8"), "smoke", [0], {"model.d": 16})
    runs = made_up_runs(tmp_path / "8", narrow, lambda label: {fig8.RECALL: step_at(1)})
    assert runs["fixed", 32] == runs["fixed", 128]
    assert "tuned: mean recall up to step 2, d=128 minus d=32" in decided("birth.fig8", runs)
    early = api.labelled_specs(find("birth.fig3"), "smoke", SEEDS, {"plan.frozen_until": {"W_O2": 3, "W_K1": 3}})
    runs = made_up_runs(tmp_path / "3", early, lambda label: dict.fromkeys(FIG3, step_at(0)))
    assert [name for name in decided("birth.fig3", runs) if "from step 3" in name] == [
        f"log of steps to accuracy 0.8: {name}, from step 3, over joint" for name in fig3.SCHEDULES if name != "joint"
    ]


def test_the_rate_that_the_tuning_seeds_choose_must_have_run(tmp_path: Path) -> None:
    """Fig. 8: the reported seeds run at the best rate of the tuning seeds, and these are not reported."""

    def curves(label: tuple[Any, ...]) -> Curves:
        return {fig8.RECALL: step_at(1 if label[-1] == 3.2 else 2)}

    runs = made_up_runs(tmp_path, find("birth.fig8").labelled("smoke", [0, *fig8.TUNING_SEEDS]), curves)
    assert fig8.tuning(runs, 32, 4) == pytest.approx({3.2: 12 / 13, 12.8: 11 / 13})
    assert [r.train.seed for r in fig8.at_tuned_rate(runs, 32, 4)] == [0]
    assert {r.train.plan.optimiser.lr for r in fig8.at_tuned_rate(runs, 32, 4)} == {3.2}
    with pytest.raises(
        EngramError, match=r"d=32: the tuning seeds choose the rate 3\.2, but the others ran at {12\.8}"
    ):
        fig8.at_tuned_rate(without(runs, ("tuned", 32, 4, 3.2)), 32, 4)
    with pytest.raises(EngramError, match=r"^no record has the label \('tuning', 32, 4, 12\.8\)"):
        fig8.at_tuned_rate(without(runs, ("tuning", 32, 4, 12.8)), 32, 4)

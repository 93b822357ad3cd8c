"""What the page says an intervention would do is what the fork does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engram.errors import EngramError
from engram.lab.effects import steered_model
from engram.lab.inquiries import Inquiries
from engram.lab.pictures import predictions
from engram.lab.protocol import Circuit, Effect
from engram.lab.sources import weights_of
from engram.lab.watched_run import WatchedRun
from engram.learning import SGD, Plan
from engram.models.factual import Factual
from engram.records.fork import steered
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Ablate, Event, Noise, Reset, Truncate
from engram.specs.patch import Rescale, RescaleHead
from engram.tasks.batch import marks_of
from engram.tasks.facts import Facts
from lab import MINE, SCALE, Page, Served, own_run

Tiny = Callable[..., Train]
DONE: list[tuple[str, dict[str, Any], Event]] = [
    ("ablate", {"layer": 1, "head": 1}, Ablate(step=4, layer=1)),
    ("rescale", {"matrix": "W_K2", "factor": 0.0}, Rescale(step=4, matrix="W_K2", factor=0.0)),
    ("rescalehead", {"layer": 2, "head": 1, "factor": 3.0}, RescaleHead(step=4, layer=2, factor=3.0)),
    ("truncate", {"matrix": "W_O2", "rank": 2}, Truncate(step=4, matrix="W_O2", rank=2)),
    ("noise", {"matrix": "W_O2", "size": 0.5}, Noise(step=4, matrix="W_O2", size=0.5)),
    ("reset", {"matrix": "W_O2", "to": 0}, Reset(step=4, matrix="W_O2")),
]


def effect(home: Path, run: str, kind: str, fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    asked = Effect(t="effect", id=1, run=run, step=4, kind=kind, fields=fields, **more)
    return Inquiries(home, lambda run: {}).answer(asked)


@pytest.mark.parametrize(("kind", "fields", "event"), DONE, ids=[kind for kind, _, _ in DONE])
def test_what_is_shown_is_what_a_fork_does(
    kind: str, fields: dict[str, Any], event: Event, home: Path, tiny: Tiny
) -> None:
    record = execute(tiny(), home)
    fork = execute(steered(record.train, event), home).model(4)
    run = WatchedRun(record.folder)
    run.look()
    shown = steered_model(run, 4, kind, fields, weights_of(home))
    assert all(torch.equal(shown.after.weights[name], fork.weights[name]) for name in fork.weights)
    assert shown.sentence == event.sentence
    told = effect(home, record.id, kind, fields)
    sequence = record.train.task.sample(record.train.seed, 2**41, 1).tokens[0]
    for model, moment in ((record.model(4), "before"), (fork, "after")):
        said = predictions(record.train, model, sequence, ())
        place = told["here"]["position"]
        assert told["here"]["right"][moment] == pytest.approx(said["probabilities"][place], abs=2e-5)
        p = model(sequence).logits[0, place].softmax(dim=0)
        marks = marks_of(record.train.task)
        for one in told["here"]["moved"]:
            assert one[moment] == pytest.approx(float(p[marks.index(one["mark"])]), abs=1e-5)
    json.dumps(told, allow_nan=False)


def test_a_patch_is_shown_as_the_fork_has_it(home: Path, tiny: Tiny) -> None:
    record, other = execute(tiny(), home), execute(tiny(seed=7), home)
    told = effect(home, record.id, "patch", {"matrix": "W_O2", "source": other.id, "of": 6})
    assert told["what"] == f"patch W_O2 from step 6 of {other.id}"
    assert told["unseen"]["loss"][0] != told["unseen"]["loss"][1]
    assert told["unseen"]["loss"][0] == Inquiries(home, lambda run: {}).answer(
        Circuit(t="circuit", id=2, run=record.id, step=4)
    )["loss"]  # fmt: skip


def test_a_position_of_a_sequence_is_chosen(home: Path, tiny: Tiny) -> None:
    record = execute(tiny(), home)
    cut = {"matrix": "W_O2", "factor": 0.0}
    told = effect(home, record.id, "rescale", cut, tokens=(1, 2, 3), position=1)
    assert told["here"]["position"] == 1
    assert told["here"]["right"]["mark"] == marks_of(record.train.task)[3]
    last = effect(home, record.id, "rescale", cut, tokens=(1, 2, 3), position=2)
    assert last["here"]["right"] is None, "nobody knows what comes after a sequence"
    with pytest.raises(EngramError, match="position: this sequence has the positions 0 to 2; got 3"):
        effect(home, record.id, "rescale", cut, tokens=(1, 2, 3), position=3)
    with pytest.raises(EngramError, match="each in 0"):
        effect(home, record.id, "rescale", cut, tokens=(1, 2, 999))


REFUSED = [
    ("freeze", {"matrix": "W_O2"}, "this changes no weights"),
    ("rescale", {"matrix": "W_V1", "factor": 0.5}, "^matrix: 'W_V1' is not trained"),
    ("rescalehead", {"layer": 1, "factor": 0.5}, "^head: 1.1 writes through W_O1, which is not trained"),
    ("nothing", {}, "kind: no intervention 'nothing'"),
    ("rescale", {"matrix": "W_O2"}, "factor"),
    ("patch", {"matrix": "W_O2", "source": "../x", "of": 1}, "source: run: '../x' is no name of a run"),
]


@pytest.mark.parametrize(("kind", "fields", "why"), REFUSED)
def test_what_the_trainer_would_refuse_is_refused(
    kind: str, fields: dict[str, Any], why: str, home: Path, tiny: Tiny
) -> None:
    record = execute(tiny(), home)
    with pytest.raises(EngramError, match=why):
        effect(home, record.id, kind, fields)


def test_nothing_is_changed_by_looking(home: Path, tiny: Tiny) -> None:
    record = execute(tiny(), home)
    files = {path: path.read_bytes() for path in record.folder.rglob("*") if path.is_file()}
    inquiries = Inquiries(home, lambda run: {})
    asked = Effect(t="effect", id=1, run=record.id, step=4, kind="rescale", fields={"matrix": "W_O2", "factor": 0.0})
    first, again = inquiries.answer(asked), inquiries.answer(asked)
    assert {n: v for n, v in first.items() if n != "seconds"} == {n: v for n, v in again.items() if n != "seconds"}
    assert {path: path.read_bytes() for path in record.folder.rglob("*") if path.is_file()} == files


def test_a_fact_is_asked_by_a_prompt_of_the_task(home: Path) -> None:
    task = Facts(S=6, R=3, D=4)
    plan = Plan(optimiser=SGD(lr=0.1), steps=4, batch=8, loss="answer", trained=("W_V", "W_O", "W_I", "b", "W_F"))
    spec = Train(task=task, model=Factual(d=8, heads=2, d_h=4, m=12, answers=task.answers), plan=plan)
    record = execute(spec, home)
    told = effect(home, record.id, "rescale", {"matrix": "W_F", "factor": 0.0})
    assert told["here"]["right"]["mark"] in task.names_of(0)["answer"]
    with pytest.raises(EngramError, match="a prompt about a fact is one of the task's own"):
        effect(home, record.id, "rescale", {"matrix": "W_F", "factor": 0.0}, tokens=(1, 2))


def ask(page: Page, t: str, **fields: Any) -> dict[str, Any]:
    page.say(t, id=7, **fields)
    while (told := page.hear_any()).get("id") != 7:
        pass
    return told


def test_pages_ask_over_the_wire(lab: Served, page: Page) -> None:
    run = page.start(**{"plan.steps": 10})
    page.finish(run)
    for t, more in (
        ("circuit", {}),
        ("spectrum", {}),
        ("spectra", {"matrix": "W_O2"}),
        ("cut", {"matrix": "W_O2", "shares": [0.5]}),
        ("effect", {"kind": "rescale", "fields": {"matrix": "W_O2", "factor": 0}}),
    ):
        told = ask(page, t, run=run, step=8, **more)
        assert (told["t"], told["run"], told["step"]) == (t, run, 8)
        refused = ask(page, t, run="../../etc", **more)
        assert not refused["ok"]
        assert "no name of a run" in refused["error"]
    page.say("cut", id=8, run=run, matrix="W_O2", shares=[2])
    assert "shares" in page.hear("error")["message"]


def test_an_intervention_of_ones_own_is_seen_before_it_is_done(lab: Served, page: Page) -> None:
    run = own_run(lab.home, MINE + SCALE, **{"plan.steps": 10})
    assert page.ask("start", run=run)["ok"]
    page.finish(run)
    told = ask(page, "effect", run=run, step=8, kind="scale", fields={"matrix": "W_O2", "factor": 3})
    assert told["what"] == "scale W_O2 by 3"

"""Laws of interventions: a training that is steered by hand is the training that its Spec describes."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engram.errors import EngramError, Interrupted
from engram.learning import SGD, Adam, Plan
from engram.models import Layer, Simplified, Transformer
from engram.records import Record
from engram.records.fork import fork, steered
from engram.runner.execute import execute, fresh_rows, path_of
from engram.specs import Train
from engram.specs.encode import build
from engram.specs.events import Ablate, Change, Event, Freeze, Noise, Reset, Restore, Truncate, Unfreeze
from engram.specs.patch import Patch, Rescale, RescaleHead, carried
from engram.specs.rewrite import Rewrite
from engram.specs.spec import run_id
from engram.tasks import Bigram

STEPS = 14
EVENTS: dict[str, tuple[Event, ...]] = {
    "freeze": (Freeze(step=5, matrix="W_O2"),),
    "thaw": (Freeze(step=3, matrix="W_O2"), Unfreeze(step=8, matrix="W_O2")),
    "reset": (Reset(step=7, matrix="W_K2", to=3),),  # no step that is kept anyway
    "reset to the beginning": (Reset(step=7, matrix="W_K2"),),
    "truncate": (Truncate(step=6, matrix="W_O2", rank=2),),
    "noise twice": (Noise(step=6, matrix="W_K1", size=0.5), Noise(step=6, matrix="W_K1", size=0.5)),
    "ablate": (Ablate(step=4, layer=1), Restore(step=9, layer=1)),
    "lr": (Change(step=5, field="plan.optimiser.lr", value=0.02),),
    "K": (Change(step=5, field="task.K", value=2), Change(step=5, field="task.triggers", value="fixed")),
    "against the plan": (Freeze(step=2, matrix="W_K1"), Unfreeze(step=6, matrix="W_K1"), Freeze(step=9, matrix="W_K1")),
    "rewrite": (Rewrite(step=6, matrix="W_O2", fact="a → b", u=(0.1,) * 12, k=(*(0.2,) * 11, -1.0)),),
    "rescale": (Rescale(step=6, matrix="W_K2", factor=-0.5), Rescale(step=9, matrix="W_O2", factor=0.0)),
    "rescale a head": (RescaleHead(step=6, layer=2, factor=0.25),),
    "patch": (Patch(step=6, matrix="W_O2", source="another", of=3, **carried(torch.eye(12))),),
    "first and last": (Truncate(step=0, matrix="W_O2", rank=3), Noise(step=STEPS, matrix="W_O2", size=1.0)),
}


def spec_of(*events: Event, adam: bool = False, model: Any = None) -> Train:
    optimiser = Adam(lr=0.01) if adam else SGD(lr=0.2, momentum=0.9, weight_decay=1e-3)
    plan = Plan(optimiser=optimiser, steps=STEPS, batch=4, probe_every=2, attention_every=4)
    return Train(task=Bigram(K=3, T=20), model=model or Simplified(d=12), plan=plan, events=events)


def stopped_at(spec: Train, home: Path, step: int, keep: bool = False) -> Record:
    """A run that was interrupted before this step; with `keep` its states stay."""
    now = [0]

    def see(row: dict[str, Any]) -> None:
        now[0] = row["step"] + 1

    with pytest.raises(Interrupted):
        execute(
            spec,
            home,
            on_row=see,
            stop=lambda: now[0] >= step,
            on_moment=lambda writer, moment: writer.checkpoint(moment.step, moment.state) if keep else None,
        )
    return Record(home / run_id(spec))


def rows_at_once(spec: Train) -> list[dict[str, Any]]:
    from engram.records.files import line_of

    return [json.loads(line_of(row)) for row in fresh_rows(spec, path_of(spec))]


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
@pytest.mark.parametrize("adam", [False, True], ids=["sgd", "adam"])
def test_a_training_that_is_cut_at_its_events_has_the_rows_of_one_that_is_not(
    events: tuple[Event, ...], adam: bool, home: Path
) -> None:
    spec = spec_of(*events, adam=adam)
    for step in sorted({*(event.step for event in events), 10} - {0}):
        stopped_at(spec, home, step)
    cut = execute(spec, home)
    assert cut.rows == rows_at_once(spec)


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
@pytest.mark.parametrize("keep", [False, True], ids=["where it stands", "from a stored state"])
def test_a_fork_has_the_rows_of_a_training_that_was_so_from_the_beginning(
    events: tuple[Event, ...], keep: bool, home: Path
) -> None:
    parent = stopped_at(spec_of(), home, STEPS if keep else max(1, events[0].step), keep)
    for event in events:
        parent = Record(fork(parent, steered(parent.train, event)))
        assert execute(parent.train, home).finished
    assert parent.train == spec_of(*events)
    assert parent.rows == rows_at_once(spec_of(*events))


def test_a_fork_takes_over_what_it_shares_and_no_more(home: Path) -> None:
    parent = stopped_at(spec_of(), home, 12, keep=True)
    spec = steered(parent.train, Freeze(step=5, matrix="W_O2"))
    child = Record(fork(parent, spec))
    assert child.rows == parent.rows[:5]
    assert child.snapshot_steps == [0, 1, 2, 4]
    assert fork(parent, spec) == child.folder, "forked twice: the same run"
    again = steered(execute(spec, home).train, Freeze(step=3, matrix="W_K1"))
    assert again.events == (Freeze(step=3, matrix="W_K1"),), "what came later is no part of the new branch"


def weights_of(spec: Train, home: Path, step: int) -> dict[str, torch.Tensor]:
    return execute(spec, home).snapshot(step)


def test_what_events_do(home: Path) -> None:
    plain = weights_of(spec_of(), home, 8)
    frozen = spec_of(Freeze(step=4, matrix="W_O2"), Unfreeze(step=8, matrix="W_O2"))
    assert torch.equal(weights_of(frozen, home, 4)["W_O2"], weights_of(frozen, home, 8)["W_O2"])
    assert not torch.equal(weights_of(frozen, home, 8)["W_O2"], weights_of(frozen, home, STEPS)["W_O2"])
    assert not torch.equal(weights_of(frozen, home, 8)["W_K2"], plain["W_K2"]), "the others feel it"
    low = weights_of(spec_of(Truncate(step=8, matrix="W_O2", rank=2)), home, 8)
    assert torch.linalg.matrix_rank(low["W_O2"], rtol=1e-5) == 2
    back = spec_of(Reset(step=8, matrix="W_K2", to=4))
    assert torch.equal(weights_of(back, home, 8)["W_K2"], weights_of(back, home, 4)["W_K2"])
    size = plain["W_K1"].square().mean().sqrt()
    loud = weights_of(spec_of(Noise(step=8, matrix="W_K1", size=0.5)), home, 8)["W_K1"] - plain["W_K1"]
    assert loud.square().mean().sqrt() == pytest.approx(float(0.5 * size), rel=0.2)


def test_an_ablated_head_writes_nothing_until_it_is_restored(home: Path) -> None:
    model = Transformer(d=12, layers=(Layer(heads=2), Layer(heads=3)))
    spec = spec_of(Ablate(step=4, layer=2, head=3), Restore(step=8, layer=2, head=3), model=model)
    record = execute(spec, home)
    tokens = spec.task.sample(0, 0, 1).tokens
    kept = record.snapshot(4)
    assert record.model(4).weights["W_O2"][:, 8:].abs().max() == 0
    assert record.model(4).weights["W_O2"][:, :8].abs().min() > 0
    assert kept["W_O2"][:, 8:].abs().max() > 0, "its weights are still there"
    assert torch.equal(record.model(8).weights["W_O2"], record.snapshot(8)["W_O2"])
    assert record.model(4)(tokens).written["head2"].abs().max() > 0


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((Freeze(step=3, matrix="W_V2"),), "events.0: matrix: 'W_V2' is not trained; did you .*: W_K1, W_K2, W_O2"),
        ((Freeze(step=3, matrix="W_O2"), Freeze(step=4, matrix="W_O2")), "W_O2 is frozen already at step 4"),
        ((Unfreeze(step=3, matrix="W_O2"),), "W_O2 is not frozen at step 3"),
        ((Freeze(step=4, matrix="W_O2"), Freeze(step=3, matrix="W_K1")), "in the order of their steps; got steps 4, 3"),
        ((Freeze(step=STEPS + 1, matrix="W_O2"),), f"step {STEPS + 1} is beyond the end, {STEPS}"),
        ((Reset(step=3, matrix="W_O2", to=3),), "to: step 3 is not before step 3"),
        ((Ablate(step=3, layer=3),), r"no head \(3, 1\); allowed: \(1, 1\), \(2, 1\)"),
        ((Restore(step=3, layer=2),), r"head: \(2, 1\) is not ablated"),
        ((Change(step=3, field="model.d", value=64),), "model.d cannot change on the way; allowed: plan.batch"),
        ((Change(step=3, field="task.T", value=64),), "task.T: the vocabulary and the length"),
        ((Change(step=3, field="task.K", value=0),), "task.K: must be positive; got 0"),
        ((Change(step=3, field="task.k", value=2),), "no such field in Bigram; did you mean K"),
    ],
)
def test_events_that_make_no_sense_are_refused_with_a_reason(events: tuple[Event, ...], message: str) -> None:
    fields = {name: getattr(spec_of(), name) for name in Train.model_fields} | {"events": events}
    with pytest.raises(EngramError, match=message):
        build(Train, fields)

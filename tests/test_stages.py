"""Laws of a curriculum: stages of a plan are the same steps done one stage after the other, however they are cut."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engram.errors import EngramError
from engram.lab.watched_run import WatchedRun
from engram.learning import SGD, Adam, Plan, Stage
from engram.records import Record
from engram.records.fork import fork, steered
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import build, decode, digest_of, encode
from engram.specs.events import Change, Event, Freeze, Noise, Unfreeze
from engram.specs.settings import parse_settings, with_settings
from engram.tasks import Bigram, NoisyRecall
from test_steering import STEPS, rows_at_once, spec_of, stopped_at


class Unread(Bigram, name="tests.stages.Unread"):
    @property
    def groups(self) -> tuple[str, ...]:
        return ("in_context",)


EASY, HARD = Bigram(K=1, T=16, triggers="fixed"), Bigram(K=2, T=20)
CURRICULUM = (
    Stage(step=0, task=EASY, trained=("W_O2",)),
    Stage(step=4, trained=("W_K1", "W_K2")),
    Stage(step=9, task=HARD),
)


def staged(*stages: Stage, events: tuple[Event, ...] = (), adam: bool = False) -> Train:
    return with_plan(spec_of(adam=adam), events, stages=stages)


def with_plan(spec: Train, events: tuple[Event, ...] = (), **fields: Any) -> Train:
    plan = build(Plan, {name: getattr(spec.plan, name) for name in Plan.model_fields} | fields)
    others = {name: getattr(spec, name) for name in Train.model_fields}
    return build(Train, others | {"plan": plan, "events": events})  # type: ignore[return-value]


@pytest.mark.parametrize("adam", [False, True], ids=["sgd", "adam"])
def test_a_stage_that_is_the_whole_changes_nothing(adam: bool) -> None:
    plain = spec_of(adam=adam)
    for stage in (Stage(step=0), Stage(step=0, task=plain.task, trained=plain.plan.trained), Stage(step=6)):
        assert rows_at_once(staged(stage, adam=adam)) == rows_at_once(plain)


def test_a_plan_without_stages_is_the_plan_that_it_was() -> None:
    assert "stages" not in encode(spec_of(), defaults=False)["plan"]
    assert digest_of(spec_of()) == digest_of(staged())


@pytest.mark.parametrize("adam", [False, True], ids=["sgd", "adam"])
def test_stages_are_the_steps_that_events_can_do(adam: bool) -> None:
    """Freeze and Change are the same by hand; the averages of a matrix that rests are those of one that is frozen."""
    by_hand = (
        Change(step=5, field="task.K", value=2),
        Change(step=5, field="task.triggers", value="fixed"),
        Freeze(step=5, matrix="W_O2"),
    )
    stage = Stage(step=5, task=Bigram(K=2, T=20, triggers="fixed"), trained=("W_K1", "W_K2"))
    assert rows_at_once(staged(stage, adam=adam)) == rows_at_once(spec_of(*by_hand, adam=adam))


def test_each_stage_has_its_task_and_what_it_trains() -> None:
    spec = staged(*CURRICULUM)
    assert [spec.at(step).task for step in (0, 3, 4, 8, 9, STEPS)] == [EASY, EASY, spec.task, spec.task, HARD, HARD]
    trained = [spec.at(step).plan.trained_at(step) for step in (0, 4, 9)]
    assert trained == [("W_O2",), ("W_K1", "W_K2"), ("W_K1", "W_K2", "W_O2")]
    waiting = with_plan(spec, frozen_until={"W_K2": 6})
    assert [waiting.at(step).plan.trained_at(step) for step in (5, 6)] == [("W_K1",), ("W_K1", "W_K2")]


@pytest.mark.parametrize("adam", [False, True], ids=["sgd", "adam"])
def test_a_matrix_that_rests_keeps_its_values_and_its_averages(adam: bool, home: Path) -> None:
    """Neither momentum nor decay moves it; in a later stage it goes on with the averages that it had."""
    spec, kept = staged(*CURRICULUM, adam=adam), {}
    execute(
        spec,
        home,
        on_moment=lambda writer, moment: kept.update({moment.step: {k: v.clone() for k, v in moment.state.items()}}),
    )
    of = [key for key in kept[4] if key.endswith("/W_O2")]
    assert len(of) == (4 if adam else 2), "values and averages"
    assert all(torch.equal(kept[4][key], kept[9][key]) for key in of)
    assert not any(torch.equal(kept[0 if key.startswith("weights") else 1][key], kept[4][key]) for key in of)
    assert not any(torch.equal(kept[9][key], kept[10][key]) for key in of)
    assert not any(key.endswith("/W_K1") for key in kept[4] if not key.startswith("weights")), "none before it moves"
    if adam:
        assert float(kept[10]["step/W_O2"]) == 5, "four steps in the first stage, one in the last"


@pytest.mark.parametrize("adam", [False, True], ids=["sgd", "adam"])
def test_a_curriculum_that_is_cut_anywhere_has_the_rows_of_one_that_is_not(adam: bool, home: Path) -> None:
    spec = staged(*CURRICULUM, adam=adam)
    for step in (2, 4, 5, 9, 12):
        stopped_at(spec, home, step)
    record = execute(spec, home)
    assert record.rows == rows_at_once(spec)
    assert {4, 9} <= set(record.snapshot_steps), "the weights with which a stage begins are kept"


@pytest.mark.parametrize(
    "event",
    [
        Noise(step=4, matrix="W_O2", size=0.5),
        Freeze(step=10, matrix="W_K1"),
        Unfreeze(step=6, matrix="W_O2"),
        Change(step=6, field="task.K", value=3),
        Change(step=2, field="plan.optimiser.lr", value=0.02),
    ],
    ids=lambda event: type(event).__name__,
)
@pytest.mark.parametrize("keep", [False, True], ids=["where it stands", "from a stored state"])
def test_a_fork_in_a_stage_has_the_rows_of_a_training_that_was_so_from_the_beginning(
    event: Event, keep: bool, home: Path
) -> None:
    parent = stopped_at(staged(*CURRICULUM), home, STEPS if keep else event.step, keep)
    child = Record(fork(parent, steered(parent.train, event)))
    assert execute(child.train, home).finished
    assert Record(child.folder).rows == rows_at_once(staged(*CURRICULUM, events=(event,)))
    assert Record(child.folder).rows[: event.step] == rows_at_once(staged(*CURRICULUM))[: event.step]


def test_what_a_person_does_holds_in_later_stages() -> None:
    """A change is one from then on, and a matrix that was thawed by hand does not rest again."""
    spec = staged(*CURRICULUM, events=(Change(step=6, field="task.K", value=3), Unfreeze(step=6, matrix="W_O2")))
    assert [spec.at(step).task.K for step in (0, 5, 6, 9)] == [1, 3, 3, 3]  # type: ignore[attr-defined]
    assert [staged(*CURRICULUM).at(step).task.K for step in (0, 5, 6, 9)] == [1, 3, 3, 2]  # type: ignore[attr-defined]
    assert spec.at(6).plan.trained_at(6) == ("W_K1", "W_K2", "W_O2")


def test_an_event_that_a_later_stage_cannot_have_is_refused() -> None:
    events = (Change(step=2, field="task.offset", value=3),)
    with pytest.raises(EngramError, match=r"events\.0: .*offset"):
        staged(Stage(step=0, task=EASY), Stage(step=4, task=Bigram(K=65, T=20, triggers="fixed")), events=events)


def test_stages_survive_json_and_settings() -> None:
    spec = staged(*CURRICULUM)
    assert decode(encode(spec)) == spec
    assert digest_of(decode(encode(spec, defaults=False))) == digest_of(spec)
    shorter = with_settings(spec, parse_settings(("plan.stages.1.step=6", "plan.stages.0.task.K=2")))
    assert [(stage.step, stage.task) for stage in shorter.plan.stages[:2]] == [
        (0, Bigram(K=2, T=16, triggers="fixed")),
        (6, None),
    ]


def test_the_lab_is_told_where_stages_begin(home: Path) -> None:
    record = execute(staged(*CURRICULUM), home)
    told = WatchedRun(record.folder).about["stages"]
    assert told == [{"step": stage.step, "what": stage.sentence} for stage in CURRICULUM]


def test_stages_in_words() -> None:
    assert [stage.sentence for stage in CURRICULUM] == [
        "train on Bigram (K=1, T=16, triggers=fixed), only W_O2",
        "train on the task itself, only W_K1, W_K2",
        "train on Bigram (K=2, T=20)",
    ]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ((Stage(step=4), Stage(step=4)), "plan.stages: .* in the order of their steps; got steps 4, 4"),
        ((Stage(step=STEPS + 1),), f"plan.stages.0: step {STEPS + 1} is beyond the end, {STEPS}"),
        ((Stage(step=2, trained=("W_V2",)),), "plan.stages.0: 'W_V2' is not trained; did .*: W_K1, W_K2, W_O2"),
        ((Stage.model_construct(step=2, trained=()),), "plan.stages.0.trained: nothing to train"),
        ((Stage(step=2, task=Bigram(K=3, T=21)),), "plan.stages.0: .* must be a frozen task with N=65 and T ≤ 20"),
        ((Stage(step=2, task=NoisyRecall(T=20, noise="extra")),), "plan.stages.0: .* must be a frozen task with N=65"),
        ((Stage(step=2, task=Unread(K=3, T=20)),), "plan.stages.0: its task must have .* groups .*: in_context, first"),
    ],
)  # fmt: skip
def test_stages_that_make_no_sense_are_refused_in_one_line(stages: tuple[Stage, ...], message: str) -> None:
    with pytest.raises(EngramError, match=message) as error:
        with_settings(spec_of(), {"plan.stages": [encode(stage) for stage in stages]})
    assert "\n" not in str(error.value)


def test_a_schedule_is_piecewise_linear_and_constant_outside() -> None:
    plan = Plan(optimiser=Adam(lr=0.5), steps=20, batch=1, rate=((4, 0.0), (8, 1.0), (18, 0.5)))
    assert [plan.lr_at(step) for step in (0, 4, 5, 8, 13, 18, 20)] == pytest.approx(
        [0, 0, 0.125, 0.5, 0.375, 0.25, 0.25]
    )
    assert Plan(optimiser=SGD(lr=0.3), steps=2, batch=1).lr_at(1) == 0.3

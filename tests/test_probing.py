"""Which probes a training asks for, when, and the columns they become: tests on other tasks, and last looks."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram.errors import EngramError
from engram.learning.plan import SGD, Plan
from engram.learning.reference import gradients
from engram.models import Layer, Simplified, Transformer
from engram.probes.attribution import preference, shares
from engram.probes.edges import masses
from engram.probes.probe import UNSEEN, known_probes, probes_by_name
from engram.probes.recall import diagonals
from engram.probes.transfer import SEQUENCES as TEST_SEQUENCES
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import build, decode, digest_of, encode
from engram.specs.settings import with_settings
from engram.tasks import Batch, Bigram, Task
from engram.values import Value

MATRICES = (Layer(), Layer(feed_forward="linear"))
Tiny = Callable[..., Train]


def unseen(task: Task, seed: int, sequences: int) -> Batch:
    return task.sample(seed, UNSEEN, sequences)


class Constant(Value):
    """A task that is no bigram task."""

    N: int = 65
    T: int = 24
    groups: tuple[str, ...] = ("in_context",)

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        tokens = np.zeros((batch, self.T), dtype=np.int64)
        return Batch(tokens, tokens, {"in_context": np.ones_like(tokens, dtype=bool)})


ONE, TWO = Transformer(d=16, layers=(Layer(),)), Transformer(d=16)
UNSAID = Plan(optimiser=SGD(lr=1.0), steps=1, batch=1)
INVALID: list[tuple[dict[str, Any], tuple[str, ...], str]] = [
    ({"model": ONE}, ("masses",), "plan.at_end: 'masses' needs the task Bigram and a model with two layers"),
    ({"model": TWO, "task": Constant()}, ("effects",), "plan.at_end: 'effects' needs the task Bigram"),
    ({}, ("diagonals", "effects"), "plan.at_end: 'effects' needs a Transformer"),
    ({"tests": {"other": Constant(N=66)}}, (), "tests: 'other' must be a frozen task with N=65 and T ≤ 24"),
    ({"tests": {"long": Bigram(K=3, T=25)}}, (), "tests: 'long' must be a frozen task with N=65 and T ≤ 24"),
    ({"tests": {"x": Constant(groups=("all_of_it",))}}, (), "tests.x: unknown 'in_context'; .*allowed: all_of_it, all"),
    ({"tests": {"x": 3}}, (), "tests.x: int is not a task: it lacks N"),
    ({"model": Constant()}, (), "model: Constant is not a model: it lacks names, init, forward"),
    (
        {"task": Constant(groups=("last",)), "plan": UNSAID},
        (),
        r"plan.loss: unknown 'in_context', which Plan\(loss=…\) has unless said; allowed: last, all",
    ),
    ({"tests": {"a.b": Bigram(K=3, T=24)}}, (), "tests: 'a.b' is not a name; use letters, digits, _, -"),
    ({"tests": {"": Bigram(K=3, T=24)}}, (), "tests: '' is not a name"),
    ({"tests": {"revision": Bigram(K=3, T=24)}}, (), "tests: 'revision' is not a name; .*but not class, file"),
]


@pytest.mark.parametrize(("change", "at_end", "says"), INVALID, ids=[says for *_, says in INVALID])
def test_what_does_not_suit_is_told_in_one_line(
    tiny: Tiny, change: dict[str, Any], at_end: tuple[str, ...], says: str
) -> None:
    plan = tiny().plan.model_copy(update={"trained": ("U",), "at_end": at_end})
    with pytest.raises(EngramError, match=f"^{says}") as error:
        build(Train, {"task": tiny().task, "model": tiny().model, "plan": plan} | change)
    assert "\n" not in str(error.value)


def test_a_training_without_tests_is_the_run_it_was(tiny: Tiny) -> None:
    """Neither field enters the identity while it is empty, and a Spec stored without them reads as the same."""
    spec, stored = tiny(), encode(tiny())
    del stored["tests"], stored["plan"]["at_end"]
    assert decode(stored) == spec
    own = {name: value for name, value in encode(spec, defaults=False).items() if name != "tests"}
    own["plan"] = {name: value for name, value in own["plan"].items() if name != "at_end"}
    text = json.dumps(own, sort_keys=True, separators=(",", ":"))
    assert digest_of(spec) == hashlib.sha256(text.encode()).hexdigest()
    asked = [spec.model_copy(update={"tests": {"other": Bigram(T=24)}}), tiny(at_end=("masses",))]
    assert len({digest_of(spec), *map(digest_of, asked)}) == 3


@pytest.mark.parametrize("path", ["auto", "reference"])
@pytest.mark.parametrize("model", [Simplified(d=16), Transformer(d=16, layers=MATRICES, norm="pre")])
def test_rows_hold_what_the_model_does_on_other_tasks(
    tiny: Tiny, tmp_path: Path, model: Simplified | Transformer, path: str
) -> None:
    """When attention is probed and at the end: what the reference path says of unseen sequences, shorter ones too."""
    tests = {"bigram": Bigram(K=3, T=24, outputs="bigram"), "short": Bigram(K=2, T=11)}
    spec = tiny(attention_every=4).model_copy(update={"model": model, "tests": tests})
    record = execute(spec, tmp_path, path=path)
    columns = {f"test.{name}.{kind}.in_context" for name in tests for kind in ("loss", "accuracy")}
    assert {name for name in record.columns if name.startswith("test.")} == columns
    assert [columns <= set(row) for row in record.rows] == [step in (0, 4, 6) for step in range(7)]
    for step in (0, 4, 6):
        for name, task in tests.items():
            batch = unseen(task, spec.seed, TEST_SEQUENCES)
            expected = gradients(model, record.model(step).weights, batch, "in_context", ()).metrics
            for kind in ("loss.in_context", "accuracy.in_context"):
                assert record.rows[step][f"test.{name}.{kind}"] == pytest.approx(expected[kind], rel=1e-5)
    assert not np.array_equal(unseen(spec.task, 0, 4).tokens, spec.task.sample(0, 0, 4).tokens)


def test_every_last_look_has_its_probe(tiny: Tiny) -> None:
    """The names that a plan may ask for are those of the probes; each once."""
    assert {"attribution", "diagonals", "effects", "masses", "preference", "previous_masses"} <= set(probes_by_name())
    named = [kind.called for kind in known_probes() if kind.called]
    assert len(set(named)) == len(named)
    with pytest.raises(EngramError, match=r"^plan\.at_end: unknown 'mases'; did you mean masses\?"):
        with_settings(tiny(), {"plan.at_end": ["mases"]})
    with pytest.raises(EngramError, match=r"^plan\.at_end: a probe is named twice"):
        with_settings(tiny(), {"plan.at_end": ["masses", "diagonals", "masses"]})


def test_a_last_look_is_in_the_last_row(tiny: Tiny, tmp_path: Path) -> None:
    """And it says what the probe says of the stored weights."""
    looks = ("attribution", "diagonals", "preference", "masses")
    record = execute(tiny(at_end=looks, attention_every=2), tmp_path)
    kinds = ("attribution.", "diagonal.", "preference.", "mass.")
    assert [any(name.startswith(kinds) for name in row) for row in record.rows] == [False] * 6 + [True]
    model, task, batch = record.model(), Bigram(K=3, T=24), unseen(Bigram(K=3, T=24), 0, 64)
    assert isinstance(model.architecture, Simplified)
    expected = diagonals(record.memories(), record.memories(0), task) | masses(model(batch.tokens), batch)
    expected |= preference(model.architecture, model.weights, task, batch)
    expected |= shares(model.architecture, model.weights, batch)
    assert {name: record.last(name) for name in expected} == pytest.approx(expected, rel=1e-4, abs=1e-6, nan_ok=True)


def test_groups_are_measured_as_often_as_the_plan_says(tiny: Tiny, tmp_path: Path) -> None:
    """A sparse record says the numbers of the whole one, and its loss at every step."""
    whole = execute(tiny(steps=7), tmp_path / "a").table
    sparse = execute(tiny(steps=7, groups_every=3), tmp_path / "b").table
    assert np.array_equal(whole.dense("loss"), sparse.dense("loss"))
    kept = np.isfinite(sparse.dense("accuracy.in_context"))
    assert np.flatnonzero(kept).tolist() == [0, 3, 6, 7]
    assert np.array_equal(whole.dense("accuracy.in_context")[kept], sparse.dense("accuracy.in_context")[kept])

"""A matrix read as a memory: every model that says what its memories are gets probes, pictures and editing from it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.lab import pictures
from engram.learning import Adam, Plan
from engram.memory import Linear
from engram.memory.stored import Labels, Stored
from engram.models import Layer, Model, Simplified, Transformer
from engram.models.construct import construct_with_mlp, plant
from engram.models.factual import Factual, LinearHead, SoftmaxHead
from engram.models.memories import heads_of, memories_of
from engram.records.weights import initial_weights
from engram.specs import Train
from engram.tasks import Bigram
from engram.tasks.facts import Facts
from memories import by_name, few, seeds

TASK, FACTS = Bigram(K=3, T=12), Facts(S=4, R=3, D=2, T=8)
NORMED = Transformer(d=8, hidden=16, layers=(Layer(heads=2), Layer(feed_forward="mlp")), norm="pre")
MODELS: list[tuple[Any, Any]] = [
    (Simplified(d=8, blocks=("attention", "attention", "linear")), TASK),
    (Transformer(d=8, layers=(Layer(heads=2, feed_forward="linear"),)), TASK),
    (NORMED, TASK),
    (Factual(d=8, heads=2, d_h=4, m=6, answers=FACTS.answers), FACTS),
    (LinearHead(answers=FACTS.answers), FACTS),
    (SoftmaxHead(answers=FACTS.answers, d=8), FACTS),
]


@pytest.mark.parametrize(("model", "task"), MODELS, ids=[type(model).__name__ for model, _ in MODELS])
def test_every_memory_is_whole(model: Any, task: Any) -> None:
    """Scores have a row for each question and a column for each answer, both named; what is right is among them."""
    found = memories_of(model, model.init(task.N, task.T, 0), task)
    assert found
    for memory in found:
        shape = (len(memory.labels.rows), len(memory.labels.columns))
        assert memory.scores().shape == shape
        if memory.has_answers:
            assert 0 <= int(memory.answers.min()) <= int(memory.answers.max()) < shape[1]
            assert 0 <= memory.recall() <= 1
        elif memory.right is not None:
            sums = memory.right.sum(1)
            assert torch.allclose(sums[sums > 0], torch.ones_like(sums[sums > 0]))


@pytest.mark.parametrize(("model", "task"), MODELS, ids=[type(model).__name__ for model, _ in MODELS])
def test_the_lab_draws_every_memory_of_every_model(model: Any, task: Any) -> None:
    trained = tuple(name for name in model.names if name not in ("E", "P", "U"))
    loss = "answer" if task is FACTS else "in_context"
    plan = Plan(optimiser=Adam(lr=0.01), steps=1, batch=2, trained=trained, loss=loss)
    spec = Train(task=task, model=model, plan=plan)
    whole = Model(model, initial_weights(spec))
    known = [entry for entry in pictures.catalogue(spec) if entry["name"].startswith("memory:")]
    assert [entry["name"] for entry in known] == [f"memory:{m.name}" for m in memories_of(model, whole.weights, task)]
    for entry in known:
        drawn = pictures.picture(spec, whole, entry["name"], pictures.own_sequence(spec), ())
        assert drawn.shape == (len(entry["rows"]), len(entry["columns"]))


def test_heads_are_what_a_model_says() -> None:
    assert heads_of(Simplified()) == ((1, 1), (2, 1))
    assert heads_of(NORMED) == ((1, 1), (1, 2), (2, 1))
    assert heads_of(MODELS[3][0]) == ()  # `heads` of Factual is a number


def test_the_facts_of_a_construction_are_recalled_by_its_matrix() -> None:
    """The MLP of Theorem 4 stores facts: asked with prompts without noise, W_F alone recalls them all."""
    task = Facts(S=4, R=4, D=2)
    built = construct_with_mlp(task.book(0), d=256, d_h=64, members=2, m=4096, seed=0)
    W_F = by_name(built.model, built.weights, task)["W_F"]
    assert W_F.recall() == 1.0
    assert len(W_F.labels.rows) == 16
    assert W_F.labels.rows[5] == "s1 r1"


def planted() -> Stored:
    model = Simplified(d=256, scale="unit")
    return by_name(model, plant(model, TASK.N, TASK.T, 0, 10.0), TASK)["W_K2"]


def test_a_matrix_of_a_model_is_a_linear_memory() -> None:
    """The same scores; margin, edit, truncate and quantise work on trained weights."""
    stored = planted()
    memory = Linear.of(stored)
    assert torch.allclose(memory.scores(), stored.scores().double(), atol=1e-4)
    assert memory.accuracy() == stored.recall() == 1.0
    assert memory.margin() == pytest.approx(float(stored.margins().min()), abs=1e-4)
    assert torch.allclose(memory.spectrum(), stored.spectrum().double(), atol=1e-4)
    assert memory.quantise(bits=4).accuracy() == 1.0
    rank = Linear.of(stored.truncate(8)).W - memory.truncate(8).W
    assert float(rank.abs().max()) < 1e-5
    a, b = stored.labels.rows[3], stored.labels.columns[9]
    edit = memory.edit(a, b)
    assert memory.recall(a) == b
    assert (edit.key, edit.new) == (a, b)


def test_a_rectangular_matrix_is_a_linear_memory_too() -> None:
    model, task = MODELS[3]
    for stored in memories_of(model, model.init(task.N, task.T, 0), task):
        memory = Linear.of(stored)
        assert torch.allclose(memory.scores(memory.keys), stored.scores().double(), atol=1e-5)
        assert memory.truncate(1).W.shape == stored.W.shape


def test_what_reads_through_a_norm_is_not_linear() -> None:
    found = by_name(NORMED, NORMED.init(TASK.N, TASK.T, 0), TASK)
    with pytest.raises(EngramError, match="W_F: a layer norm lies between"):
        Linear.of(found["W_F"])


Sizes = st.integers(2, 7)


def drawn(n: int, d: int, seed: int, asking: Any) -> Stored:
    draw = np.random.default_rng(seed)
    keys, W, values = (torch.from_numpy(draw.normal(size=shape)) for shape in ((n, d), (d + 1, d), (n, d + 1)))
    names = tuple(map(str, range(n)))
    right = torch.from_numpy(draw.permutation(n))
    return Stored("W", keys, W, values, right, Labels("W", "asks", "answers", names, names), asking=asking)


@few
@given(n=Sizes, d=Sizes, seed=seeds, asking=st.sampled_from(["keys", "values"]))
def test_laws_of_a_stored_memory(n: int, d: int, seed: int, asking: Any) -> None:
    memory = drawn(n, d, seed, asking)
    scores = memory.scores()
    table = torch.einsum("vo,oi,ki->kv", memory.values, memory.W, memory.keys)
    assert torch.allclose(scores, table if asking == "keys" else table.T)
    assert torch.equal(memory.strengths(), scores[torch.arange(n), memory.answers])
    assert memory.recall() == pytest.approx(float((memory.margins() > 0).double().mean()))
    assert torch.allclose(memory.truncate(d).scores(), scores)
    assert torch.allclose(Linear.of(memory).scores(), scores)
    everyone = memory.only(torch.arange(n))
    assert torch.equal(everyone.scores(), scores)
    assert everyone.recall() == memory.recall()


def test_a_part_without_its_answers_is_refused(tiny: Callable[..., Train]) -> None:
    memory = drawn(4, 3, 0, "keys")
    alone = int((memory.answers != torch.arange(4)).nonzero()[0])
    with pytest.raises(EngramError, match="not among the answers that are left"):
        memory.only(torch.tensor([alone]))

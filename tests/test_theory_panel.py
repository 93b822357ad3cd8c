"""The panel of theory: its sizes are those of `engram predict`, its first step is what autograd says."""

import json
import shlex
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import torch

from engram.errors import EngramError
from engram.facts.learn import spec_of_file
from engram.lab import first_step
from engram.lab.pictures import levels
from engram.lab.theory import TheoryReader, stages
from engram.lab.theory_messages import Levels, Predict, Theory
from engram.learning import SGD, Adam, Plan, reference
from engram.models import Simplified
from engram.models.factual import LinearHead
from engram.records.weights import initial_weights
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.spec import run_id
from engram.tasks import Bigram
from engram.tasks.facts import Facts
from engram.theory.fact_flow import escape_time, relation_rate
from lab import Page, Served

COUNTRIES = Path(__file__).parent.parent / "examples" / "countries.csv"
Said = Callable[..., tuple[int, str, str]]


WIDTHS = {"birth": 16, "facts": 24}


def born(blocks: Any = ("attention", "attention", "linear"), **plan: Any) -> Train:
    model = Simplified(d=16, blocks=blocks)
    optimiser = plan.pop("optimiser", SGD(lr=0.2, momentum=0.9))
    return Train(task=Bigram(K=3, T=24), model=model, plan=Plan(optimiser=optimiser, steps=3, batch=8, **plan))


def asked(page: Page, t: str, **fields: Any) -> dict[str, Any]:
    page.say(t, id=5, **fields)
    return page.hear(t)


# Sizes


@pytest.mark.parametrize("kind", ["birth", "facts"])
@pytest.mark.parametrize("sizes", [{}, {"d": 256, "store": 900}])
def test_sizes_are_those_of_the_command_line(
    kind: str, sizes: dict[str, int], lab: Served, page: Page, said: Said
) -> None:
    spec = born() if kind == "birth" else spec_of_file(COUNTRIES, steps=2, width=24)
    execute(spec, lab.home)
    told = asked(page, "predict", run=run_id(spec), **sizes)
    assert [one["memory"] for one in told["capacity"]] == (["linear", "hebb"] if kind == "birth" else ["facts"])
    for memory in told["capacity"]:
        for key in ("fits", "holds", "twice", "needs"):
            answer = dict(memory[key])
            _, *words = shlex.split(answer.pop("command"))
            (expected,) = json.loads(said(*words, "--json")[1])["predictions"]
            assert answer == expected
        width = sizes.get("d", WIDTHS[kind])
        assert f"--width {2 * width}" in memory["twice"]["command"]


def test_a_slider_is_answered_while_it_moves(tmp_path: Path) -> None:
    """Nothing is drawn or trained for it: the calculator reads its table once."""
    spec = born()
    execute(spec, tmp_path)
    reader = TheoryReader(tmp_path)
    told = reader.predict(Predict(t="predict", id=1, run=run_id(spec), lr=0.4))
    assert (told["at"]["lr"], told["at"]["d"], told["first_step"]) == (0.4, 16, None)
    own = reader.theory(Theory(t="theory", id=1, run=run_id(spec)))["first_step"]["rows"][0]["size"]
    assert reader.predict(Predict(t="predict", id=1, run=run_id(spec), lr=0.4))["first_step"] == pytest.approx(2 * own)


def test_other_triggers_have_other_floors(tmp_path: Path) -> None:
    spec = born(loss="all")
    execute(spec, tmp_path)
    reader = TheoryReader(tmp_path)
    two, three = (reader.levels(Levels(t="levels", id=1, run=run_id(spec), K=K))["levels"] for K in (2, 3))
    assert two != three
    assert three == levels(spec)
    facts = spec_of_file(COUNTRIES, steps=2, width=8)
    execute(facts, tmp_path)
    with pytest.raises(EngramError, match="no triggers"):
        reader.levels(Levels(t="levels", id=1, run=run_id(facts), K=3))


def test_tasks_that_have_drawn_their_tables_are_compared_by_their_fields() -> None:
    """Two branches of a training ask for the same levels."""
    one, same, other = Bigram(K=3, T=24), Bigram(K=3, T=24), Bigram(K=2, T=24)
    for task in (one, same, other):
        task.sample(0, 0, 2)
    assert one == same != other
    assert len({one, same, other}) == 2


# The first step


@pytest.mark.parametrize("blocks", [("attention", "attention"), ("attention", "attention", "linear")])
@pytest.mark.parametrize("loss", ["in_context", "all"])
def test_lemma_1_on_the_batch_is_what_autograd_says(blocks: Any, loss: str) -> None:
    spec = born(blocks, loss=loss, dtype="float64")
    w = initial_weights(spec)
    batch = spec.task.sample(spec.seed, 0, spec.plan.batch)
    expected = reference.gradients(spec.model, w, batch, loss, ("W_O2",)).gradients["W_O2"]
    assert torch.allclose(first_step.gradients(spec, w)["exact"], expected, atol=1e-12)


def test_the_uniform_step_is_what_autograd_says_of_uniform_attention() -> None:
    """Logits U W x with x = (1/t) Σ W_V2 e, at W = 0, where p̂ is uniform."""
    spec = born(dtype="float64")
    w = initial_weights(spec)
    batch = spec.task.sample(spec.seed, 0, spec.plan.batch)
    W = torch.zeros_like(w["W_O2"], requires_grad=True)
    tokens, targets = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
    x = torch.stack([(w["E"][tokens[:, : t + 1]] @ w["W_V2"].T).mean(1) for t in range(tokens.shape[1])], dim=1)
    read = torch.from_numpy(batch.groups["in_context"])
    loss = torch.nn.functional.cross_entropy((x @ W.T @ w["U"].T)[read], targets[read])
    (expected,) = torch.autograd.grad(loss, W)
    assert torch.allclose(first_step.gradients(spec, w)["uniform"], expected, atol=1e-12)


def test_the_step_of_plain_descent_is_the_gradient(tmp_path: Path) -> None:
    spec = born()
    execute(spec, tmp_path)
    told = TheoryReader(tmp_path).theory(Theory(t="theory", id=1, run=run_id(spec)))["first_step"]
    exact, uniform = told["rows"]
    assert exact["cosine"] == pytest.approx(1, abs=1e-5)
    assert exact["ratio"] == pytest.approx(1, abs=1e-3)
    assert told["taken"] == pytest.approx(exact["size"], rel=1e-3)
    assert 0.3 < uniform["cosine"] < exact["cosine"]


def test_the_size_of_a_step_of_adam_is_not_compared(tmp_path: Path) -> None:
    spec = born(optimiser=Adam(lr=0.01))
    execute(spec, tmp_path)
    told = TheoryReader(tmp_path).theory(Theory(t="theory", id=1, run=run_id(spec)))["first_step"]
    assert [row["ratio"] for row in told["rows"]] == [None, None]
    assert "by Adam" in told["note"]


def test_what_theory_does_not_cover_is_said(tmp_path: Path, tiny: Callable[..., Train]) -> None:
    reader = TheoryReader(tmp_path)

    def why(spec: Train) -> str:
        execute(spec, tmp_path)
        return reader.theory(Theory(t="theory", id=1, run=run_id(spec)))["first_step"]["why"]

    facts = spec_of_file(COUNTRIES, steps=2, width=8)
    assert "not of Factual" in why(facts)
    assert why(born(frozen_until={"W_O2": 2})) == "W_O2 does not move at step 0"
    assert why(born(rate=((0, 0.0), (2, 1.0)))) == "the step size of step 0 is zero"
    told = reader.theory(Theory(t="theory", id=1, run=run_id(facts)))
    assert any("Times of stages" in line for line in told["says_nothing"])
    assert any("best predictor" in line for line in told["says_nothing"])


# Stages


def linear(alpha: float = 1e-2, steps: int = 1200, **task: Any) -> Train:
    facts = Facts(S=8, R=2, D=4, T=8, noise=8, dictionary="structured", **task)
    plan = Plan(
        optimiser=SGD(lr=0.1, momentum=0.0),
        steps=steps,
        batch=256,
        trained=("w", "W"),
        loss="answer",
        snapshot_every=10,
    )
    return Train(task=facts, model=LinearHead(answers=facts.answers, alpha=alpha), plan=plan)


def test_stages_leave_when_theory_says(tmp_path: Path) -> None:
    spec = linear()
    execute(spec, tmp_path)
    first, second = TheoryReader(tmp_path).theory(Theory(t="theory", id=1, run=run_id(spec)))["left"]
    assert first["step"] == escape_time(relation_rate(2, 4), sqrt(0.5 / 4), 1e-2) / 0.1
    for one in (first, second):
        before, at = one["measured"]
        assert 0.7 * before < one["step"] < 1.3 * at, one


@pytest.mark.parametrize("spec", [linear(subject_power=1.0), linear(facts=9)])
def test_uneven_facts_have_no_known_times(spec: Train) -> None:
    assert stages(spec, 0.1) == []

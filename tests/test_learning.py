"""Laws of learning: gradients are exact, optimisers are torch's, and stopping changes nothing."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.learning import SGD, Adam, Diverged, Plan, train
from engram.learning.reference import TOKENS_AT_ONCE, gradients
from engram.models import Simplified, Weights
from engram.specs import Train
from engram.specs.encode import encode
from engram.tasks import Batch, Bigram

LINEAR = ("attention", "attention", "linear")


def weights(model: Simplified, task: Bigram, seed: int = 0) -> Weights:
    return {name: value.double() for name, value in model.init(task.N, task.T, seed).items()}


def whole_batch_loss(model: Simplified, w: Weights, batch: Batch, loss: str) -> torch.Tensor:
    """The loss as one would first write it: all sequences at once."""
    logits = model.forward(w, torch.from_numpy(batch.tokens)).logits
    mask = torch.from_numpy(np.ones_like(batch.groups["global"]) if loss == "all" else batch.groups[loss])
    return torch.nn.functional.cross_entropy(logits[mask], torch.from_numpy(batch.targets)[mask])


@given(
    T=st.integers(2, 40), K=st.integers(1, 5), d=st.integers(1, 6), B=st.integers(1, 5),
    loss=st.sampled_from(["in_context", "global", "all"]), blocks=st.sampled_from([LINEAR, LINEAR[:2]]),
    names=st.sets(st.sampled_from(["W_K1", "W_V1", "W_O1", "W_K2", "W_V2", "W_O2", "E", "U", "P"]), min_size=1),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_gradients_equal_autograd_of_the_whole_batch(
    T: int, K: int, d: int, B: int, loss: str, blocks: Any, names: set[str]
) -> None:
    task, model = Bigram(K=K, T=T), Simplified(d=d, blocks=blocks)
    batch, chosen = task.sample(0, 0, B), tuple(sorted(names))
    w = weights(model, task)
    measured = gradients(model, w, batch, loss, chosen)
    if measured.positions == 0:
        assert np.isnan(measured.metrics["loss"])
        assert all(not g.any() for g in measured.gradients.values())
        return
    leaves = {name: w[name].clone().requires_grad_() for name in chosen}
    expected = whole_batch_loss(model, w | leaves, batch, loss)
    assert measured.metrics["loss"] == pytest.approx(expected.item(), rel=1e-10)
    for name, gradient in zip(chosen, torch.autograd.grad(expected, [leaves[n] for n in chosen]), strict=True):
        assert torch.allclose(measured.gradients[name], gradient, rtol=1e-10, atol=1e-12)


def test_parts_of_a_batch_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    task, model = Bigram(K=3, T=20), Simplified(d=6)
    batch, w = task.sample(0, 0, 7), weights(Simplified(d=6), Bigram(K=3, T=20))
    together = gradients(model, w, batch, "all", ("W_O2", "W_K1"))
    monkeypatch.setitem(TOKENS_AT_ONCE, "cpu", 1)
    apart = gradients(model, w, batch, "all", ("W_O2", "W_K1"))
    assert together.metrics == pytest.approx(apart.metrics, rel=1e-12)
    assert all(torch.allclose(together.gradients[n], apart.gradients[n], rtol=1e-10) for n in together.gradients)


def test_metrics_by_group() -> None:
    task, model = Bigram(K=3, T=30), Simplified(d=6)
    batch, w = task.sample(0, 0, 5), weights(Simplified(d=6), Bigram(K=3, T=30))
    metrics = gradients(model, w, batch, "all", ()).metrics
    guess = model.forward(w, torch.from_numpy(batch.tokens)).logits.argmax(-1).numpy()
    for name, mask in batch.groups.items():
        assert metrics[f"accuracy.{name}"] == pytest.approx((guess == batch.targets)[mask].mean())
        assert metrics[f"loss.{name}"] == pytest.approx(whole_batch_loss(model, w, batch, name).item(), rel=1e-10)
    assert set(gradients(model, w, batch, "in_context", ()).metrics) == {
        "loss",
        "loss.in_context",
        "accuracy.in_context",
    }


def test_sgd_by_hand() -> None:
    """m ← μ m + (∇L + λ W);  W ← W − η m, with m = ∇L + λ W at the first step."""
    task, model = Bigram(K=3, T=20), Simplified(d=6)
    plan = Plan(optimiser=SGD(lr=0.3, momentum=0.9, weight_decay=0.01), steps=4, batch=3, trained=("W_O2",), loss="all")
    w, by_hand = weights(model, task), weights(model, task)
    momentum = torch.zeros(6, 6, dtype=torch.float64)
    for moment in train(task, model, plan, 0, w, gradients):
        assert torch.allclose(moment.weights["W_O2"], by_hand["W_O2"], rtol=1e-12)
        step = gradients(model, by_hand, task.sample(0, moment.step, 3), "all", ("W_O2",)).gradients["W_O2"]
        momentum = 0.9 * momentum + step + 0.01 * by_hand["W_O2"]
        by_hand["W_O2"] = by_hand["W_O2"] - 0.3 * momentum


def test_adam_by_hand() -> None:
    task, model = Bigram(K=3, T=20), Simplified(d=6)
    plan = Plan(optimiser=Adam(lr=0.01), steps=3, batch=3, trained=("W_K2",), loss="all")
    w, by_hand = weights(model, task), weights(model, task)
    m, v = 0.0, 0.0
    for moment in train(task, model, plan, 0, w, gradients):
        assert torch.allclose(moment.weights["W_K2"], by_hand["W_K2"], rtol=1e-10)
        g = gradients(model, by_hand, task.sample(0, moment.step, 3), "all", ("W_K2",)).gradients["W_K2"]
        m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2, moment.step + 1
        by_hand["W_K2"] = by_hand["W_K2"] - 0.01 * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)


OF_TORCH = [
    (SGD(lr=0.3), torch.optim.SGD, {}),
    (SGD(lr=0.3, momentum=0.9, weight_decay=0.01), torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.01}),
    (Adam(lr=0.3, betas=(0.8, 0.99), eps=1e-6), torch.optim.Adam, {"betas": (0.8, 0.99), "eps": 1e-6}),
    (Adam(lr=0.3, weight_decay=0.05), torch.optim.AdamW, {"weight_decay": 0.05}),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("ours", "of_torch", "options"), OF_TORCH)
def test_optimisers_take_the_steps_of_torch_to_the_last_bit(
    ours: SGD | Adam, of_torch: Callable[..., torch.optim.Optimizer], options: dict[str, Any], dtype: torch.dtype
) -> None:
    """Also with a gradient that is missing at first, and with another rate later."""
    draw = torch.Generator().manual_seed(0)
    parts = [torch.randn(7, 5, dtype=dtype, generator=draw) for _ in range(2)]
    mine, theirs = ([part.clone() for part in parts] for _ in range(2))
    optimisers = ours.over(dict(zip("ab", mine, strict=True))), of_torch(theirs, lr=0.3, foreach=False, **options)
    for step in range(12):
        given = [torch.randn(7, 5, dtype=dtype, generator=draw) for _ in range(2)] if step > 2 else [parts[0], None]
        optimisers[0].lr = optimisers[1].param_groups[0]["lr"] = 0.1 / (1 + step)
        for parameters, optimiser in zip((mine, theirs), optimisers, strict=True):
            for part, gradient in zip(parameters, given, strict=True):
                part.grad = None if gradient is None else gradient.clone()
            optimiser.step()
        assert all(map(torch.equal, mine, theirs))
    for a, b in zip(mine, theirs, strict=True):
        kept = [dict(o.state[p]) for o, p in zip(optimisers, (a, b), strict=True)]
        assert list(kept[0]) == list(kept[1])
        assert all(torch.equal(value, kept[1][name]) for name, value in kept[0].items())


def test_training_does_not_load_the_compiler_of_torch(tiny: Callable[..., Train], home: Path) -> None:
    """It would take a second of every process that trains."""
    code = (
        "import json, sys; from pathlib import Path; from engram.runner.execute import execute; "
        "from engram.specs.encode import decode; execute(decode(json.loads(sys.argv[1])), Path('runs')); "
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, json.dumps(encode(tiny()))], check=True, timeout=120)


RATES = ((0, 0.0), (3, 1.0), (7, 0.25))  # warm-up, then decay


@pytest.mark.parametrize(("ours", "of_torch", "options"), OF_TORCH)
def test_a_schedule_is_that_of_torch(
    ours: SGD | Adam, of_torch: Callable[..., torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    """LambdaLR with the factors of the plan: the same weights at every step, to the last bit; also from a later one."""
    task, model = Bigram(K=3, T=20), Simplified(d=6)
    plan = Plan(optimiser=ours, steps=9, batch=3, trained=("W_O2",), loss="all", rate=RATES)
    theirs = weights(model, task)
    optimiser = of_torch([theirs["W_O2"].requires_grad_()], lr=0.3, foreach=False, **options)
    steps, factors = zip(*RATES, strict=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: float(np.interp(step, steps, factors)))
    stored, last = dict[str, torch.Tensor](), theirs["W_O2"]
    for moment in train(task, model, plan, 0, weights(model, task), gradients):
        assert torch.equal(moment.weights["W_O2"], theirs["W_O2"])
        stored = {name: value.clone() for name, value in moment.state.items()} if moment.step == 5 else stored
        found = gradients(model, theirs, task.sample(0, moment.step, 3), "all", ("W_O2",))
        theirs["W_O2"].grad = found.gradients["W_O2"]
        optimiser.step()
        schedule.step()
        last = moment.weights["W_O2"]
    w = weights(model, task) | {"W_O2": stored.pop("weights/W_O2")}
    (*_, again) = train(task, model, plan, 0, w, gradients, 5, stored)
    assert torch.equal(again.weights["W_O2"], last)


def test_frozen_matrices_stay_and_then_move() -> None:
    task, model = Bigram(K=3, T=20), Simplified(d=6)
    optimiser = SGD(lr=0.3, momentum=0.9, weight_decay=0.1)
    plan = Plan(optimiser=optimiser, steps=5, batch=3, loss="all", frozen_until={"W_K1": 3})
    first = weights(model, task)
    moved = {}
    for moment in train(task, model, plan, 0, weights(model, task), gradients):
        moved[moment.step] = not torch.equal(moment.weights["W_K1"], first["W_K1"])
        assert moment.step == 0 or not torch.equal(moment.weights["W_O2"], first["W_O2"])
    assert moved == {0: False, 1: False, 2: False, 3: False, 4: True, 5: True}


@pytest.mark.parametrize("optimiser", [SGD(lr=0.3, momentum=0.9, weight_decay=0.01), Adam(lr=0.01)])
def test_beginning_at_a_stored_step_gives_the_same_numbers(optimiser: SGD | Adam) -> None:
    task, model = Bigram(K=3, T=20), Simplified(d=6)
    plan = Plan(optimiser=optimiser, steps=8, batch=3, frozen_until={"W_K2": 6})
    whole, stored = {}, {}
    for moment in train(task, model, plan, 0, weights(model, task), gradients):
        whole[moment.step] = moment.metrics
        if moment.step == 4:
            stored = {name: value.clone() for name, value in moment.state.items()}
    w = weights(model, task) | {k.removeprefix("weights/"): v for k, v in stored.items() if k.startswith("weights/")}
    averages = {key: value for key, value in stored.items() if not key.startswith("weights/")}
    for moment in train(task, model, plan, 0, w, gradients, 4, averages):
        assert moment.metrics == whole[moment.step]


def test_a_loss_that_is_no_number_stops_the_run() -> None:
    task, model = Bigram(K=3, T=20), Simplified(d=6)
    plan = Plan(optimiser=SGD(lr=1e38), steps=50, batch=3)
    with pytest.raises(Diverged, match="step"):
        list(train(task, model, plan, 0, model.init(65, 20, 0), gradients))
    assert issubclass(Diverged, EngramError)


def test_sequences_without_any_position_to_read() -> None:
    """T=2 cannot hold a second visit of most triggers: no gradient, no loss, no crash."""
    task, model = Bigram(K=1, T=2, no_repeat=True), Simplified(d=4)
    plan = Plan(optimiser=SGD(lr=0.1, momentum=0.9), steps=3, batch=1)
    rows = [moment.metrics for moment in train(task, model, plan, 0, model.init(65, 2, 0), gradients)]
    assert len(rows) == 4
    assert all(np.isnan(row["loss"]) for row in rows)

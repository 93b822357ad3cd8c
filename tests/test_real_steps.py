"""Steps of the whole simplified model: from zero W_K2 must wait for W_O2; W_K1 need not, for what layer 1 writes is
read by the logits and by layer 2 as a value. In the architecture of Appendix B.3 it must (tests/test_gradients.py)."""

from dataclasses import replace

import pytest
import torch

from engram.laws import orders
from engram.laws.orders import MEMORIES, ORDERS, mean_gradient, sharpen, tables, take_real_steps, zeros
from engram.laws.steps import Embedded, sampled, step_output, step_trigger
from engram.models import Simplified
from engram.tasks import Bigram
from engram.tasks.second_visit import SecondVisit

MODEL = Simplified(d=32, scale="unit")
TASKS = (SecondVisit(N=12, T=8), Bigram(K=3, T=24))


@pytest.mark.parametrize("task", TASKS, ids=["second visit", "bigram"])
@pytest.mark.parametrize("known", [(), ("W_K1",), ("W_O2",), ("W_K1", "W_O2")], ids=str)
def test_from_zero_the_second_keys_wait_for_the_output(task: SecondVisit | Bigram, known: tuple[str, ...]) -> None:
    """Exactly zero without W_O2, whatever W_K1 is."""
    w = MODEL.init(task.N, task.T, 0)
    w |= {matrix: torch.zeros_like(w[matrix]) for matrix in MEMORIES if matrix not in known}
    assert bool(mean_gradient(task, MODEL, w, 0, 16, "W_K2").any()) == ("W_O2" in known)
    assert mean_gradient(task, MODEL, w, 0, 16, "W_O2").any()
    assert mean_gradient(task, MODEL, w, 0, 16, "W_K1").any()


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_orders_with_the_output_first_write_all_three(order: tuple[str, ...]) -> None:
    w = take_real_steps(TASKS[0], MODEL, 0, 32, order, zeros(MODEL.d))
    assert all(w[name].any() for name in MEMORIES) == (order.index("W_O2") < order.index("W_K2"))


def test_sharpness_is_how_far_the_best_stands_above_the_mean() -> None:
    w = MODEL.init(12, 8, 0)
    for name in MEMORIES:
        table = tables(w | {name: sharpen(w, name, 7.0)})[name]
        assert float((table.amax(1) - table.mean(1)).mean()) == pytest.approx(7, rel=1e-5)
        assert not sharpen(w | zeros(MODEL.d), name, 7.0).any()


SMALL = SecondVisit(N=8, T=6)
EMBEDDED, LAW = Embedded.random(SMALL.N, SMALL.T, 24, 0), sampled(SMALL, 0, 0, 200)


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_in_the_architecture_of_the_appendix_one_order_writes_all(order: tuple[str, ...]) -> None:
    """From zero each step of a wrong order meets a gradient that is exactly zero until what it needs is there."""
    w = orders.take_steps(EMBEDDED, LAW, order, orders.initial_matrices(24, 0, "zero"))
    written = {name for name in MEMORIES if getattr(w, name).any()}
    done: set[str] = set()
    for name in order:
        done |= {name} if done >= set(MEMORIES[: MEMORIES.index(name)]) else set()
    assert written == done


def test_the_steps_are_those_of_the_lemmas() -> None:
    """The first two steps in the right order, but for their scale; the appendix gives positions to the values too."""
    tokens_only = replace(EMBEDDED, P=torch.zeros_like(EMBEDDED.P))
    zero = orders.initial_matrices(24, 0, "zero")
    W_O2 = step_output(tokens_only, LAW)
    found = -orders.gradient(tokens_only, replace(zero, W_O2=W_O2), LAW, "W_K2")
    assert torch.allclose(found, step_trigger(tokens_only, LAW, W_O2), atol=1e-12)


def test_the_right_order_recalls_and_the_wrong_ones_do_not() -> None:
    right, wrong = (
        next(orders.in_order(1, 0, N=16, T=8, d=512, n=4000, order=" ".join(ORDERS[i]), first="random")) for i in (0, 5)
    )
    assert min(right[f"recall.{name}"] for name in MEMORIES) > 0.8
    assert min(wrong[f"recall.{name}"] for name in MEMORIES) < 0.5

"""Steps of the whole simplified model: from zero W_K2 must wait for W_O2; W_K1 need not, for what layer 1 writes is
read by the logits and by layer 2 as a value. In the architecture of Appendix B.3 it must (tests/test_gradients.py)."""

import pytest
import torch

from engram.learning.real_steps import MEMORIES, ORDERS, gradient, in_order, sharpened, stepped, tables, zeros
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
    assert bool(gradient(task, MODEL, w, 0, 16, "W_K2").any()) == ("W_O2" in known)
    assert gradient(task, MODEL, w, 0, 16, "W_O2").any()
    assert gradient(task, MODEL, w, 0, 16, "W_K1").any()


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_orders_with_the_output_first_write_all_three(order: tuple[str, ...]) -> None:
    w = stepped(TASKS[0], MODEL, 0, 32, order, zeros(MODEL.d))
    assert all(w[name].any() for name in MEMORIES) == (order.index("W_O2") < order.index("W_K2"))


def test_sharpness_is_how_far_the_best_stands_above_the_mean() -> None:
    w = MODEL.init(12, 8, 0)
    for name in MEMORIES:
        table = tables(w | {name: sharpened(w, name, 7.0)})[name]
        assert float((table.amax(1) - table.mean(1)).mean()) == pytest.approx(7, rel=1e-5)
        assert not sharpened(w | zeros(MODEL.d), name, 7.0).any()


def test_the_first_step_recalls_the_outputs() -> None:
    (row,) = in_order(1, 0, N=16, T=8, d=512, n=1024, order=0, random=0)
    assert row["recall.W_O2"] == 1

"""Strengths of associations: read off planted weights, rising or falling with frequency, and only if learned."""

from typing import Any

import numpy as np
import pytest
import torch

from engram.memory.stored import Stored
from engram.models import Weights
from engram.models.memories import induction_memories
from engram.probes.recall import diagonals, strengths
from engram.tasks import Bigram

MEMORIES = ("W_O2", "W_K2", "W_K1")


@pytest.mark.parametrize("fixed", [{}, {"triggers": "fixed", "offset": 3}])
@pytest.mark.parametrize("sign", [1, -1])
def test_diagonals_find_what_was_planted(sign: int, fixed: dict[str, Any]) -> None:
    """On orthonormal embeddings strengths are read off exactly: rising with frequency, or falling."""
    task = Bigram(K=5, T=40, **fixed)
    eye, pi_u = torch.eye(65, dtype=torch.float64), torch.from_numpy(task.table.unigram)
    late = 2 + sign * torch.linspace(-1, 1, 39, dtype=torch.float64)
    W_K1 = torch.zeros(65, 65, dtype=torch.float64)
    W_K1[range(1, 40), range(39)] = late
    tables = {"E": eye, "U": eye, "P": eye[:40], "W_V1": eye, "W_O1": eye, "W_V2": eye}
    w = tables | {"W_K2": (2 + sign * pi_u).diag(), "W_O2": eye, "W_K1": W_K1}
    nothing = w | {name: torch.zeros_like(w[name]) for name in ("W_K1", "W_K2", "W_O2")}
    planted = w | {"W_O2": (2 - sign * pi_u).diag()}
    found = diagonals(induction_memories(planted, task, 0), induction_memories(nothing, task, 0), task)
    assert found["diagonal.W_K2.frequency"] == pytest.approx(sign)
    assert found["diagonal.W_O2.frequency"] == pytest.approx(-sign)
    assert found["diagonal.W_K1.position"] == pytest.approx(sign)
    assert found["diagonal.W_K1.variation"] == pytest.approx(float(late.std(correction=0)) / 2)
    strong = strengths(induction_memories(w, task, 0))
    assert strong["W_O2"].tolist() == [1.0] * 65
    assert len(strong["W_K2"]) == (5 if fixed else 65)


def learned(first: Weights, strength: float) -> Weights:
    """Every association of W_O2, W_K2 and W_K1 stronger by the same amount, on orthonormal embeddings."""
    back = torch.eye(65, dtype=torch.float64).roll(1, 0)
    more = {"W_O2": torch.eye(65), "W_K2": torch.eye(65), "W_K1": back}
    return first | {name: first[name] + strength * memory for name, memory in more.items()}


@pytest.mark.filterwarnings("ignore:An input array is constant")
def test_diagonals_count_what_was_learned() -> None:
    """First weights full of chance do not count: learned evenly there is no variation, learned nothing no number."""
    task, noise = Bigram(K=5, T=40), torch.randn(3, 65, 65, generator=torch.Generator().manual_seed(0)).double()
    eye = torch.eye(65, dtype=torch.float64)
    first = {"E": eye, "U": eye, "P": eye[:40], "W_V1": eye, "W_O1": eye, "W_V2": eye}
    first |= dict(zip(("W_O2", "W_K2", "W_K1"), noise, strict=True))

    def read_as(w: Weights) -> list[Stored]:
        return induction_memories(w, task, 0)

    even = diagonals(read_as(learned(first, 2.0)), read_as(first), task)
    assert [even[f"diagonal.{name}.variation"] for name in MEMORIES] == pytest.approx([0.0] * 3, abs=1e-12)
    for strength in (0.0, -1.0):
        found = diagonals(read_as(learned(first, strength)), read_as(first), task)
        assert np.isnan([found[f"diagonal.{name}.variation"] for name in MEMORIES]).all()
    assert np.isnan(list(diagonals(read_as(first), read_as(first), task).values())).all()

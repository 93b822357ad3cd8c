"""Muon moves the matrices of layers along orthogonalised averages, and everything else as its `rest` would."""

import pytest
import torch

from engram.learning import Adam, Muon
from engram.learning.optimisers import QUINTIC, orthogonalised


@pytest.mark.parametrize("shape", [(6, 6), (9, 4), (4, 9)])
def test_orthogonalising_acts_on_singular_values_alone(shape: tuple[int, int]) -> None:
    """The same directions, and of every singular value five times the quintic: in float64 to 1e-10."""
    M = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    left, sizes, right = torch.linalg.svd(M, full_matrices=False)
    a, b, c = QUINTIC
    x = sizes / M.norm()
    for _ in range(5):
        x = a * x + b * x**3 + c * x**5
    assert torch.allclose(orthogonalised(M), left * x @ right, rtol=0, atol=1e-10)
    assert float(x.min()) > 0.6
    assert float(x.max()) < 1.3


def test_a_matrix_without_gradient_stays() -> None:
    assert torch.equal(orthogonalised(torch.zeros(3, 5)), torch.zeros(3, 5))


def moved(ours: Muon, steps: int = 6) -> tuple[dict[str, torch.Tensor], list[dict[str, torch.Tensor]]]:
    draw = torch.Generator().manual_seed(0)
    shapes = {"E": (7, 4), "W_Q1": (4, 4), "W_I1": (8, 4), "W_F1": (4, 8), "b_Q1": (4,)}
    w = {name: torch.randn(shape, dtype=torch.float64, generator=draw) for name, shape in shapes.items()}
    given = [
        {name: torch.randn(shape, dtype=torch.float64, generator=draw) for name, shape in shapes.items()}
        for _ in range(steps)
    ]
    optimiser = ours.over(w)
    for step, gradients in enumerate(given):
        optimiser.lr = ours.lr / (1 + step)
        for name, gradient in gradients.items():
            w[name].grad = gradient
        optimiser.step()
    return w, given


def test_steps_are_those_of_the_formula_and_of_adam() -> None:
    """With a rate that falls: both rates fall."""
    ours = Muon(lr=0.2, momentum=0.9, rest=Adam(lr=0.01))
    w, given = moved(ours)
    start, _ = moved(ours, 0)
    for name in ("W_Q1", "W_I1", "W_F1"):
        W, m = start[name], torch.zeros_like(start[name])
        for step, gradients in enumerate(given):
            m = 0.9 * m + 0.1 * gradients[name]
            size = max(1, W.shape[0] / W.shape[1]) ** 0.5
            W = W - 0.2 / (1 + step) * size * orthogonalised(0.9 * m + 0.1 * gradients[name])
        assert torch.allclose(w[name], W, rtol=0, atol=1e-12), name
    rest = {name: start[name].clone() for name in ("E", "b_Q1")}
    adam = Adam(lr=0.01).over(rest)
    for step, gradients in enumerate(given):
        adam.lr = 0.01 / (1 + step)
        for name, W in rest.items():
            W.grad = gradients[name]
        adam.step()
    assert all(torch.allclose(w[name], rest[name], rtol=0, atol=1e-14) for name in rest)


def test_torch_has_the_same_muon() -> None:
    """torch orthogonalises in bfloat16: its steps are ours to a few per cent."""
    ours = Muon(lr=0.02, momentum=0.95, rest=Adam(lr=0.01))
    w, given = moved(ours)
    names = ("W_Q1", "W_I1", "W_F1")
    start, _ = moved(ours, 0)
    theirs = {name: start[name].clone().requires_grad_() for name in names}
    optimiser = torch.optim.Muon(list(theirs.values()), lr=0.02, weight_decay=0.0, momentum=0.95)
    for step, gradients in enumerate(given):
        optimiser.param_groups[0]["lr"] = 0.02 / (1 + step)
        for name, W in theirs.items():
            W.grad = gradients[name].clone()
        optimiser.step()
    for name in names:
        far, way = (w[name] - theirs[name]).norm(), (w[name] - start[name]).norm()
        assert float((far / way).detach()) < 0.05, name

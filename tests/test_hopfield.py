"""Memories of ±1 patterns, attention as retrieval, in-context denoising: what must hold for any sizes."""

from math import exp, inf, isnan, nan

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.embeddings import directions
from engram.errors import EngramError
from engram.laws.denoising import train_attention
from engram.memory.hopfield import Degree, Hopfield, asynchronous, drive, energy, settle, synchronous
from engram.specs import Check
from engram.tasks.denoising import CASES, Clusters, Denoising, Sphere, Subspace
from engram.theory.hopfield import bit_error, crossing, dense_law, exponential_rate, retrieval_overlap
from engram.theory.retrieval import dam_energy, floors, gradient_step, ramsauer_constant

F64 = torch.float64
quickly = settings(deadline=None, max_examples=25)
seeds, degrees = st.integers(0, 10**6), st.sampled_from([2, 3, 4, 5, "exp"])
sizes = {"N": st.integers(1, 12), "d": st.integers(2, 24), "seed": seeds, "degree": degrees}


def drawn(N: int, d: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    return directions("signs", N, d, seed, "xi", F64), directions("signs", 3, d, seed, "x", F64)


@quickly
@given(**sizes)
def test_drive_is_the_difference_of_energies(N: int, d: int, seed: int, degree: Degree) -> None:
    xi, x = drawn(N, d, seed)

    def F(t: torch.Tensor) -> torch.Tensor:
        return t.exp() if degree == "exp" else t**degree

    units = (x @ xi.T).amax(1).exp() if degree == "exp" else torch.ones(3, dtype=F64)
    found = drive(xi, x, degree)
    for i in range(d):
        up, down = x.clone(), x.clone()
        up[:, i], down[:, i] = 1, -1
        wanted = (F(up @ xi.T) - F(down @ xi.T)).sum(1)
        torch.testing.assert_close(found[:, i] * units, wanted, rtol=1e-9, atol=1e-9 * float(units.max()))


@quickly
@given(N=sizes["N"], d=sizes["d"], seed=seeds)
def test_degree_two_is_a_matrix_with_zero_diagonal(N: int, d: int, seed: int) -> None:
    xi, x = drawn(N, d, seed)
    W = xi.T @ xi
    torch.testing.assert_close(drive(xi, x, 2), 4 * x @ W.fill_diagonal_(0))


@quickly
@given(**sizes)
def test_energy_never_rises_and_dynamics_ends(N: int, d: int, seed: int, degree: Degree) -> None:
    xi, x = drawn(N, d, seed)
    level = energy(xi, x, degree)
    for i in range(d):
        x = asynchronous(xi, x, degree, bits=[i])
        now = energy(xi, x, degree)
        assert (now <= level + 1e-9 * level.abs()).all()
        level = now
    end = settle(xi, x, degree)
    assert torch.equal(asynchronous(xi, end, degree), end)
    assert torch.equal(synchronous(xi, end, degree), end)


@settings(deadline=None, max_examples=8)
@given(d=st.integers(80, 120), seed=seeds, degree=degrees)
def test_few_patterns_are_fixed_points_that_attract(d: int, seed: int, degree: Degree) -> None:
    memory = Hopfield(d, degree, seed=seed)
    memory.store(["a", "b", "c"])
    assert memory.stable() == memory.accuracy() == 1
    assert 0 < memory.margin() == min(memory.margin("a"), memory.margin("b", "c"))
    torch.testing.assert_close(memory.scores(), memory.xi @ memory.xi.T / d)
    for name in ("a", "b", "c"):
        assert torch.equal(memory.settle(name), memory[name])
        assert memory.recall(memory.noisy(name, flips=d // 16)) == name
        assert memory.scores([name, memory[name]])[:, list(memory.names).index(name)].tolist() == [1, 1]
        assert memory.energy(name) < memory.energy(memory.noisy(name, flips=d // 16))


def test_a_pattern_alone_has_margin_one() -> None:
    for degree in (2, 3, 4, "exp"):
        memory = Hopfield(30, degree)
        memory.store(["alone"])
        assert memory.margin() == pytest.approx(1)


def test_patterns_of_ones_own_are_kept_and_names_do_not_depend_on_when_they_come() -> None:
    ours, later = Hopfield(16), Hopfield(16)
    ours.store({"mine": np.ones(16), "theirs": -np.ones(16)})
    assert torch.equal(ours["mine"], torch.ones(16, dtype=F64))
    ours.store({"mine": np.ones(16)})
    assert ours.scores(torch.ones(16)).tolist() == ours.scores([[1] * 16]).tolist() == [[1, -1]]
    ours.store(["x"])
    later.store(["p", "q"])
    later.store(iter(["x", "p"]))
    assert torch.equal(ours["x"], later["x"])
    assert torch.equal(ours.update("mine"), ours.sweep("mine"))
    assert torch.equal(later.xi, directions("signs", 3, 16, 0, "xi", F64))
    assert "3 patterns" in repr(ours)


def test_a_pattern_that_is_stored_is_a_copy() -> None:
    memory, mine = Hopfield(4), torch.ones(4, dtype=F64)
    memory.store({"mine": mine})
    mine[0] = -1
    assert torch.equal(memory["mine"], torch.ones(4, dtype=F64))


def test_an_overloaded_memory_is_neither_stable_nor_right() -> None:
    memory = Hopfield(40)
    for name in range(120):
        memory.store([name])
    assert memory.stable() <= memory.accuracy() < 1
    assert memory.margin() < 0


BAD_PATTERN = torch.ones(8)
BAD_PATTERN[3] = nan


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda m: m.store([]), "no names were given"),
        (lambda m: m.store("France"), "got 'France', which is not a list of names"),
        (lambda m: m.store(torch.ones(8)), "a vector was given without a name"),
        (lambda m: m.store([nan]), "not equal to itself"),
        (lambda m: m.store(range(10**12)), "GB"),
        (lambda m: m.store({"a": torch.zeros(8)}), r"every entry must be \+1 or −1; got 0"),
        (lambda m: m.store({"a": BAD_PATTERN}), r"every entry must be \+1 or −1; got nan"),
        (lambda m: m.store({"a": torch.ones(7)}), "d=8 entries"),
        (lambda m: m.store({"a": "no"}), "must be a vector of d=8 entries ±1; got 'no'"),
        (lambda m: m.store({"known": -m["known"]}), "another pattern"),
        (lambda m: m.recall("knwn"), "did you mean known"),
        (lambda m: m.recall(torch.ones(9)), "shape"),
        (lambda m: m.noisy("known", 9), "flips"),
        (lambda m: Hopfield(8).recall("known"), "nothing is stored yet"),
        (lambda m: Hopfield(8).margin(), "nothing is stored yet"),
        (lambda m: Hopfield(1), "d: "),
        (lambda m: Hopfield(8, degree=1), "degree: .* got 1"),
        (lambda m: Hopfield(1000, degree=100), "degree: .* got 100"),
    ],
)
def test_bad_input_is_told_in_one_line(act, words: str) -> None:
    memory = Hopfield(8)
    memory.store(["known"])
    with pytest.raises(EngramError, match=words) as told:
        act(memory)
    assert "\n" not in str(told.value)


def test_laws_of_capacity() -> None:
    assert dense_law(100, 2) == pytest.approx(10.9, abs=0.05)
    assert bit_error(200, 100) > bit_error(100, 100) > bit_error(100, 200)
    assert [exponential_rate(share) for share in (0, 0.5)] == pytest.approx([0.5, 0])
    overlaps = [retrieval_overlap(load) for load in (0.05, 0.1, 0.13, 0.1379)]
    assert overlaps == sorted(overlaps, reverse=True)
    assert overlaps[-1] == pytest.approx(0.967, abs=0.005)
    assert isnan(retrieval_overlap(0.14))
    assert crossing([1, exp(1), exp(2)], [1.0, 0.8, 0.4], 0.6) == pytest.approx(exp(1.5))
    assert isnan(crossing([1, 2], [1, 0.9], 0.5))


@quickly
@given(n=st.integers(1, 12), L=st.integers(1, 20), seed=seeds, alpha=st.floats(0.1, 5), beta=st.floats(0.1, 5))
def test_attention_is_one_gradient_step(n: int, L: int, seed: int, alpha: float, beta: float) -> None:
    X = directions("gaussian", L, n, seed, "X", F64)[None]
    query = directions("gaussian", 1, n, seed, "query", F64)
    attention = alpha * torch.softmax(beta * query @ X[0].T, 1) @ X[0]
    after = gradient_step(query, X, alpha, beta)
    torch.testing.assert_close(after, attention, rtol=0, atol=1e-12)
    assert float(dam_energy(after, X, alpha, beta)) <= float(dam_energy(query, X, alpha, beta)) + 1e-12


def test_ramsauer_constant() -> None:
    assert ramsauer_constant(20, 3, 1, 0.001) == pytest.approx(3.1546, abs=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_no_scale_beats_bayes(case: str) -> None:
    row = next(floors(4000, 1, case=case))
    assert row["bayes"] < min(row["bayes × 0.9"], row["bayes × 1.1"]) < row["zero"]


@pytest.mark.parametrize("task", [Subspace(n=3, d=2), Sphere(n=3, d=1, noise=0.3), Clusters(n=2, K=3, variance=0.1)])
def test_bayes_is_the_posterior_mean(task: Denoising) -> None:
    """Points of the prior weighted by the likelihood of x̃."""
    rng = np.random.default_rng(0)
    geometry = task.draw_geometry(rng, 1)
    points = task.draw_points(rng, geometry, 400_000)[0]
    for _ in range(5):
        query = points[rng.integers(len(points))] + np.sqrt(task.noise) * rng.standard_normal(task.n)
        weights = np.exp(-np.square(query - points).sum(1) / (2 * task.noise))
        mean = weights @ points / weights.sum()
        np.testing.assert_allclose(task.bayes(query[None], geometry)[0], mean, atol=0.02)


def test_prompts_depend_on_nothing_but_their_key() -> None:
    for task in (Subspace(L=5), Sphere(L=5), Clusters(L=5)):
        a, b, c = task.sample(0, 1, 4), task.sample(0, 1, 4), task.sample(0, 2, 4)
        np.testing.assert_array_equal(a.X, b.X)
        assert not np.array_equal(a.X, c.X)
        assert a.X.shape == (4, 5, 16)
    assert np.linalg.norm(Sphere(radius=2.0).sample(0, 0, 3).X, axis=2) == pytest.approx(2.0)


@pytest.mark.parametrize("wrong", [{"d": 17}, {"L": 0}, {"noise": 0.0}, {"noise": inf}, {"d": 0}])
def test_tasks_refuse_what_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Subspace.model_validate(wrong)
    with pytest.raises(ValueError, match="sphere"):
        Sphere(n=8, d=8)


@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_training_denoises(attention: str) -> None:
    small = {"case": "subspace", "attention": attention, "epochs": 8, "L": 30, "n": 8}
    rows, again = list(train_attention(200, 3, **small)), list(train_attention(200, 3, **small))
    assert rows == again
    assert len(rows) == 9
    assert rows[-1]["loss.test"] < 0.95 * rows[0]["loss.test"]
    assert next(train_attention(200, 4, **small))["loss.bayes"] == rows[0]["loss.bayes"]  # the same prompts


def test_laws_are_found_in_two_rooms() -> None:
    sizes = {"case": "subspace", "attention": "linear"}
    assert Check(law="learning.denoising.trained", sizes=sizes).function is train_attention
    with pytest.raises(ValueError, match="no law is called"):
        Check(law="learning.denoising.nothing")
    with pytest.raises(EngramError, match="case: unknown 'sphre'; did you mean sphere"):
        list(train_attention(10, 0, case="sphre", attention="linear"))

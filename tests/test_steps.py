"""Three population steps: patterns equal all sequences, closed forms equal patterns, samples come near."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from engram.laws.steps import (
    Embedded,
    accuracy,
    logits,
    relabelled,
    sampled,
    scores,
    sharpened,
    step_output,
    step_previous,
    step_trigger,
    table_recalls,
    take_three_steps,
)
from engram.tasks.second_visit import Law, SecondVisit
from engram.theory.induction import (
    Scores,
    least_tokens,
    output_memory,
    paper_and_found,
    previous_memory,
    trigger_memory,
)

PAIRS = ("distinct", "natural")
SMALL = 1e-6  # a rate so small that p̂ = 1/N to all digits that count


def every_sequence(task: SecondVisit) -> Law:
    """All sequences by name, each pattern's probability shared by its relabellings."""
    patterns, found = task.patterns(), []
    for z, y, p in zip(patterns.tokens, patterns.labels, patterns.p, strict=True):
        ways = list(itertools.permutations(range(task.N), int(max(z.max(), y)) + 1))
        found += [(np.array(way)[z], way[y], p / len(ways)) for way in ways]
    tokens, labels, p = zip(*found, strict=True)
    return Law(np.array(tokens), np.array(labels), np.array(p))


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize(("N", "T"), [(4, 5), (5, 6), (3, 6)])
def test_patterns_give_the_gradient_of_all_sequences(N: int, T: int, pairs: Any) -> None:
    task = SecondVisit(N=N, T=T, pairs=pairs)
    embedded = Embedded.orthonormal(N, T)
    few = take_three_steps(embedded, task.patterns(), rate=5.0)
    every = take_three_steps(embedded.unnamed(), every_sequence(task), rate=5.0)
    for name in ("W_O2", "W_K2", "W_K1"):
        assert torch.allclose(getattr(few, name), getattr(every, name), atol=1e-12, rtol=0), name


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize(("N", "T"), [(3, 5), (20, 8), (200, 7)])
def test_closed_forms_are_the_steps(N: int, T: int, pairs: Any) -> None:
    task = SecondVisit(N=N, T=T, pairs=pairs)
    embedded = Embedded.orthonormal(N, T)
    steps = take_three_steps(embedded, task.patterns(), SMALL)
    found = scores(embedded, steps)
    through_layer_1 = embedded.E @ embedded.Phi1.T @ embedded.W_V2.T @ steps.W_O2.T @ embedded.U.T
    assert_two_numbers(found["W_O2"] / SMALL, output_memory(task)[0])
    assert_two_numbers(through_layer_1 / SMALL, output_memory(task)[1])
    assert_two_numbers(found["W_K2"] / SMALL, trigger_memory(task))
    exact = torch.from_numpy(previous_memory(task)).T
    assert torch.allclose(found["W_K1"] / SMALL**2, exact, rtol=1e-4, atol=1e-4 * float(exact.abs().max()))


def assert_two_numbers(table: torch.Tensor, wanted: Scores) -> None:
    N = len(table)
    exact = wanted.off + wanted.gap * torch.eye(N, dtype=table.dtype)
    assert torch.allclose(table, exact, rtol=0, atol=1e-4 * abs(wanted.gap))


def test_three_steps_learn_the_induction_head() -> None:
    """But for a trigger that stands first: position 1 reads itself, so it looks like a successor of the trigger too."""
    task = SecondVisit(N=100, T=7)
    embedded, law = Embedded.orthonormal(task.N, task.T), task.patterns()
    steps = take_three_steps(embedded, law)
    assert table_recalls(scores(embedded, steps)) == dict.fromkeys(("W_O2", "W_K2", "W_K1", "W_K1.t<T"), 1)
    first = law.tokens[:, 0] == law.tokens[:, -1]
    assert accuracy(embedded, steps, law.where(~first), sharpness=100) > 1 - 1e-9
    answers = logits(embedded, sharpened(embedded, steps, sharpness=100), law.tokens[first])
    assert torch.allclose(answers[:, 0], answers[:, 1], atol=1e-9 * float(answers.max()))  # q is 0 and o is 1


def test_samples_come_near_the_population() -> None:
    """The mean of 100 samples lies within 4 standard errors of each entry; what was written before is exact."""
    task = SecondVisit(N=12, T=6)
    embedded = Embedded.orthonormal(task.N, task.T)
    exact = take_three_steps(embedded, task.patterns())
    laws = [sampled(task, 0, step, 1000) for step in range(100)]
    steps = {
        "W_O2": [step_output(embedded.unnamed(), law) for law in laws],
        "W_K2": [step_trigger(embedded.unnamed(), law, exact.W_O2) for law in laws],
        "W_K1": [step_previous(embedded.unnamed(), law, exact.W_O2, exact.W_K2) for law in laws],
    }
    for name, found in steps.items():
        estimates = torch.stack(found)
        error = estimates.std(0) / len(found) ** 0.5
        far = (estimates.mean(0) - getattr(exact, name)).abs() > 4 * error + 1e-15
        assert not far.any(), name


def test_relabelling_is_a_mean_over_permutations() -> None:
    M = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    tokens = (slice(1, 4),)
    mean = torch.zeros_like(M)
    for way in itertools.permutations(range(1, 4)):
        order = [0, *way, 4]
        mean += M[order][:, order] / 6
    assert torch.allclose(relabelled(M, tokens, tokens), mean, atol=1e-14)


@pytest.mark.parametrize("pairs", PAIRS)
def test_the_terms_of_the_appendix_add_up_to_the_steps(pairs: Any) -> None:
    """Δ^o + Δ^q + Δ^r is what step 2 wrote, A − B − C + D what step 3 wrote at p_{t−1}."""
    task = SecondVisit(N=30, T=8, pairs=pairs)
    found = {name: value for name, (_, value) in paper_and_found(task).items()}
    N, T, (first, _), second = task.N, task.T, output_memory(task), trigger_memory(task)
    whole = sum(found[f"Δ^{part} along Φ1e_q"] for part in "oqr")
    assert first.gap * whole / (N * T) == pytest.approx(second.diagonal, rel=1e-10)
    W_K1 = previous_memory(task)
    for t in range(2, T + 1):
        A, B, C, D = (found[f"{letter}, t={t}"] for letter in "ABCD")
        assert first.gap * second.gap * (A - B - C + D) / (T * t) == pytest.approx(W_K1[t - 2, t - 1], rel=1e-10)


@pytest.mark.parametrize("pairs", PAIRS)
def test_the_paper_is_right_up_to_one_over_N(pairs: Any) -> None:
    """But for C, which lacks all t_q < t−1; and where o = q is no rare case, for what both visits of q then change."""
    N = 10_000
    found = paper_and_found(SecondVisit(N=N, T=8, pairs=pairs))
    wrong = {name.partition(",")[0].partition(" ")[0] for name, (a, b) in found.items() if abs(a - b) > 5 / N}
    assert wrong == ({"C"} if pairs == "distinct" else {"τ", "A", "C", "Δ^q"})
    if pairs == "distinct":
        assert all(abs(a - b) < 5 / N for name, (a, b) in found.items() if "all t_q" in name)


def test_least_tokens_is_where_the_diagonal_turns() -> None:
    for T in (5, 6, 8, 13, 40):
        turns = least_tokens(T)
        for N in range(3, 20):
            assert (trigger_memory(SecondVisit(N=N, T=T)).diagonal > 0) == (turns < N)
    assert least_tokens(4) == float("inf")

"""Gradient flow on facts: the exact gradient is that of all sequences, and what must be conserved is."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.tasks.facts import Facts
from engram.theory.fact_flow import (
    Guesses,
    Head,
    alike,
    apart,
    flow,
    losses,
    rates,
    relation_rate,
    stages,
    subject_rate,
    velocity,
)


def by_autograd(head: Head, task: Facts, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """−∇ of the mean loss over every sequence that the task can give, token by token."""
    book = task.book(seed)
    w, W = (torch.from_numpy(part.copy()).requires_grad_() for part in (head.w, head.W))
    loss = torch.zeros((), dtype=torch.float64)
    places = [(i, j) for i in range(task.T - 1) for j in range(task.T - 1) if i != j]
    for s, r, a in book.known:
        for (i, j), noise in product(places, product(range(book.noise), repeat=task.T - 3)):
            rest = iter(noise)
            z = [s if t == i else book.S + r if t == j else book.S + book.R + next(rest) for t in range(task.T - 1)] + [
                book.EOS
            ]
            logits = (w[z] * W[:, z]).sum(1)
            chance = book.p[s, r] / len(places) / book.noise ** (task.T - 3)
            loss = loss - chance * torch.log_softmax(logits, 0)[a]
    g_w, g_W = torch.autograd.grad(loss, (w, W))
    return -g_w.numpy(), -g_W.numpy()


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.integers(4, 5), st.integers(0, 9))
def test_the_gradient_is_that_of_all_sequences(S: int, R: int, D: int, noise: int, T: int, seed: int) -> None:
    task = Facts(S=S, R=R, D=D, noise=noise, T=T, subject_power=0.7)
    prompts, rng = apart(task.book(seed)), np.random.default_rng(seed)
    head = Head(rng.normal(size=task.N), rng.normal(size=(task.answers, task.N)))
    found, (w, W) = velocity(head, prompts), by_autograd(head, task, seed)
    assert np.allclose(found.w, w, atol=1e-12)
    assert np.allclose(found.W, W, atol=1e-12)


def test_noise_that_is_alike_is_one_column() -> None:
    book = Facts(S=3, R=2, D=2, noise=3, T=6).book(1)
    whole, short, rng = apart(book), alike(book), np.random.default_rng(0)
    w, W = rng.normal(size=7), rng.normal(size=(book.answers, 7))  # 3 subjects, 2 relations, noise, EOS
    spread = [0, 1, 2, 3, 4, 5, 5, 5, 6]
    many, one = velocity(Head(w[spread], W[:, spread]), whole), velocity(Head(w, W), short)
    assert np.allclose(many.w, one.w[spread], atol=1e-12)
    assert np.allclose(many.W, one.W[:, spread], atol=1e-12)


def test_conserved_quantities_do_not_drift() -> None:
    book, rng = Facts(S=4, R=3, D=2, noise=2, T=5).book(0), np.random.default_rng(0)
    prompts = apart(book)
    first = Head(rng.normal(size=book.N), rng.normal(size=(book.answers, book.N)))
    for head in flow(first, prompts, np.linspace(0, 200, 50)):
        assert np.abs(head.conserved - first.conserved).max() <= 1e-9 * (head.w**2).max()


def test_closed_rates_are_those_of_uniform_predictions() -> None:
    S, R, D = 16, 4, 8
    book = Facts(S=S, R=R, D=D, dictionary="structured").book(0)
    found = rates(Head.small(alike(book), 1e-9), alike(book))
    assert np.allclose(found[:S], subject_rate(S, R, D))
    assert np.allclose(found[S : S + R], relation_rate(R, D))
    assert np.allclose(found[S + R :], 0, atol=1e-12)


def test_guesses_have_the_loss_of_their_entropy() -> None:
    book = Facts(S=16, R=4, D=8, dictionary="structured").book(0)
    prompts, guesses = alike(book), Guesses.of(book)
    with np.errstate(divide="ignore"):
        found = losses(np.log(guesses.of_relation), prompts, guesses)
    assert found["loss"] == pytest.approx(np.log(8))
    assert found["loss.relation"] == pytest.approx(0)
    assert found["loss.subject"] == pytest.approx(np.log(8))
    assert found["distance.relation"] == pytest.approx(0)


def test_relations_are_learned_first_and_then_the_facts() -> None:
    rows = list(stages(draws=60, seed=0, S=16, R=4, D=8, T=32, noise=20, until=1200))
    assert rows[0]["loss"] == pytest.approx(np.log(32), abs=1e-6)
    nearest = min(rows, key=lambda row: abs(row["loss"] - np.log(8)))
    assert nearest["loss"] == pytest.approx(np.log(8), abs=0.02)
    assert nearest["loss.relation"] < 0.02
    assert nearest["distance.relation"] < 0.05
    assert rows[-1]["loss"] < 0.05
    assert max(row["drift"] for row in rows) < 1e-9

"""The best predictor of noisy recall and its levels, against all sequences of small texts, one by one."""

from collections import defaultdict
from itertools import product
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.specs import Check
from engram.tasks import Batch
from engram.tasks.noisy import NoisyRecall
from engram.theory.noisy import best_law, noisy_levels


class Every(NamedTuple):
    """Every sequence z_1 … z_{T+1} with every output, and the probability of the two, straight from the definition."""

    z: np.ndarray
    output: np.ndarray
    p: np.ndarray

    @classmethod
    def of(cls, task: NoisyRecall, alpha: float) -> "Every":
        letters = task.N - (task.noise == "extra")
        z = np.array(list(product(range(task.N), repeat=task.T + 1))).repeat(letters, axis=0)
        output = np.arange(len(z)) % letters
        p = task.table.unigram[z[:, 0]] / letters
        for now, after in zip(z.T, z.T[1:], strict=False):
            coin = alpha * (after == task.noise_token) + (1 - alpha) * (after == output)
            p = p * np.where(now == task.trigger, coin, task.table.bigram[now, after])
        assert p.sum() == pytest.approx(1)
        return cls(z[p > 0], output[p > 0], p[p > 0])

    def in_context(self, trigger: int) -> np.ndarray:
        """By hand: the second or a later visit of the trigger."""
        visits = [[t > 0 and z[t] == trigger and trigger in z[:t] for t in range(len(z) - 1)] for z in self.z.tolist()]
        return np.array(visits)

    def laws(self, task: NoisyRecall) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The sequence and the place of every position in context, and the best law there."""
        read = self.in_context(task.trigger)
        found = best_law(task, Batch(self.z[:, :-1], self.z[:, 1:], {"in_context": read}))
        sequence, place = np.nonzero(read)
        return sequence, place, found


def task_of(tmp_path: Path, text: str, **fields: Any) -> NoisyRecall:
    (tmp_path / "text").write_text(text)
    return NoisyRecall.model_validate({"corpus": str(tmp_path / "text")} | fields)


TEXTS = {"three letters": "abacabbcaacb", "four letters": "abacadbbdcaacbda", "a trap": "aabaacaab"}
TASKS: list[tuple[str, dict[str, Any]]] = [
    ("three letters", {"T": 5, "alpha": 0.5}),
    ("three letters", {"T": 5, "alpha": 0.0}),
    ("three letters", {"T": 5, "alpha": 0.9, "offset": 1}),
    ("three letters", {"T": 4, "alpha": 0.3, "noise": "extra"}),
    ("four letters", {"T": 4, "alpha": 0.5}),
    ("four letters", {"T": 4, "alpha": 0.7, "offset": 1}),
    ("a trap", {"T": 5, "alpha": 0.25}),
]
each_task = pytest.mark.parametrize(("text", "fields"), TASKS, ids=[f"{text} {fields}" for text, fields in TASKS])


@each_task
def test_the_best_law_is_the_posterior(tmp_path: Path, text: str, fields: dict[str, Any]) -> None:
    """P(z_{t+1} | z_1 … z_t) summed over all sequences: the whole past is given, so no other token tells anything."""
    task = task_of(tmp_path, TEXTS[text], **fields)
    every = Every.of(task, task.alpha)
    follows: dict[tuple[int, ...], np.ndarray] = defaultdict(lambda: np.zeros(task.N))
    places = list(zip(*every.laws(task), strict=True))
    for i, t, _ in places:
        follows[tuple(every.z[i, : t + 1])][every.z[i, t + 1]] += every.p[i]
    assert len(follows) > 10
    for i, t, law in places:
        weights = follows[tuple(every.z[i, : t + 1])]
        assert np.abs(law - weights / weights.sum()).max() < 1e-12


@each_task
def test_levels_are_sums_over_all_sequences(tmp_path: Path, text: str, fields: dict[str, Any]) -> None:
    task = task_of(tmp_path, TEXTS[text], **fields)
    found = noisy_levels(task)
    every, clean = Every.of(task, task.alpha), Every.of(task, 0.0)
    i, t, law = every.laws(task)
    assert found.floor == pytest.approx(mean(-np.log(at(law, every.z[i, t + 1])), every.p[i]), abs=1e-12)
    i, t, law = clean.laws(task)
    right = at(law, clean.output[i])
    for name, values in {"p_noise": law[:, task.noise_token], "p_correct": right, "clean_loss": -np.log(right)}.items():
        assert getattr(found, name) == pytest.approx(mean(values, clean.p[i]), abs=1e-12), name


def at(law: np.ndarray, token: np.ndarray) -> np.ndarray:
    return law[np.arange(len(law)), token]


def mean(values: np.ndarray, weights: np.ndarray) -> float:
    return float(values @ weights / weights.sum())


@given(alpha=st.floats(0, 0.9), noise=st.sampled_from(["existing", "extra"]), seed=st.integers(0, 99))
@settings(max_examples=25)
def test_the_best_law_is_a_law_and_holds_what_comes(alpha: float, noise: Any, seed: int) -> None:
    task = NoisyRecall(T=40, alpha=alpha, noise=noise)
    batch = task.sample(seed, 0, 4)
    law, read = best_law(task, batch), batch.groups["in_context"]
    assert law.shape == (read.sum(), task.N)
    assert law.sum(axis=1) == pytest.approx(1)
    assert (law >= 0).all()
    assert (at(law, batch.targets[read]) > 0).all()


@pytest.mark.parametrize("noise", ["existing", "extra"])
@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.5])
def test_levels_are_what_sampled_sequences_show(noise: Any, alpha: float) -> None:
    """On the real text, within 5 standard errors of ratios over sequences."""
    task = NoisyRecall(T=128, alpha=alpha, noise=noise)
    found = noisy_levels(task)
    for sampled, expected in ((task, found.floor), (task.clean, found.clean_loss)):
        batch = sampled.sample(11, 0, 1500)
        read, loss = batch.groups["in_context"], np.zeros(batch.tokens.shape)
        law = best_law(task, batch)
        loss[read] = -np.log(at(law, batch.targets[read]))
        sums, counts = loss.sum(axis=1), read.sum(axis=1)
        error = np.std(sums - expected * counts) / counts.mean() / np.sqrt(len(sums))
        assert abs(sums.sum() / counts.sum() - expected) <= 5 * error + 1e-12


def test_the_published_levels() -> None:
    """With α = ½ the floor is about ln 2 + 0.05; on clean text noise and output have one half each, loss about ln 2."""
    found = noisy_levels(NoisyRecall())
    assert log(2) + 0.03 < found.floor < log(2) + 0.07
    assert [found.p_noise, found.p_correct] == pytest.approx([0.5, 0.5], abs=0.02)
    assert found.clean_loss == pytest.approx(log(2), abs=0.03)
    without = noisy_levels(NoisyRecall().clean)
    assert [without.floor, without.p_correct, without.clean_loss] == pytest.approx([0, 1, 0], abs=1e-12)


def test_a_check_can_ask_for_the_levels() -> None:
    (row,) = Check(law="noisy.levels", sizes={"alpha": 0.5, "T": 32}).function(draws=1, seed=0, alpha=0.5, T=32)
    found = noisy_levels(NoisyRecall(T=32))
    assert row == {
        "floor": found.floor, "clean.p_noise": found.p_noise, "clean.p_correct": found.p_correct,
        "clean.loss": found.clean_loss,
    }  # fmt: skip

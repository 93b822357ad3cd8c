"""Laws of noisy recall: the bigram task with one trigger, after which a noise token comes instead of the output."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import engram
from engram.errors import EngramError
from engram.lab.pictures import levels
from engram.lab.presets import fields_of
from engram.learning import SGD, Plan
from engram.models import Transformer
from engram.specs import Train
from engram.specs.encode import decode, encode
from engram.tasks import Batch, Bigram
from engram.tasks.batch import marks_of
from engram.tasks.corpus import as_a_record_says
from engram.tasks.noisy import NoisyRecall
from engram.theory.noisy import noisy_levels
from test_odd_files import forget_texts

noisy_tasks = st.builds(
    NoisyRecall,
    T=st.integers(2, 60),
    alpha=st.floats(0, 0.9),
    offset=st.integers(0, 30),
    noise=st.sampled_from(["existing", "extra"]),
)


@given(task=noisy_tasks, seed=st.integers(0, 2**40), step=st.integers(0, 2**41))
@settings(max_examples=40)
def test_sequences_follow_their_law(task: NoisyRecall, seed: int, step: int) -> None:
    batch, again = task.sample(seed, step, 5), task.sample(seed, step, 5)
    assert np.array_equal(batch.tokens, again.tokens)
    assert np.array_equal(batch.targets, again.targets)
    batch.check(task, 5, "all")
    assert np.array_equal(batch.tokens[:, 1:], batch.targets[:, :-1])
    at_trigger = batch.tokens == task.trigger
    assert np.array_equal(at_trigger, batch.groups["first"] | batch.groups["in_context"])
    assert (task.table.bigram[batch.tokens, batch.targets] > 0)[~at_trigger].all()
    for answers, here in zip(batch.targets, at_trigger, strict=True):  # a sequence has one output
        assert len(set(answers[here].tolist()) - {task.noise_token}) <= 1


def visits_by_hand(batch: Batch, trigger: int) -> None:
    for b, tokens in enumerate(batch.tokens.tolist()):
        for t, z in enumerate(tokens):
            visit = tokens[: t + 1].count(z) if z == trigger else 0
            group = {0: "global", 1: "first"}.get(visit, "in_context")
            assert [name for name, mask in batch.groups.items() if mask[b, t]] == [group]


def test_groups_count_visits_of_the_trigger() -> None:
    task = NoisyRecall(T=80)
    visits_by_hand(task.sample(3, 1, 8), task.trigger)


@given(task=noisy_tasks, seed=st.integers(0, 99))
@settings(max_examples=30)
def test_without_noise_it_is_the_bigram_task(task: NoisyRecall, seed: int) -> None:
    """To the token: the same stream draws outputs and text, and the coins come last."""
    other = Bigram(K=1, T=task.T, triggers="fixed", offset=task.offset)
    ours, theirs = task.clean.sample(seed, 3, 6), other.sample(seed, 3, 6)
    assert np.array_equal(ours.tokens, theirs.tokens)
    assert np.array_equal(ours.targets, theirs.targets)
    assert all(np.array_equal(ours.groups[name], theirs.groups[name]) for name in other.groups)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("noise", ["existing", "extra"])
def test_noise_comes_with_its_probability(alpha: float, noise: Any) -> None:
    """Among visits in sequences whose output is another token: within the central 1 − 10⁻⁶ of a binomial law."""
    task = NoisyRecall(T=256, alpha=alpha, noise=noise)
    batch, clean = task.sample(1, 0, 300), task.clean.sample(1, 0, 300)  # the same outputs: coins are drawn last
    output = np.where(clean.groups["first"], clean.targets, 0).sum(axis=1, keepdims=True)
    visited = clean.groups["first"].any(axis=1, keepdims=True) & (batch.tokens == task.trigger)
    told = batch.targets[visited & (output != task.noise_token)]
    low, high = binom.interval(1 - 1e-6, told.size, alpha)
    assert told.size > 5000
    assert low <= (told == task.noise_token).sum() <= high
    assert set(batch.targets[visited & (output == task.noise_token)].tolist()) <= {task.noise_token}


def test_coins_of_a_sequence_are_independent() -> None:
    """A visit says nothing about the next: noise after noise is as frequent as noise after the output."""
    task = NoisyRecall(T=256, alpha=0.5, noise="extra")
    batch = task.sample(2, 0, 300)
    counts = np.zeros((2, 2), dtype=int)
    for targets, here in zip(batch.targets, batch.tokens == task.trigger, strict=True):
        coins = (targets[here] == task.noise_token).astype(int)
        np.add.at(counts, (coins[:-1], coins[1:]), 1)
    for row in counts:
        low, high = binom.interval(1 - 1e-6, row.sum(), 0.5)
        assert low <= row[1] <= high


def test_the_published_setting() -> None:
    """Chen, Bruna and Bietti: the space triggers, '!' is the noise, 65 tokens; uniform outputs exclude nothing."""
    task = NoisyRecall()
    assert (task.N, task.T, task.alpha, task.trigger, task.noise_token) == (65, 256, 0.5, 1, 2)
    assert (task.alphabet[1], task.alphabet[2]) == (" ", "!")
    assert task.clean == NoisyRecall(alpha=0.0)
    assert task.fixed_triggers.tolist() == [1]
    outputs = task.draw_outputs(np.random.default_rng(0), 20_000)
    assert set(outputs.tolist()) == set(range(65))
    assert engram.NoisyRecall is NoisyRecall


def test_an_extra_token_is_followed_by_the_unigram() -> None:
    task = NoisyRecall(noise="extra")
    assert (task.N, task.noise_token) == (66, 65)
    assert task.draw_outputs(np.random.default_rng(0), 20_000).max() == 64  # it is never an output
    assert np.array_equal(task.table.bigram[65, :65], Bigram().table.unigram)
    assert task.table.bigram.sum(axis=1) == pytest.approx(1)
    assert not task.table.bigram[:, 65].any()
    batch = task.sample(0, 0, 200)
    assert (batch.tokens[:, 1:] == 65)[batch.tokens[:, :-1] == task.trigger].mean() > 0.4
    assert not (batch.tokens[:, 1:] == 65)[batch.tokens[:, :-1] != task.trigger].any()


def test_every_token_has_a_visible_mark_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("ab✶ab✷ba")
    own = NoisyRecall.model_validate({"corpus": str(tmp_path / "text"), "noise": "extra"})
    for task in (NoisyRecall(noise="extra"), own):
        marks = marks_of(task)
        assert len(set(task.alphabet)) == len(marks) == task.N
        assert all(mark.isprintable() and mark.strip() for mark in marks)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"alpha": -0.1}, r"task\.alpha: .*greater than or equal to 0; got -0\.1"),
    ({"alpha": 1.0}, r"task\.alpha: .*less than or equal to 0\.9; got 1\.0"),
    ({"alpha": float("nan")}, r"task\.alpha: .*finite number"),
    ({"T": 1}, r"task\.T: .*greater than or equal to 2; got 1"),
    ({"noise": "new"}, r"task\.noise: .*'existing' or 'extra'; got 'new'"),
    ({"offset": 65}, r"task\.offset: 65 is beyond the 65 tokens of the text; at most 64"),
    ({"offset": 46}, r"task\.offset: 46 makes the noise token '!' the trigger; choose another, or noise='extra'"),
    ({"K": 3}, r"task\.K: no such field in NoisyRecall"),
]


@pytest.mark.parametrize(("fields", "says"), BAD, ids=[says for _, says in BAD])
def test_bad_input_is_told_in_one_line(fields: dict[str, Any], says: str) -> None:
    spec = encode(trained(NoisyRecall()))
    spec["task"] |= fields
    with pytest.raises(EngramError, match=says) as error:
        decode(spec)
    assert "\n" not in str(error.value)


def trained(task: NoisyRecall, **plan: Any) -> Train:
    how = Plan(optimiser=SGD(lr=0.1), steps=2, batch=2, trained=("U",), **plan)
    return Train(task=task, model=Transformer(d=8, hidden=8), plan=how)


def test_a_text_needs_three_letters_for_an_existing_noise_token(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abab")
    with pytest.raises(ValueError, match=r"noise: 'existing' is the third letter of the text, which has 2; .*'extra'"):
        NoisyRecall.model_validate({"corpus": str(tmp_path / "text")})
    assert NoisyRecall.model_validate({"corpus": str(tmp_path / "text"), "noise": "extra"}).N == 3


def test_a_text_that_a_record_names_is_not_read_before_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abracadabra")
    stored = encode(NoisyRecall.model_validate({"corpus": str(tmp_path / "text"), "offset": 4}))
    (tmp_path / "text").unlink()
    forget_texts()
    with as_a_record_says():
        task = decode(stored | {"offset": 9})
        assert task.N == 0
    with pytest.raises(EngramError, match=r"task\.corpus: cannot read"):
        task.sample(0, 0, 2)
    (tmp_path / "text").write_text("abracadabra")
    with pytest.raises(EngramError, match=r"task\.offset: 9 is beyond the 5 tokens"):
        task.sample(0, 0, 2)


def test_the_lab_knows_its_fields_and_levels() -> None:
    spec = trained(NoisyRecall(T=64))
    assert {"task.T", "task.alpha", "task.noise"} <= {field["name"] for field in fields_of(spec)}
    found = {level["name"]: level for level in levels(spec)}
    assert found["in-context floor"] == {
        "column": "loss.in_context", "value": noisy_levels(NoisyRecall(T=64)).floor, "name": "in-context floor",
    }  # fmt: skip
    assert found["blind guess, ln N"]["value"] == pytest.approx(np.log(65))

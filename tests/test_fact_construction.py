"""Constructions of factual recall: heads find their member, scores count answer sets, and facts are answered."""

import pytest
import torch

from engram.laws.construction import fact_logits, of_attention, of_mlp
from engram.models.construct import construct_attention_only, construct_with_mlp
from engram.tasks.facts import Facts

BOOK = Facts(S=8, R=8, D=4).book(0)


def test_heads_attend_to_their_member_or_to_eos() -> None:
    built = construct_attention_only(BOOK, 512, 64, 4, 0)
    tokens = torch.from_numpy(BOOK.sample(0, 0, 20).tokens)
    attention = built.model.forward(built.weights, tokens).attention
    for h, owned in enumerate(built.sets):
        for prompt, weights in zip(tokens, attention[:, h], strict=True):
            here = [t for t, z in enumerate(prompt.tolist()) if z in owned] or [len(prompt) - 1]
            assert weights[here].sum() == pytest.approx(1, abs=1e-6)


def test_scores_count_the_sets_an_answer_lies_in() -> None:
    (row,) = of_attention(draws=1, seed=0, S=8, R=8, D=4, d=1024, d_h=256, members=4)
    assert row["accuracy"] == 1
    for count in (2, 1, 0):
        assert row[f"score.{count}"] == pytest.approx(count, abs=0.1)
    assert row["filter.wrong"] < 0.01


def test_more_width_is_better() -> None:
    narrow, wide = (
        next(of_attention(draws=1, seed=0, S=16, R=16, D=8, d=d, d_h=d // 4, members=4))["accuracy"] for d in (64, 512)
    )
    assert narrow < 0.6 < 0.9 < wide


def test_an_mlp_stores_what_heads_copy() -> None:
    (row,) = of_mlp(draws=1, seed=0, S=8, R=8, D=4, d=256, d_h=32, members=2, m=4096)
    assert row["accuracy"] == 1


def test_facts_are_read_off_any_noise() -> None:
    built = construct_with_mlp(BOOK, 256, 64, 2, 4096, 0)
    first, second = fact_logits(built, BOOK, 0), fact_logits(built, BOOK, 1)
    assert torch.allclose(first, second, atol=1e-6)

"""The data of Theorem 3: patterns are all sequences, and samples follow the same law."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from engram.errors import EngramError
from engram.tasks.second_visit import SecondVisit, growth_strings

PAIRS = ("distinct", "natural")


def canonical(tokens: Any, label: int) -> tuple[int, ...]:
    """Tokens and label, renamed in the order: trigger, output, others as they come."""
    names: dict[int, int] = {}
    for token in (tokens[-1], label, *tokens):
        names.setdefault(int(token), len(names))
    return (*(names[int(token)] for token in tokens), names[label])


def by_counting(N: int, T: int, pairs: str) -> Counter[tuple[int, ...]]:
    """P(pattern) from all N^(T+1) sequences of uniform bigrams with one trigger, cut at its second visit."""
    found: Counter[tuple[int, ...]] = Counter()
    for q in range(N):
        for tokens in itertools.product(range(N), repeat=T):
            visits = [t for t in range(T) if tokens[t] == q]
            if tokens[-1] != q or len(visits) != 2:
                continue
            o = tokens[visits[0] + 1]
            if pairs == "natural" or o != q:
                weight = N ** -float(T - 1)  # z_{t_q + 1} = o given, all else uniform
                found[canonical(tokens, o)] += weight
    whole = sum(found.values())
    return Counter({pattern: p / whole for pattern, p in found.items()})


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize(("N", "T"), [(2, 5), (3, 5), (4, 6), (6, 4)])
def test_patterns_are_all_sequences_up_to_relabelling(N: int, T: int, pairs: Any) -> None:
    law = SecondVisit(N=N, T=T, pairs=pairs).patterns()
    found = Counter({canonical(z, int(y)): p for z, y, p in zip(law.tokens, law.labels, law.p, strict=True)})
    counted = by_counting(N, T, pairs)
    assert sum(law.p) == pytest.approx(1, abs=1e-12)
    assert found.keys() == counted.keys()
    assert all(found[pattern] == pytest.approx(counted[pattern], abs=1e-12) for pattern in counted)


@pytest.mark.parametrize("pairs", PAIRS)
def test_samples_follow_the_patterns(pairs: Any) -> None:
    task, n = SecondVisit(N=5, T=6, pairs=pairs), 20_000
    batch = task.sample(0, 0, n)
    seen = Counter(canonical(z, int(y)) for z, y in zip(batch.tokens, batch.targets[:, -1], strict=True))
    law = task.patterns()
    wanted = {canonical(z, int(y)): p for z, y, p in zip(law.tokens, law.labels, law.p, strict=True)}
    assert seen.keys() <= wanted.keys()
    for pattern, p in wanted.items():
        assert abs(seen[pattern] - n * p) < 5 * (n * p * (1 - p)) ** 0.5 + 5, pattern
    assert (batch.groups["in_context"].sum(axis=1) == 1).all()
    batch.check(task, n, "all")


def test_growth_strings_are_counted_by_bell_numbers() -> None:
    assert [len(growth_strings(n, 0)[0]) for n in range(7)] == [1, 1, 2, 5, 15, 52, 203]
    assert np.array_equal(growth_strings(3, 1)[1], growth_strings(3, 1)[0].max(axis=1).clip(0))


def test_too_long_sequences_are_refused() -> None:
    with pytest.raises(EngramError, match="too many patterns to enumerate; use T ≤ 12"):
        SecondVisit(T=13).patterns()

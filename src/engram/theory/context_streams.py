"""How many samples one step needs, counted: noise behind the trigger, and in-context recall (see context_samples).

Both look at ever more samples of the same streams: the first n samples of a stream are the same for every n. The
streams of attention are drawn again for each n, in blocks, so that one at a time is kept.
"""

from collections.abc import Callable, Iterator
from math import ceil

import numpy as np
from jaxtyping import Bool, Int

from engram.errors import EngramError
from engram.theory.context_gradients import Bags, check_sizes, draw_bags
from engram.theory.context_samples import LONGEST, RECALLED, crossing
from engram.values import Rows, generator, law

BLOCK = 4096  # samples that are drawn at once
LABELS = 32  # the same for the feed-forward path
ENTRIES_AT_ONCE = 2**24  # pairs (label, token) that are counted at once
MOST = 2**22  # samples
TOLERANCE = 1 / 32  # the search ends when the numbers that passed and failed differ by this share, or by one


@law("context.feedforward")
def feedforward(draws: int, seed: int, N: int, alpha: float = 0.5) -> Rows:
    """The smallest n at which noise leads in a share of 0.95 of `draws` streams, and where that share is crossed."""
    check_sizes(N, 3, alpha)
    steps = 2 * LABELS
    while steps <= LONGEST:
        found = crossing(np.concatenate([[0.0], noise_wins(seed, draws, steps, N, alpha).mean(0)]))
        if found is not None:
            yield {"n": ceil(found), "crossing": found}
            return
        steps *= 2
    raise EngramError(f"alpha: {alpha} needs more than {LONGEST} samples at N={N}; take a larger alpha")


def noise_wins(seed: int, streams: int, steps: int, N: int, alpha: float) -> Bool[np.ndarray, "streams steps"]:
    """Whether noise has the most labels of the first 1, 2, … steps, and no other token as many."""
    blocks = [_labels(generator(seed, "context.feedforward", b), streams, N, alpha) for b in range(-(-steps // LABELS))]
    labels = np.concatenate(blocks, axis=1)[:, :steps]
    noise = (labels == N).cumsum(1)
    return noise > np.maximum.accumulate(np.where(labels == N, 0, _occurrences(labels)), axis=1)


def _labels(rng: np.random.Generator, streams: int, N: int, alpha: float) -> Int[np.ndarray, "streams labels"]:
    others = rng.integers(N - 1, size=(streams, LABELS))
    return np.where(rng.random((streams, LABELS)) < alpha, N, others)


def _occurrences(labels: Int[np.ndarray, "streams steps"]) -> Int[np.ndarray, "streams steps"]:
    """The how-manieth label of its kind each one is in its stream."""
    steps = range(labels.shape[1])
    return np.stack([(labels[:, : t + 1] == labels[:, t : t + 1]).sum(1) for t in steps], axis=1)


@law("context.attention")
def attention(draws: int, seed: int, N: int, T: int = 16, alpha: float = 0.5) -> Rows:
    """Where the share of recalled tokens, a mean over `draws` streams, crosses 0.9, and the shares on both sides.

    The search halves down to two numbers of samples that differ by 3 %; between them the share is a line.
    """
    check_sizes(N, T, alpha)

    def share(n: int) -> float:
        return sum(recalled(seed, stream, n, N, T, alpha) for stream in range(draws)) / draws

    (low, below), (high, above) = _crossing(share, N)
    between = low + (high - low) * (RECALLED - below) / (above - below)
    yield {"crossing": between, "share": above, "below": below}


def _crossing(share: Callable[[int], float], n: int) -> tuple[tuple[int, float], tuple[int, float]]:
    """Two neighbouring numbers of samples with their shares, below the level and not; n is tried first."""
    low, high = (0, 0.0), (n, share(n))
    while high[1] < RECALLED:
        if high[0] > MOST:
            raise EngramError(f"alpha: more than {MOST} samples are needed; take a smaller alpha or N")
        low, high = high, (2 * high[0], share(2 * high[0]))
    while high[0] - low[0] > max(1, TOLERANCE * low[0]):
        middle = (low[0] + high[0]) // 2
        found = (middle, share(middle))
        low, high = (low, found) if found[1] >= RECALLED else (found, high)
    return low, high


def recalled(seed: int, stream: int, n: int, N: int, T: int, alpha: float) -> float:
    """The share of tokens j whose own label has the largest count of their column, noise left out; ties are misses."""
    bags = _first(seed, stream, n, N, T, alpha)
    return sum(_hits(bags, columns, N) for columns in _parts(N)) / (N - 1)


def _first(seed: int, stream: int, n: int, N: int, T: int, alpha: float) -> Bags:
    """The first n samples of a stream, without those whose label is noise."""
    blocks = range(-(-n // BLOCK))
    drawn = [draw_bags(generator(seed, f"context.attention.{stream}", b), BLOCK, N, T, alpha) for b in blocks]
    labels = np.concatenate([bags.labels for bags in drawn])[:n]
    tokens = np.concatenate([bags.tokens for bags in drawn])[:n]
    return Bags(labels[labels < N], tokens[labels < N])


def _parts(N: int) -> Iterator[range]:
    """The tokens besides trigger and noise, as many at once as may be counted."""
    width = max(1, ENTRIES_AT_ONCE // (N - 1))
    return (range(begun, min(begun + width, N - 1)) for begun in range(0, N - 1, width))


def _hits(bags: Bags, columns: range, N: int) -> int:
    """How many of these tokens are recalled."""
    inside = (bags.tokens >= columns.start) & (bags.tokens < columns.stop)
    asked, labels = bags.tokens[inside].astype(int) - columns.start, np.repeat(bags.labels, inside.sum(1))
    pairs = asked * (N - 1) + labels
    counts = np.bincount(pairs, minlength=len(columns) * (N - 1)).reshape(len(columns), N - 1)
    rows = np.arange(len(columns))
    own = counts[rows, columns].copy()
    counts[rows, columns] = 0
    return int((own > counts.max(1)).sum())

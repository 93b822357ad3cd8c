"""Of a long curve the points that a drawing needs."""

import numpy as np

STRETCHES = 1000  # a line on a screen is not much wider


def thinned(steps: np.ndarray, values: np.ndarray, stretches: int = STRETCHES) -> np.ndarray:
    """Indices of the first, the lowest and the highest point in each stretch of steps, and of the last point of all.

    A curve of few points keeps all of them; no peak is lost of the others.
    """
    if len(steps) <= 4 * stretches:
        return np.arange(len(steps))
    ends = np.linspace(steps[0], steps[-1] + 1, stretches + 1)[1:]
    parts = np.split(values, np.searchsorted(steps, ends[:-1]))
    begin = np.cumsum([0, *map(len, parts)])
    chosen = [b + i for b, part in zip(begin, parts, strict=False) if len(part) for i in _extremes(part)]
    return np.unique([*chosen, len(steps) - 1])


def _extremes(part: np.ndarray) -> tuple[int, int, int]:
    return 0, int(np.argmin(part)), int(np.argmax(part))

"""The feed-forward matrix learns the noise behind a trigger from a few samples, the value matrix recalls after many.

One layer, matrices that are zero, one gradient step on n samples. A sequence has T tokens: the trigger q, behind it
noise with probability α or else an output ō, fillers, and q again; the label is noise or ō by a second coin. W_F has
learned when noise leads its scores at q with probability 0.95. W_V under uniform attention has learned when 90 % of all
tokens are the answer to themselves, noise left out (with it, noise is the answer to everything). How many samples this
takes is known: engram.theory.context_samples.

    engram run context.samples --seeds 5
"""

from typing import Any

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks
from engram.claims.fits import Curve, by_seed, exponent, slope
from engram.experiments.context import SOURCE as SOURCE
from engram.theory.context_samples import attention_samples, feedforward_crossing

CLAIMS = {
    "context.feedforward-few-samples": "One step of the feed-forward matrix learns the noise from O(1) samples.",
    "context.attention-many-samples": "One step of the value matrix needs about N^0.7 samples to recall in context "
    "(T = 16, N up to 512), and more steeply beyond.",
    "context.samples-theory": "The closed forms give the samples that attention needs within 5 %, and the feed-forward "
    "matrix within 10 %.",
    "context.samples-alpha": "With more noise the feed-forward matrix needs fewer samples, like α^−1.36, and attention "
    "more, like (1−α)^−2.3 (N = 512, T = 16, α = 0.1 … 0.8).",
}
SIZES = {
    "smoke": (16, 32, 64, 128),
    "quick": (64, 128, 256, 512, 1024, 2048),
    "paper": (64, 128, 256, 512, 1024, 2048, 4096, 8192),
}
MIDDLE = {"smoke": 32, "quick": 512, "paper": 512}  # here the exponent is expected to rise; and α varies at this N
T = {"smoke": 8, "quick": 16, "paper": 16}
LENGTHS = {"smoke": (6,), "quick": (8, 32), "paper": (8, 32, 64)}  # besides T, at the smallest and at the middle N
ALPHA, ALPHAS = 0.5, (0.1, 0.2, 0.4, 0.8)
TOKENS = {"smoke": 256, "quick": 8192, "paper": 32_768}  # over which the share of recalled ones is a mean
STREAMS = {"smoke": 500, "quick": 4000, "paper": 20_000}
By = dict[Any, list[float]]


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By ("feedforward", N, α) and ("attention", N, T, α)."""
    middle, few = MIDDLE[scale], STREAMS[scale]
    ff = [*((N, ALPHA) for N in SIZES[scale]), *((middle, alpha) for alpha in ALPHAS)]
    lengths = [(N, length, ALPHA) for N in (SIZES[scale][0], middle) for length in LENGTHS[scale]]
    noises = [(middle, T[scale], alpha) for alpha in ALPHAS]
    att = [*((N, T[scale], ALPHA) for N in SIZES[scale]), *lengths, *noises]
    return {
        **{("feedforward", N, a): checks("context.feedforward", seeds, few, N=N, alpha=a) for N, a in ff},
        **{
            ("attention", N, length, a): checks(
                "context.attention", seeds, max(2, TOKENS[scale] // N), N=N, T=length, alpha=a
            )
            for N, length, a in att
        },
    }


def claims(runs: Runs) -> Claimed:
    sizes, middle = SIZES[runs.scale], MIDDLE[runs.scale]
    ff, att = by_size(runs, "feedforward"), by_size(runs, "attention")
    name = f"feed-forward: exponent of n in N, N = {sizes[0]} … {sizes[-1]}"
    yield "context.feedforward-few-samples", [exponent(name, by_seed(ff), -0.1, 0.1)]
    yield "context.attention-many-samples", [*_rising(by_seed(att), sizes, middle)]
    yield "context.samples-theory", [*_ratios(runs)]
    faster, slower = (by_seed(by_alpha(runs, path)) for path in ("feedforward", "attention"))
    clean = [[(1 - alpha, n) for alpha, n in curve] for curve in slower]
    alphas = [
        exponent(f"feed-forward: exponent of n in α, N = {middle}", faster, -1.46, -1.26),
        exponent(f"attention: exponent of n in 1 − α, N = {middle}", clean, -2.4, -2.2),
    ]
    yield "context.samples-alpha", alphas


def _rising(curves: list[Curve], sizes: tuple[int, ...], middle: int) -> Measures:
    """The exponent up to the middle size, and how much larger it is from there on."""
    small, large = f"N = {sizes[0]} … {middle}", f"N = {middle} … {sizes[-1]}"
    low, high = ([[point for point in curve if inside(point[0])] for curve in curves] for inside in _sides(middle))
    yield exponent(f"attention: exponent of n in N, {small}", low, 0.6, 0.8)
    yield Measure.difference(
        f"attention: exponent over {large} minus that over {small}", [*map(slope, high)], [*map(slope, low)]
    )


def _sides(middle: int) -> tuple[Any, Any]:
    return lambda N: middle >= N, lambda N: middle <= N


def _ratios(runs: Runs) -> Measures:
    """What was measured over what was predicted."""
    for (path, *shape), records in runs.items():
        found = [record.last("crossing") for record in records]
        if path == "attention":
            N, length, alpha = shape
            name, law, within = f"attention, N = {N}, T = {length}, α = {alpha}", attention_samples(*shape), 0.05
        else:
            N, alpha = shape
            name, law, within = f"feed-forward, N = {N}, α = {alpha}", feedforward_crossing(*shape), 0.1
        ratios = [n / law for n in found]
        yield Measure.over_seeds(f"{name}: measured n over predicted", ratios, 1 - within, 1 + within)


def by_size(runs: Runs, path: str, length: int | None = None) -> By:
    """Over seeds, n by N at α = 0.5, for one length."""
    wanted = (ALPHA,) if path == "feedforward" else (length or T[runs.scale], ALPHA)
    return {label[1]: _measured(runs, label) for label in runs if label[0] == path and label[2:] == wanted}


def by_alpha(runs: Runs, path: str) -> By:
    """Over seeds, n by α at the middle N."""
    middle = MIDDLE[runs.scale]
    shape = () if path == "feedforward" else (T[runs.scale],)
    return {alpha: _measured(runs, (path, middle, *shape, alpha)) for alpha in ALPHAS}


def _measured(runs: Runs, label: tuple[Any, ...]) -> list[float]:
    return [record.last("crossing") for record in runs[label]]


def figure(runs: Runs) -> Figure:
    from engram.show.context import samples_figure

    lengths = sorted((T[runs.scale], *LENGTHS[runs.scale]))
    return samples_figure(
        by_size(runs, "feedforward"),
        {length: by_size(runs, "attention", length) for length in lengths},
        {path: by_alpha(runs, path) for path in ("feedforward", "attention")},
        (MIDDLE[runs.scale], T[runs.scale]),
    )

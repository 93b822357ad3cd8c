"""Figures of laws that need no training: measured numbers beside what theory says."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.claims import Measure
from engram.records import Record
from engram.records.files import Row
from engram.show.gradient_steps import error_bars
from engram.show.panels import BySize, dots, finished, legends_below, lines_and_mean, listed, log_sizes, panels
from engram.show.style import MUTED, REFERENCE, THEORY, house_style
from engram.theory.capacity import low_rank_margin_variance, margin_variance
from engram.theory.margins import slides_bound
from engram.theory.one_step import extreme_scores

NORMS = {"W0 u": "‖W0 u‖", "ΔW u": "‖ΔW u‖", "relative": "‖ΔW‖/‖W0‖ (Frobenius)"}


@house_style()
def law_ratios(ratios: Mapping[str, Measure], variances: BySize, errors: Mapping[str, Measure]) -> Figure:
    """Overlaps over their laws with band; the variance of x·Wx beside two formulas; errors of closed forms."""
    left, middle, right = panels(12.6, 0.3 * len(ratios) + 1.6, 1, 3, width_ratios=(1.2, 1, 1))
    for y, measure in enumerate(ratios.values()):
        _interval(left, measure, y)
    left.axvline(1, **THEORY)  # the title names it
    left.set_yticks(range(len(ratios)), list(ratios))
    left.set(
        xlabel="measured / law (bars: 95 %, grey: band)", title="Variances of overlaps (dashed: law)", xlim=(0.95, 1.05)
    )
    listed(left)
    _counted_pairs(middle, variances)
    error_bars(right, {name: measure.measured for name, measure in errors.items()}, height=0.5)
    right.set(xlabel="largest error of any entry", title="Gradients against autograd")
    return finished(middle)


def _interval(ax: Axes, measure: Measure, y: int) -> None:
    low, high = measure.interval if isfinite(measure.interval[0]) else (measure.measured, measure.measured)
    ax.barh(y, measure.high - measure.low, left=measure.low, height=0.7, color=MUTED, alpha=0.15)
    ax.plot([low, high], [y, y], color="C0", lw=2)
    ax.plot(measure.measured, y, "o", color="C0", ms=5)


def _counted_pairs(ax: Axes, variances: BySize) -> None:
    """d · Var x·Wx, which tends to 1, and to 1/2 by the paper's count of pairs."""
    widths = np.geomspace(min(variances) / 1.4, max(variances) * 1.4, 50)
    dots(ax, [(d, d * value) for d, values in variances.items() for value in values], 0, "measured")
    ax.plot(widths, (widths + 2) / widths, **THEORY, label="d(d−1) pairs: (d+2)/d")
    ax.plot(widths, (widths + 5) / (2 * widths), color="C1", ls=":", lw=1.4, label="as printed, d(d−1)/2 pairs")
    ax.set(xlabel="width d", ylabel="d · variance of x·Wx", title="Erratum: pairs i ≠ j", ylim=(0, 1.6))
    log_sizes(ax, variances)


@house_style()
def scores_by_position(records: Sequence[Record]) -> Figure:
    """Right scores and the extremes of right and wrong ones at each position after one step, in units of η/N."""
    ax = panels(8.6, 5)
    sizes = records[0].check.sizes
    N, d = sizes["N"], sizes["d"]
    columns = {
        "right.mean": f"right answers: mean of {N}",
        "right.least": f"right answers: least of {N}",
        "wrong.most": f"wrong answers: largest of {N * (N - 1):,}",
    }
    for i, (column, label) in enumerate(columns.items()):
        curves = [(range(1, len(record.rows) + 1), record.column(column)) for record in records]
        lines_and_mean(ax, curves, f"C{i}", label)
    _levels_of_scores(ax, N, d)
    ax.set(xlabel="position t", ylabel="score of k for e_y + p_t, times N/η", ylim=(-0.12, 1.1))
    ax.set_title(f"One step on noisy inputs, random embeddings: {', '.join(f'{k} = {v}' for k, v in sizes.items())}")
    return finished(ax, loc="upper left", bbox_to_anchor=(0, -0.13), ncols=2)


def _levels_of_scores(ax: Axes, N: int, d: int) -> None:
    """The law is exact for embeddings that do not overlap; overlaps of random ones move the extremes, not the mean."""
    for i, value in enumerate((1 - 1 / N, -1 / N)):
        ax.axhline(value, **THEORY, label=None if i else "law without overlaps: right 1 − 1/N, wrong −1/N")
    for i, value in enumerate(extreme_scores(N, d)):
        ax.axhline(value, **REFERENCE, label=None if i else "extremes expected from overlaps of random embeddings")


@house_style()
def margin_spread(full: BySize, low_rank: BySize, d_low: int, N_low: int) -> Figure:
    """Variance of the margin over seeds: against N/d² for each d, and against the rank."""
    left, right = panels(11, 5.6, 1, 2)
    for i, d in enumerate(sorted({d for d, _ in full})):
        own = {N: values for (width, N), values in full.items() if width == d}
        N = np.geomspace(min(own) / 1.3, max(own) * 1.3, 50)
        dots(left, own, i, f"measured, d = {d}, one dot per seed")
        left.plot(N, [margin_variance(n, d) for n in N], **THEORY, label=None if i else "law: 2/d + (2N−3)/d²")
        bound = None if i else "bound of the slides, summed over two scores"
        left.plot(N, [2 * slides_bound(n, d) for n in N], **REFERENCE, label=bound)
    left.set(yscale="log", xlabel="pairs stored N", ylabel="variance of the margin", title="Full rank: W = Σ u eᵀ")
    log_sizes(left, sorted({N for _, N in full}))
    _ranks(right, low_rank, d_low, N_low)
    return finished(left, right, loc="upper left", bbox_to_anchor=(0, -0.13))  # curves cross the whole panel


def _ranks(ax: Axes, low_rank: BySize, d: int, N: int) -> None:
    m = np.geomspace(min(low_rank), max(low_rank), 50)
    dots(ax, low_rank, 0, "measured, one dot per seed")
    ax.plot(m, [low_rank_margin_variance(N, d, x) for x in m], **THEORY, label="exact law")
    ax.plot(m, 2 / d + 2 * N / d * (1 / m + 1 / d), **REFERENCE, label="its leading terms for N ≫ d")
    ax.axhline(margin_variance(N, d), color=MUTED, lw=0.9, label="full rank, m = d")
    ax.set(yscale="log", xlabel="rank m", ylabel="variance of the margin", title=f"Rank m: W = A Bᵀ, d = {d}, N = {N}")
    log_sizes(ax, low_rank)


@house_style()
def bits_per_weight(by_load: Mapping[float, Sequence[Record]]) -> Figure:
    """Left: recall against bits per weight for each d, at the larger load. Right: sufficient and worst-case bits."""
    left, right = panels(10.4, 4.8, 1, 2)
    load, records = max(by_load.items())
    bits = [int(name.partition(".")[2]) for name in records[0].columns if name.startswith("recall.")]
    for i, at in enumerate(zip(*(r.rows for r in records), strict=True)):
        mean = [np.mean([row[f"recall.{b}"] for row in at]) for b in bits]
        left.plot(bits, mean, "o-", ms=4, color=f"C{i % 7}", label=f"d={at[0]['d']:.0f}, N={at[0]['N']:.0f}")
    left.axhline(0.99, **THEORY, label="99 %")
    left.set(xlabel="bits per weight", ylabel="recall", ylim=(0.96, 1.002))
    left.set_title(f"Hebbian matrix, N = {load} d², rounded")
    series = {f"enough for 99 %, N = {load} d²": (found, "sufficient") for load, found in by_load.items()}
    series["no margin moves by 1/2, whatever the data"] = (records, "certified")
    for i, (name, (found, column)) in enumerate(series.items()):
        dots(right, [(row["d"], row[column]) for record in found for row in record.rows], i, name)
    d = records[0].column("d").tolist()
    right.plot(d, np.log2(d), **THEORY, label="log2 d")
    right.set(xlabel="width d", ylabel="bits per weight", title="Bits that a weight needs", ylim=(0, None))
    log_sizes(right, d)
    finished(left)
    return legends_below(right, ncols=1)


@house_style()
def bound_figure(tails: Mapping[float, Sequence[Row]], memories: Mapping[str, Sequence[Record]]) -> Figure:
    """Left: least loss against bits for power laws. Right: bits stored per bit used, by bits per weight."""
    left, right = panels(10.4, 4.2, 1, 2)
    for i, (alpha, rows) in enumerate(tails.items()):
        B, bound = np.array([[row["bits"], row["bound"]] for row in rows]).T
        left.plot(B, [row["top-k"] for row in rows], "o", color=f"C{i}", ms=5, label=f"top-k encoder, α={alpha}")
        left.plot(B, bound, color=f"C{i}", lw=1, alpha=0.6, label="bound")
        left.plot(B, bound[0] * (B / B[0]) ** (1 - alpha), **THEORY, label="∝ B^(1−α)" if i == 0 else None)
    left.set(xscale="log", yscale="log", xlabel="bits B", ylabel="least loss (nats)")
    left.set_title("Power law p ∝ x^−α, M=1024")
    for i, (name, records) in enumerate(memories.items()):
        points = [(np.log2(row["levels"]), row["ratio"]) for record in records for row in record.rows]
        dots(right, points, i, f"{name} matrix")
    right.axhline(1, **THEORY, label="no memory can do better")
    right.set(xlabel="bits per weight", ylabel="bits stored / bits used", yscale="log", ylim=(0.01, 1.5))
    right.set_title("At 99 % recall")
    return finished(left, right)


@house_style()
def shapes_figure(
    factors: BySize, law: Callable[[float], float], accuracies: BySize, updates: Sequence[Record]
) -> Figure:
    """Noise of a factorised memory by rank, accuracies on pairs and sets, norms of maximal updates by width."""
    left, middle, right = panels(13.4, 4, 1, 3, width_ratios=(1, 1.1, 1))
    m = np.geomspace(min(factors), max(factors), 50)
    dots(left, factors, 0, "measured")
    left.plot(m, [law(x) for x in m], **THEORY, label="derived")
    left.plot(m, m**-0.5, **REFERENCE, label="√(1/d')")
    left.set(xlabel="inner width d'", ylabel="deviation of wrong scores", title="W = (d/2d') UV")
    log_sizes(left, factors)
    _bars(middle, accuracies)
    _norms(right, updates)
    return finished(left, right)


def _bars(ax: Axes, accuracies: BySize) -> None:
    colours = ["C0" if "MLP" in name else "C1" for name in accuracies]
    bars = ax.barh(list(accuracies), [np.mean(values) for values in accuracies.values()], color=colours, height=0.6)
    ax.bar_label(bars, fmt="%.3f", padding=3, fontsize=8.5)
    ax.set(xlabel="accuracy", xlim=(0, 1.15), title="Beyond a matrix")
    listed(ax)


def _norms(ax: Axes, updates: Sequence[Record]) -> None:
    by_width = list(zip(*(record.rows for record in updates), strict=True))
    for i, (column, name) in enumerate(NORMS.items()):
        dots(ax, [(row["d"], row[column]) for same in by_width for row in same], i, name)
    d, relative = [same[0]["d"] for same in by_width], np.mean([row["relative"] for row in by_width[-1]])
    ax.plot(d, np.ones(len(d)), **THEORY, label="order 1, order d^−1/2")
    ax.plot(d, relative * (np.array(d) / d[-1]) ** -0.5, **THEORY)
    ax.set(yscale="log", xlabel="width d", ylabel="norm", title="Maximal updates")
    log_sizes(ax, d)

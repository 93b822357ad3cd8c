"""Figures of storage schemes under heavy-tailed data: errors against width and samples, theory beside measurement."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.records.files import Row
from engram.show.panels import BySize, dots, finished, legends_below, listed, log_sizes, panels
from engram.show.style import INK, MUTED, REFERENCE, THEORY, house_style

Guide = Callable[[float], float]
Points = Sequence[tuple[float, float]]
LOOKS = (THEORY, REFERENCE)


@house_style()
def unseen_figure(by_alpha: Mapping[float, Sequence[Record]], law: Callable[[float], float]) -> Figure:
    """The error of an infinite memory over samples: dots sampled, lines expected, dashed the exponent."""
    ax = panels(6.6, 4.2)
    for i, (alpha, records) in enumerate(by_alpha.items()):
        n, expected = np.array([[row["n"], row["expected"]] for row in records[0].rows]).T
        dots(ax, [(row["n"], row["sampled"]) for r in records for row in r.rows], i, f"α = {alpha:g}: sampled")
        ax.plot(n, expected, color=f"C{i}", lw=1.2, label="expected" if i == 0 else None)
        middle = len(n) // 2
        name = "∝ n^(−(α−1)/α)" if i == 0 else None
        ax.plot(n, expected[middle] * (n / n[middle]) ** law(alpha), **THEORY, label=name)
    ax.set(xscale="log", yscale="log", xlabel="samples n", ylabel="error", title="An infinite memory")
    return finished(ax)


@house_style()
def errors_by_width(series: Mapping[str, BySize], guides: Mapping[str, Guide], title: str) -> Figure:
    """Error against width, one dot per seed, with lines that were published."""
    ax = panels(6.8, 4.4)
    widths = sorted({d for by_size in series.values() for d in by_size})
    _measured(ax, series)
    for look, (name, guide) in zip(LOOKS, guides.items(), strict=True):
        ax.plot(widths, [guide(d) for d in widths], label=name, **look)
    ax.set(yscale="log", xlabel="width d", ylabel="error", title=title)
    log_sizes(ax, widths)
    return finished(ax)


def _measured(ax: Axes, series: Mapping[str, BySize]) -> None:
    for i, (name, by_size) in enumerate(series.items()):
        dots(ax, by_size, i, name)


@house_style()
def errors_and_curves(series: Mapping[str, BySize], curves: Mapping[str, Mapping[float, float]]) -> Figure:
    """Left: measured errors on the finite-size curves. Right: their ratio, with the band of 5 %."""
    left, right = panels(10.4, 4.2, 1, 2)
    _measured(left, {f"{name}, measured": by_size for name, by_size in series.items()})
    for i, (name, curve) in enumerate(curves.items()):
        left.plot(list(curve), list(curve.values()), **THEORY, label="finite-size curve" if i == 0 else None)
        means = [np.mean(series[name][d]) / error for d, error in curve.items()]
        right.plot(list(curve), means, "o-", color=f"C{i}", ms=4, label=name)
    right.axhspan(0.95, 1.05, color=MUTED, alpha=0.15, lw=0)
    right.axhline(1, **THEORY)
    left.set(yscale="log", xlabel="width d", ylabel="error", title="Storage schemes, α = 2")
    right.set(xlabel="width d", ylabel="measured / curve", title="Mean over seeds (dashed: the curve, grey: ± 5 %)")
    for ax in (left, right):
        log_sizes(ax, next(iter(curves.values())))
    return finished(left, right)


@house_style()
def families_figure(
    exact: Mapping[tuple[str, float], Points],
    laws: Mapping[tuple[str, float], float],
    tried: Sequence[Record],
    schemes: Sequence[str],
    least: Sequence[Row],
    layers: Mapping[float, Sequence[Record]],
) -> Figure:
    """Left: powers of p on the finite-size curve. Middle: schemes against the least error. Right: layers by size."""
    left, middle, right = panels(15, 5, 1, 3)
    for i, (label, points) in enumerate(exact.items()):
        d, error = np.array(points, dtype=float).T
        name = f"p^{label[1]:g}, {'truncated' if label[0] == 'cut' else 'whole'}"
        left.plot(d, error, "os^Dv<>Ph"[i % 9], color=f"C{i % 7}", ms=4, label=name)
        left.plot(d, error[0] * (d / d[0]) ** laws[label], **THEORY, label="law" if i == 0 else None)
    left.set(xscale="log", yscale="log", xlabel="width d", ylabel="error", title="q = p^ρ on the finite-size curve")
    _schemes_and_bound(middle, tried, schemes, least)
    _layers(right, layers)
    legends_below(left, middle, ncols=3)
    return legends_below(right)


def _schemes_and_bound(ax: Axes, tried: Sequence[Record], schemes: Sequence[str], least: Sequence[Row]) -> None:
    widths = [row["d"] for row in least]
    for i, scheme in enumerate(schemes):
        means = [np.mean([record.rows[at][scheme] for record in tried]) for at in range(len(widths))]
        ax.plot(widths, means, "os^Dv<>Ph"[i % 9] + "-", color=f"C{i % 7}", lw=0.8, ms=4, label=f"q: {scheme}")
    ax.plot(widths, [row["least"] for row in least], **THEORY, label="least error of any q")
    ax.plot(widths, [row["bound"] for row in least], **REFERENCE, label="c (d+1)^(−(α−1))")
    ax.set(yscale="log", xlabel="width d", ylabel="error", title="No scheme is below the bound")
    log_sizes(ax, widths)


def _layers(ax: Axes, layers: Mapping[float, Sequence[Record]]) -> None:
    for i, (alpha, records) in enumerate(layers.items()):
        dots(ax, [(row["parameters"], row["error"]) for r in records for row in r.rows], i, f"α = {alpha:g}")
        x, error = np.array([[row["parameters"], row["error"]] for row in records[0].rows]).T
        name = "∝ parameters^(−(α−1))" if i == 0 else None
        ax.plot(x, error[0] * (x / x[0]) ** (1 - alpha), **THEORY, label=name)
    ax.set(xscale="log", yscale="log", xlabel="parameters", ylabel="error", title="One unit for each likely pair")
    log_sizes(ax, [row["parameters"] for row in next(iter(layers.values()))[0].rows])


@house_style()
def joint_figure(
    errors: Mapping[tuple[float, float], Sequence[float]],
    published: Mapping[tuple[int, int], float],
    schemes: Mapping[str, Sequence[float]],
) -> Figure:
    """Left: error against width for each number of samples, published cells as crosses. Right: schemes at d ≫ N."""
    left, right = panels(11, 4.4, 1, 2, width_ratios=(1.4, 1))
    widths = sorted({d for _, d in errors})
    for i, n in enumerate(sorted({n for n, _ in errors})):
        dots(left, {d: errors[n, d] for d in widths}, i, f"n = {n:g}")
        left.plot(widths, [np.mean(errors[n, d]) for d in widths], color=f"C{i}", lw=1)
    cells = [(d, error) for (_, d), error in published.items()]
    left.plot(*zip(*cells, strict=True), "x", color=INK, ms=8, label="published")
    left.plot(widths, [5 / d for d in widths], **THEORY, label="5/d, published guide")
    left.set(yscale="log", xlabel="width d", ylabel="error", title="The d/12 tokens seen most often")
    log_sizes(left, widths)
    bars = right.barh(list(schemes), [np.mean(values) for values in schemes.values()], color="C0", height=0.6)
    right.bar_label(bars, fmt="%.3g", padding=3, fontsize=8.5)
    right.margins(x=0.15)  # room for the numbers
    right.set(xlabel="error", title="Enough width, d ≫ N")
    listed(right)
    return finished(left)


@house_style()
def costs_figure(ratios: Mapping[str, Sequence[float]], known: BySize, chance: float, level: float) -> Figure:
    """Left: three costs of exponential memories as ratios. Right: the share of facts known by times seen."""
    left, right = panels(12, 4, 1, 2, width_ratios=(1, 1.2))
    for y, values in enumerate(ratios.values()):
        left.plot(values, [y] * len(values), "os^"[y], color=f"C{y}", ms=6, alpha=0.7)
    left.axvline(1, **THEORY, label="no difference")
    left.set_yticks(range(len(ratios)), [name.partition(",")[0] for name in ratios])
    left.set(xscale="log", ylim=(-0.5, 2.5), xlabel="exponential over linear", title="Costs of exponential memories")
    listed(left)
    places = {times: i for i, times in enumerate(known)}  # 0 has no place on a logarithmic axis
    dots(right, {places[times]: shares for times, shares in known.items()}, 0, "one dot per seed")
    right.plot([np.mean(shares) for shares in known.values()], color="C0", lw=1.2)
    right.axhline(chance, **REFERENCE, label="chance")
    right.axhline(level, **THEORY, label="halfway to certainty")
    right.set_xticks(range(len(known)), [f"{times:g}" for times in known])
    right.set(xlabel="seen at least so many times", ylabel="share known", title="Facts by frequency", ylim=(0, 1.02))
    return finished(left, right)

"""Figures of few memories: margins over time, spikes on the loss surface, schedules, stored weights, forgetting."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.records.files import Row
from engram.show.curves import seed_curves
from engram.show.panels import SHADES, SHARE, finished, legends_below, lines_and_mean, log_sizes, panels, seed_dots
from engram.show.style import INK, MUTED, REFERENCE, THEORY, house_style
from engram.theory.forgetting import Plane
from engram.theory.margin_law import margin_at, tilted

Rows = Sequence[Row]
Curve = Sequence[tuple[float, float]]
WIDE = 160  # points along each side of a loss surface


def _column(rows: Rows, name: str) -> np.ndarray:
    return np.array([row[name] for row in rows])


@house_style()
def margins_over_time(small: Mapping[float, Rows], large: Mapping[float, Rows], p: float) -> Figure:
    """Margins of two orthogonal tokens by small steps, and of one by several step sizes, beside their law."""
    left, right = panels(10.4, 4.2, 1, 2)
    for i, (weight, rows) in enumerate(small.items()):
        left.plot(_column(rows, "time"), _column(rows, "margin"), "o", ms=4, color=f"C{i}", label=f"p={weight}")
        left.plot(
            _column(rows, "time"), _column(rows, "law"), **(THEORY | {"label": None if i else "e^m + m − 1 = 2pt"})
        )
    left.set(xscale="log", xlabel="time t (steps of 0.001)", ylabel="margin m", title="Two orthogonal tokens")
    for i, (rate, rows) in enumerate(large.items()):
        right.plot(_column(rows, "time"), _column(rows, "margin"), "o", ms=4, color=f"C{i}", label=f"steps η={rate:g}")
    times = np.geomspace(
        min(rows[0]["time"] for rows in large.values()), max(r[-1]["time"] for r in large.values()), 80
    )
    right.plot(times, [margin_at(p, 2, t) for t in times], **THEORY, label="e^m + m − 1 = 2pt")
    right.plot(times[2 * p * times > 1], np.log(2 * p * times[2 * p * times > 1]), **REFERENCE, label="ln(2pt)")
    right.set(xscale="log", xlabel="time t = η · steps", ylabel="margin m", title=f"Any step size, p={p}")
    return finished(left, right)


def _surface(ax: Axes, losses: Any, low: float, high: float, label: str) -> None:
    """A loss over γ, brighter where it is lower."""
    image = ax.imshow(losses, origin="lower", extent=(low, high, low, high), aspect="auto", cmap=f"{SHADES}_r")
    figure = ax.figure
    figure.colorbar(image, ax=ax, shrink=0.85, label=label)
    ax.set(xlabel="γ₀", ylabel="γ₁")
    ax.grid(visible=False)


def _mesh(low: float, high: float) -> np.ndarray:
    side = np.linspace(low, high, WIDE)
    return np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)


@house_style()
def spikes(paths: Mapping[float, Rows], p: float, a: float, grid: Rows) -> Figure:
    """Paths of descent on the loss surface of two tokens, their losses, and first perfect steps by overlap and rate."""
    surface, losses, first = panels(15, 4.2, 1, 3)
    high = float(
        np.ceil(max(np.abs(_column(rows[:35], f"gamma.{i}")).max() for rows in paths.values() for i in (0, 1)))
    )
    low = -high
    values = np.logaddexp(0, -_mesh(low, high) @ tilted(a).T) @ [p, 1 - p]
    _surface(surface, np.log10(values).reshape(WIDE, WIDE), low, high, "log10 of the loss")
    for i, (rate, rows) in enumerate(paths.items()):
        shown = rows[:35]
        look = {"color": ("#D55E00", INK)[i], "marker": "o^"[i], "ms": 3, "lw": 1}
        surface.plot(_column(shown, "gamma.0"), _column(shown, "gamma.1"), label=f"η={rate:g}", **look)
        losses.plot(_column(shown, "loss"), label=f"η={rate:g}: loss", **look)
        losses.plot(_column(shown, "edge"), ls=":", color=look["color"], label=f"η={rate:g}: η λ/2")
    surface.set(title=f"Loss of two tokens, overlap a={a}", xlim=(low, high), ylim=(low, high))
    losses.axhline(1, **REFERENCE, label="edge of stability")
    losses.set(xlabel="step", ylabel="loss, η λ/2", title="Large steps spike", yscale="log")
    _first_steps(first, grid)
    surface.legend(labelcolor=INK, frameon=True, loc="lower left")
    return finished(losses)


def _first_steps(ax: Axes, grid: Rows) -> None:
    """Geometric means over the weights p."""
    rates, overlaps = sorted({row["rate"] for row in grid}), sorted({row["a"] for row in grid})
    cells = [[_mean_first(grid, a, rate) for a in overlaps] for rate in rates]
    image = ax.imshow(cells, origin="lower", aspect="auto", cmap=SHADES)
    ax.figure.colorbar(image, ax=ax, shrink=0.85, label="log10 of the first perfect step")
    ax.set_xticks(range(len(overlaps)), [f"{a:.2f}" for a in overlaps], fontsize=8)
    ax.set_yticks(range(len(rates)), [f"{rate:.2g}" for rate in rates], fontsize=8)
    ax.set(xlabel="overlap a (at 1 no matrix is right)", ylabel="step size η", title="First step without an error")
    ax.grid(visible=False)


def _mean_first(grid: Rows, a: float, rate: float) -> float:
    return float(np.mean([np.log10(row["first"]) for row in grid if (row["a"], row["rate"]) == (a, rate)]))


@house_style()
def errors_by_step(schedules: Sequence[Record], rules: Sequence[Record]) -> Figure:
    """Errors of SGD by samples for three schedules, and of population descent by steps for three rules."""
    left, right = panels(10.8, 4.2, 1, 2)
    names = {"small": "γ=0.1", "large": "γ=10", "decayed": "γ=10, ×0.03 after 100"}
    published = {"small": 0.21, "large": 0.22, "decayed": 0.15}
    for i, (name, label) in enumerate(names.items()):
        curves = [(record.column("samples"), record.column(f"error.{name}")) for record in schedules]
        lines_and_mean(left, curves, f"C{i}", label)
        left.plot(
            1000, published[name], "*", color=f"C{i}", ms=11, mec=INK, label="published, about" if i == 0 else None
        )
    left.set(xlabel="samples seen (batch 1)", ylabel="0/1 error", title="Fewer dimensions than tokens: d=5, N=10")
    for i, rule in enumerate(("gradient", "sign", "normalised")):
        curves = [(np.arange(len(r.rows)), r.column(f"error.{rule}") / 10) for r in rules]
        lines_and_mean(right, curves, f"C{i}", rule)
    right.plot(100, 0.013, "*", color="C0", ms=11, mec=INK, label="gradient, published (another mean)")
    right.set(xlabel="step (population, γ=1)", ylabel="0/1 error / N", title="Steps of known size: d=10, N=10")
    return finished(left, right)


@house_style()
def stored(
    weights: Mapping[str, Sequence[Curve]], visits: Mapping[float, Rows], by_width: Mapping[int, Sequence[Record]]
) -> Figure:
    """Stored weights against p, weights against visits, and the scalar approximation beside real descent."""
    left, middle, right = panels(15, 4.2, 1, 3)
    for i, (name, curves) in enumerate(weights.items()):
        points = [(p, q / curve[0][1]) for curve in curves for p, q in curve]
        left.plot(*zip(*points, strict=True), "os^"[i], color=f"C{i}", ms=4, alpha=0.6, label=name)
    common = next(iter(weights.values()))[0]
    left.plot([p for p, _ in common], [p / common[0][0] for p, _ in common], **THEORY, label="q ∝ p")
    left.axhline(1, **REFERENCE, label="q = 1")
    left.set(xscale="log", yscale="log", xlabel="p(z)", ylabel="q(z) / q(0)", title="What is stored", ylim=(1e-4, 30))
    for i, (rate, rows) in enumerate(visits.items()):
        q = _column(rows, "q")
        middle.plot(_column(rows, "visits"), q / q[-1], color=f"C{i}", label=f"γ={rate:g}")
    ends = np.array([1, len(next(iter(visits.values())))])
    middle.plot(ends, ends / ends[-1], **THEORY, label="∝ visits")
    middle.set(
        xscale="log", yscale="log", xlabel="visits k", ylabel="q after k over q at the end", title="Visits to one token"
    )
    _approximation(right, by_width)
    return finished(left, middle, right)


def _approximation(ax: Axes, by_width: Mapping[int, Sequence[Record]]) -> None:
    for i, (d, records) in enumerate(by_width.items()):
        for name, style in (("real", "-"), ("scalar", "--")):
            curves = [(np.arange(len(r.rows)), r.column(f"error.{name}")) for r in records]
            label = f"d={d}: {'real' if name == 'real' else 'scalar approximation'}"
            lines_and_mean(ax, curves, f"C{i}", label, ls=style)
    ax.plot(
        [100, 100], [0.045, 0.15], "*", color="C0", ms=11, mec=INK, ls="none", label="published, d=10 (first reading)"
    )
    ax.set(xlabel="step (batch 1000, γ=1)", ylabel="0/1 error", title="Each q by itself", ylim=(0, None))


@house_style()
def oscillation(
    first: Mapping[tuple[int, float], Record], shares: Mapping[tuple[int, float], Sequence[float]]
) -> Figure:
    """Margins of one memory for every width and rate, η λ/2, and how much of the movement leads downwards."""
    widths, rates = sorted({d for d, _ in first}), sorted({rate for _, rate in first})
    axes = panels(4 * len(rates), 2.5 * len(widths) + 3, len(widths) + 1, len(rates))
    for row, d in zip(axes, widths, strict=False):
        for ax, rate in zip(row, rates, strict=True):
            _margins(ax, first[d, rate].rows[:30], f"d={d}, η={rate:g}")
    for i, d in enumerate(widths):
        seed_dots(axes[-1][0], {rate: shares[d, rate] for rate in rates}, f"C{i}", f"d={d}", within=SHARE)
        rows = first[d, rates[-1]].rows
        axes[-1][1].plot(range(len(rows)), _column(rows, "edge"), color=f"C{i}", label=f"d={d}")
        axes[-1][2].plot(range(len(rows)), _column(rows, "rises"), color=f"C{i}", label=f"d={d}")
    axes[-1][0].set(xlabel="step size η", ylabel="share of movement", title="Movement of margins downwards")
    log_sizes(axes[-1][0], rates)
    axes[-1][1].axhline(1, **REFERENCE, label="edge of stability")
    axes[-1][1].set(xlabel="step", ylabel="mean η λ/2", title=f"Sharpness, η={rates[-1]:g}", yscale="log")
    draws = first[widths[0], rates[-1]].check.draws
    axes[-1][2].set(xlabel="step", ylabel=f"memories of {draws}", title=f"Loss rises, η={rates[-1]:g}")
    axes[1][0].legend(ncols=2, loc="lower right")  # where margins only grow, and leave room
    return finished(*axes[-1], ncols=2)


def _margins(ax: Axes, rows: Rows, title: str) -> None:
    tokens = sorted(name for name in rows[0] if name.startswith("margin."))
    for i, name in enumerate(tokens):
        ax.plot(range(1, len(rows) + 1), _column(rows, name), color=f"C{i}", lw=1.2, label=f"token {i + 1}")
    ax.axhline(0, color=MUTED, lw=0.8)
    ax.set(xlabel="step", ylabel="margin", title=title)


@house_style()
def forgetting(record: Record, excess: Mapping[int, Sequence[Record]]) -> Figure:
    """A path on the loss surface of one plane, its loss and error, and the error that the minimiser costs."""
    surface, path, right = panels(15, 4.2, 1, 3)
    sizes = {"N": 10, "alpha": 2.0} | record.check.sizes
    low, high = -10.0, 10.0
    plane = Plane.drawn(sizes["N"], sizes["alpha"], 1, record.spec.seed)
    losses = np.logaddexp(0, -_mesh(low, high) @ plane.sides[0].T) @ plane.p
    _surface(surface, np.log10(losses).reshape(WIDE, WIDE), low, high, "log10 of the loss")
    for i, (end, label) in enumerate({"": "batches of 10", ".flow": "population"}.items()):
        look = {"color": ("#D55E00", INK)[i], "lw": 1.4}
        surface.plot(_column(record.rows, f"gamma.0{end}"), _column(record.rows, f"gamma.1{end}"), **look, label=label)
        path.plot(_column(record.rows, f"loss{end}"), color=look["color"], lw=1.2, label=f"{label}: cross-entropy")
        path.plot(
            _column(record.rows, f"error{end}"), color=look["color"], ls="--", lw=1.2, label=f"{label}: 0/1 error"
        )
    surface.plot(7.5, 2.5, "o", color=INK, ms=6, label="start")
    surface.set(title=f"One plane, N={sizes['N']}", xlim=(low, high), ylim=(low, high))
    surface.legend(labelcolor=INK, frameon=True, loc="lower left")
    path.set(xlabel="step (η=0.1)", ylabel="cross-entropy, 0/1 error", title="Both on the way", yscale="symlog")
    path.set_yscale("symlog", linthresh=0.1)
    _excess(right, excess)
    return finished(path, right)


def _excess(ax: Axes, excess: Mapping[int, Sequence[Record]]) -> None:
    """How many planes lose at least so much."""
    for i, (N, records) in enumerate(excess.items()):
        values = np.sort(np.concatenate([record.column("excess") for record in records]))[::-1]
        ax.plot(values, np.arange(1, len(values) + 1) / len(values), color=f"C{i}", lw=1.6, label=f"N={N}")
    ax.set(xlabel="0/1 error at the least cross-entropy minus the least", ylabel="share of planes with more")
    ax.set(title="What the minimiser forgets", ylim=(0, 1.02))


@house_style()
def large_steps(by_rate: Mapping[float, Sequence[Record]]) -> Figure:
    """Loss in context and recall of W_O2 over few steps, for each rate."""
    left, right = panels(10.4, 4, 1, 2)
    for i, (rate, records) in enumerate(by_rate.items()):
        for ax, column in ((left, "loss.in_context"), (right, "recall.W_O2")):
            seed_curves(ax, records, column, f"C{i}", f"η={rate:g}")
    left.set(xlabel="training step", ylabel="loss in context", title="Only W_O2 is trained", yscale="log")
    left.set_yticks([3, 5, 10, 20], ["3", "5", "10", "20"])
    left.set_yticks([], minor=True)
    right.axhline(0.5, **REFERENCE, label="half recalled")
    right.set(xlabel="training step", ylabel="recall of W_O2", title="Its memory", ylim=(0, 1.02))
    return legends_below(left, right, ncols=5)

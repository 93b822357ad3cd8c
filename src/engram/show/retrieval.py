"""Figures of retrieval: Hopfield and dense memories, attention as one step of retrieval, denoising."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.birth import Runs
from engram.show.panels import BySize, finished, lines_and_mean, log_sizes, panels, seed_dots
from engram.show.style import INK, MUTED, REFERENCE, THEORY, house_style
from engram.theory.hopfield import CRITICAL_LOAD, dense_law, exponential_law, exponential_rate, retrieval_overlap
from engram.theory.retrieval import dam_energy, gradient_step


@house_style()
def overlap_curve(overlaps: BySize, d: int) -> Figure:
    """Final overlap against N/d, beside the law for d → ∞ and the critical load."""
    ax = panels(6.4, 3.8)
    by_load = {percent * 0.01: values for percent, values in overlaps.items()}
    seed_dots(ax, by_load, "C0", f"measured, d = {d}, one dot per seed")
    loads = np.linspace(0.05, CRITICAL_LOAD - 1e-4, 60)
    ax.plot(loads, [retrieval_overlap(load) for load in loads], **THEORY, label="law for d → ∞")
    ax.axvline(CRITICAL_LOAD, **REFERENCE)
    ax.text(CRITICAL_LOAD - 0.002, 0.06, f"critical load {CRITICAL_LOAD}", color=MUTED, fontsize=9, ha="right")
    ax.set(xlabel="load N / d", ylabel="overlap with the pattern at the fixed point", ylim=(0, 1.03))
    ax.set_title("Hopfield's memory: started at a stored pattern, run until no bit moves")
    return finished(ax, loc="lower left", bbox_to_anchor=(0, 0.1))


@house_style()
def capacity_curves(powers: Mapping[int, BySize], noise: Mapping[int, BySize]) -> Figure:
    """How many patterns fit: powers on log axes, exp against d with a logarithmic N."""
    left, right = panels(10.4, 4.2, 1, 2)
    for i, (n, by_d) in enumerate(powers.items()):
        seed_dots(left, by_d, f"C{i}", f"F(t) = t$^{n}$")
        left.plot(sorted(by_d), [dense_law(d, n) for d in sorted(by_d)], **THEORY)
    left.plot([], [], **THEORY, label="d$^{n−1}$ / (2 (2n−3)!! ln d)")
    left.set(yscale="log", xlabel="dimension d", ylabel="patterns N", title="90 % of the patterns without error")
    log_sizes(left, sorted({d for by_d in powers.values() for d in by_d}))
    for i, (eighths, by_d) in enumerate(noise.items()):
        seed_dots(right, by_d, f"C{i}", "no wrong bit" if not eighths else f"{eighths}/8 of the bits wrong")
        _rate_line(right, by_d, exponential_rate(eighths / 8))
    whole = sorted(noise[0])
    right.plot(whole, [exponential_law(d) for d in whole], ":", color=INK, lw=1.4, label="two patterns one bit apart")
    right.plot([], [], **THEORY, label="slope of exp(d I(1−2ρ)/2)")
    right.set(xlabel="dimension d", ylabel="patterns N", title="F = exp: all patterns kept, in half of the draws")
    right.set_yscale("log", base=2)
    return finished(left, right)


def _rate_line(ax: Axes, by_d: BySize, rate: float) -> None:
    """A line of the given slope in log2 N through the mean of the points."""
    sizes = np.array(sorted(by_d))
    height = np.mean([np.log2(by_d[d]).mean() for d in sizes])
    ax.plot(sizes, 2 ** (height + rate * (sizes - sizes.mean())), **THEORY)


@house_style()
def attention_as_retrieval(bound: Mapping[str, float], steps: Sequence[Mapping[str, float]], apart: BySize) -> Figure:
    """A picture of the energy with single steps; how exact the identity is; how many patterns lie well apart."""
    energy, errors, separated = panels(12.4, 4, 1, 3)
    _landscape(energy)
    for i, (name, label) in enumerate({"step": "attention, any α", "ramsauer": "X softmax(βXᵀx), α = 1"}.items()):
        found = [max(row[f"error.{name}"], 1e-18) for row in steps]
        errors.plot([row["beta"] for row in steps], found, "o", color=f"C{i}", ms=3.5, alpha=0.6, label=label)
    errors.axhline(1e-12, **THEORY, label="tolerance")
    errors.set(xscale="log", yscale="log", xlabel="inverse temperature β", ylabel="largest difference")
    errors.set_ylim(3e-17, 2e-10)  # room for the legend above the tolerance
    errors.set_title("Attention minus one gradient step")
    seed_dots(separated, apart, "C0", "measured, one dot per seed")
    separated.axvline(bound["N"], **THEORY, label=f"bound √p c^((d−1)/4) = {bound['N']:.1f}")
    separated.set(xscale="log", xlabel="patterns N", ylabel="share of draws", ylim=(0, 1.05))
    separated.set_title(f"Well separated (d = 20, c = {bound['c']:.4f})")
    errors.legend(loc="upper left")
    return finished(separated, loc="lower left")


def _landscape(ax: Axes, L: int = 7, alpha: float = 1.0, beta: float = 5.0) -> None:
    """E(s) in the plane over L points on a circle, and steps of attention from a few queries."""
    angle = torch.arange(L, dtype=torch.float64) * 2 * torch.pi / L
    X = torch.stack([angle.cos(), angle.sin()], 1)
    side = torch.linspace(-1.6, 1.6, 81, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    levels = dam_energy(grid, X.expand(len(grid), L, 2), alpha, beta).reshape(81, 81).T
    ax.contourf(side, side, levels, levels=24, cmap="Blues")
    ax.plot(*X.T, "o", color="white", mec=INK, ms=6, label="points x$_t$")
    turn = angle[:5] * L / 5 + 0.35
    queries = 1.35 * torch.stack([turn.cos(), turn.sin()], 1)
    after = gradient_step(queries, X.expand(5, L, 2), alpha, beta)
    for start, end in zip(queries.tolist(), after.tolist(), strict=True):
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": "#D55E00", "lw": 1.6})
    ax.plot(*queries.T, "s", color="#D55E00", ms=4, label="query, and its attention output")
    ax.set(title="The energy and one step", aspect="equal", xticks=[], yticks=[])
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=2)


@house_style()
def denoising_panels(
    runs: Runs, cases: Sequence[str], floor: float, published: Mapping[str, tuple[float, float]]
) -> Figure:
    """Test error over epochs for each case, beside Bayes' error and one step of the memory at the learned scales."""
    axes = panels(12.4, 6.4, 2, len(cases), sharex=True, height_ratios=(1.4, 1))
    for column, case in enumerate(cases):
        top, bottom = axes[:, column]
        for i, kind in enumerate(("linear", "softmax")):
            _errors(top, runs[case, kind], f"C{i}", kind)
            _scales(bottom, runs[case, kind], f"C{i}", kind)
        bayes = runs[case, "softmax"][0].rows[0]["loss.bayes"]
        top.axhline(bayes, **THEORY, label="Bayes, same prompts")
        below = {"xytext": (0, -2), "textcoords": "offset points", "ha": "right", "va": "top", "fontsize": 8}
        top.annotate(f"{bayes:.4f}", (1, bayes), xycoords=top.get_yaxis_transform(), **below)
        if case == "subspace":
            top.axhline(floor, **REFERENCE, label=f"Bayes, mean over prompts ({floor:.4f})")
        for level in published.get(case, ()):
            bottom.axhline(level, **REFERENCE)
        bottom.plot([], [], **REFERENCE, label="published α, β of softmax")
        top.set(title=f"Case {column + 1}: {case}", ylim=(0.9 * bayes, 2.4 * bayes))
        bottom.set(xlabel="epoch", ylim=(-0.1, None))
    for above, below in axes.T:
        above.set_ylabel("squared error per coordinate")
        below.set_ylabel("learned scale")
    fig = axes[0, 0].figure
    for ax, side in ((axes[0, 0], "lower left"), (axes[1, 1], "lower right")):  # curves cross the panels
        handles, labels = ax.get_legend_handles_labels()
        fig.legend(handles, labels, loc=f"outside {side}", ncols=2)
    return fig


def _errors(ax: Axes, records: Sequence[Record], colour: str, kind: str) -> None:
    test, memory = (np.array([r.column(f"loss.{name}") for r in records]) for name in ("test", "memory"))
    lines_and_mean(ax, [(range(len(line)), line) for line in test], colour, f"{kind}, trained")
    ax.plot(memory.mean(0), color=colour, lw=1.2, ls="-.", label=f"{kind}, one step of memory αI, βI")


def _scales(ax: Axes, records: Sequence[Record], colour: str, kind: str) -> None:
    sign = np.array([[1 if r.last("alpha") > 0 else -1] for r in records])
    for name, style, letter in (("alpha", "-", "α"), ("beta", "--", "β")):
        values = sign * np.array([r.column(name) for r in records])
        ax.plot(values.mean(0), color=colour, ls=style, lw=1.4, label=f"{letter}, {kind}")

"""Figures of retrieval: Hopfield and dense memories, attention as one step of retrieval, denoising."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.style import INK, MUTED, house_style
from engram.theory.hopfield import CRITICAL_LOAD, dense_law, exponential_law, exponential_rate, retrieval_overlap
from engram.theory.retrieval import dam_energy, gradient_step

BySeed = Mapping[int, Sequence[float]]


def seed_dots(ax: Axes, by_size: BySeed, colour: str, label: str, x_per_size: float = 1.0) -> None:
    """One dot a seed, and a line through their means."""
    sizes = sorted(by_size)
    for size in sizes:
        ax.plot([size * x_per_size] * len(by_size[size]), by_size[size], "o", color=colour, ms=3.5, alpha=0.4)
    means = [float(np.mean(by_size[size])) for size in sizes]
    ax.plot([size * x_per_size for size in sizes], means, color=colour, lw=1.6, label=label)


@house_style()
def overlap_curve(overlaps: BySeed, d: int) -> Figure:
    """Final overlap against N/d, beside the law for d → ∞ and the critical load."""
    fig = Figure(figsize=(6.4, 3.8))
    ax = fig.subplots()
    seed_dots(ax, overlaps, "C0", f"measured, d = {d}, one dot a seed", x_per_size=0.01)
    loads = np.linspace(0.05, CRITICAL_LOAD - 1e-4, 60)
    ax.plot(loads, [retrieval_overlap(load) for load in loads], "--", color=INK, lw=1.2, label="law for d → ∞")
    ax.axvline(CRITICAL_LOAD, color=MUTED, ls=":", lw=1.2)
    ax.text(CRITICAL_LOAD - 0.002, 0.06, f"critical load {CRITICAL_LOAD}", color=MUTED, fontsize=9, ha="right")
    ax.set(xlabel="load N / d", ylabel="overlap with the pattern at the fixed point", ylim=(0, 1.03))
    ax.set_title("Hopfield's memory: started at a stored pattern, run until no bit moves")
    ax.grid(axis="y")
    ax.legend(fontsize=9, loc="lower left", bbox_to_anchor=(0, 0.1))
    return fig


@house_style()
def capacity_curves(powers: Mapping[int, BySeed], noise: Mapping[int, BySeed]) -> Figure:
    """How many patterns fit: powers on log axes, exp against d with a logarithmic N."""
    fig = Figure(figsize=(10.4, 4.2))
    left, right = fig.subplots(1, 2)
    for i, (n, by_d) in enumerate(powers.items()):
        seed_dots(left, by_d, f"C{i}", f"F(t) = t$^{n}$")
        left.plot(sorted(by_d), [dense_law(d, n) for d in sorted(by_d)], "--", color=INK, lw=1)
    left.plot([], [], "--", color=INK, lw=1, label="d$^{n−1}$ / (2 (2n−3)!! ln d)")
    sizes = sorted({d for by_d in powers.values() for d in by_d})
    left.set(xscale="log", yscale="log", xlabel="dimension d", ylabel="patterns N", xticks=sizes, xticklabels=sizes)
    left.minorticks_off()
    left.set_title("90 % of the patterns without error")
    for i, (eighths, by_d) in enumerate(noise.items()):
        seed_dots(right, by_d, f"C{i}", "no wrong bit" if not eighths else f"{eighths}/8 of the bits wrong")
        _rate_line(right, by_d, exponential_rate(eighths / 8))
    whole = sorted(noise[0])
    right.plot(whole, [exponential_law(d) for d in whole], ":", color=INK, lw=1.4, label="two patterns one bit apart")
    right.plot([], [], "--", color=INK, lw=1, label="slope of exp(d I(1−2ρ)/2)")
    right.set(
        yscale="log",
        xlabel="dimension d",
        ylabel="patterns N",
        title="F = exp: all patterns kept, in half of the draws",
    )
    right.set_yscale("log", base=2)
    for ax in (left, right):
        ax.grid(axis="y")
        ax.legend(fontsize=8.5)
    return fig


def _rate_line(ax: Axes, by_d: BySeed, rate: float) -> None:
    """A line of the given slope in log2 N through the mean of the points."""
    sizes = np.array(sorted(by_d))
    height = np.mean([np.log2(by_d[d]).mean() for d in sizes])
    ax.plot(sizes, 2 ** (height + rate * (sizes - sizes.mean())), "--", color=INK, lw=1)


@house_style()
def attention_as_retrieval(bound: Mapping[str, float], steps: Sequence[Mapping[str, float]], apart: BySeed) -> Figure:
    """A picture of the energy with single steps; how exact the identity is; how many patterns lie well apart."""
    fig = Figure(figsize=(12.4, 4))
    energy, errors, separated = fig.subplots(1, 3)
    _landscape(energy)
    for i, (name, label) in enumerate({"step": "attention, any α", "ramsauer": "X softmax(βXᵀx), α = 1"}.items()):
        found = [max(row[f"error.{name}"], 1e-18) for row in steps]
        errors.plot([row["beta"] for row in steps], found, "o", color=f"C{i}", ms=3.5, alpha=0.6, label=label)
    errors.axhline(1e-12, color=INK, ls="--", lw=1, label="tolerance")
    errors.set(xscale="log", yscale="log", xlabel="inverse temperature β", ylabel="largest difference")
    errors.set_ylim(3e-17, 2e-10)  # room for the legend above the tolerance
    errors.set_title("Attention minus one gradient step")
    seed_dots(separated, apart, "C0", "measured, one dot a seed")
    separated.axvline(bound["N"], color=INK, ls="--", lw=1, label=f"bound √p c^((d−1)/4) = {bound['N']:.1f}")
    separated.set(xscale="log", xlabel="patterns N", ylabel="share of draws", ylim=(0, 1.05))
    separated.set_title(f"Well separated (d = 20, c = {bound['c']:.4f})")
    for ax in (errors, separated):
        ax.grid(axis="y")
        ax.legend(fontsize=8.5, loc="lower left" if ax is separated else "upper left")
    return fig


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
    ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=2)


@house_style()
def denoising_panels(
    runs: Mapping[tuple[str, str], Sequence[Record]],
    cases: Sequence[str],
    floor: float,
    published: Mapping[str, tuple[float, float]],
) -> Figure:
    """Test error over epochs for each case, beside Bayes' error and one step of the memory at the learned scales."""
    fig = Figure(figsize=(12.4, 6.4))
    axes = fig.subplots(2, len(cases), sharex=True, height_ratios=(1.4, 1))
    for column, case in enumerate(cases):
        top, bottom = axes[:, column]
        for i, kind in enumerate(("linear", "softmax")):
            _errors(top, runs[case, kind], f"C{i}", kind)
            _scales(bottom, runs[case, kind], f"C{i}", kind)
        bayes = runs[case, "softmax"][0].rows[0]["loss.bayes"]
        top.axhline(bayes, color=INK, ls="--", lw=1, label=f"Bayes, same prompts ({bayes:.4f})")
        if case == "subspace":
            top.axhline(floor, color=MUTED, ls=":", lw=1.2, label=f"Bayes, mean over prompts ({floor:.4f})")
        for level in published.get(case, ()):
            bottom.axhline(level, color=MUTED, ls=":", lw=1.2)
        bottom.plot([], [], color=MUTED, ls=":", lw=1.2, label="published α, β of softmax")
        top.set(title=f"Case {column + 1}: {case}", ylim=(0.9 * bayes, 2.4 * bayes))
        bottom.set(xlabel="epoch", ylim=(-0.1, None))
        for ax in (top, bottom):
            ax.grid(axis="y")
    axes[0, 0].legend(fontsize=8)
    axes[0, 1].legend(*(part[-1:] for part in axes[0, 1].get_legend_handles_labels()), fontsize=8)
    axes[0, 2].legend(*(part[-1:] for part in axes[0, 2].get_legend_handles_labels()), fontsize=8, loc="lower left")
    axes[1, 1].legend(fontsize=8)
    axes[0, 0].set_ylabel("squared error per coordinate")
    axes[1, 0].set_ylabel("learned scale")
    return fig


def _errors(ax: Axes, records: Sequence[Record], colour: str, kind: str) -> None:
    test, memory = (np.array([[row[f"loss.{name}"] for row in r.rows] for r in records]) for name in ("test", "memory"))
    for line in test:
        ax.plot(line, color=colour, lw=0.6, alpha=0.4)
    ax.plot(test.mean(0), color=colour, lw=1.8, label=f"{kind}, trained")
    ax.plot(memory.mean(0), color=colour, lw=1.2, ls="-.", label=f"{kind}, one step of memory αI, βI")


def _scales(ax: Axes, records: Sequence[Record], colour: str, kind: str) -> None:
    for name, style, letter in (("alpha", "-", "α"), ("beta", "--", "β")):
        sign = [1 if r.rows[-1]["alpha"] > 0 else -1 for r in records]
        values = np.array([[s * row[name] for row in r.rows] for r, s in zip(records, sign, strict=True)])
        ax.plot(values.mean(0), color=colour, ls=style, lw=1.4, label=f"{letter}, {kind}")

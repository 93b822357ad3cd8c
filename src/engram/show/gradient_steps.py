"""Figures of learning by single gradient steps: closed forms, constructions, signal and noise of Theorem 3."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.show.panels import finished, listed, log_sizes, panels, seed_dots
from engram.show.style import INK, MUTED, THEORY, house_style
from engram.tasks.second_visit import SecondVisit

TOLERANCE = 1e-10
Size = tuple[int, int]
Rows = Sequence[Mapping[str, float]]
Order = tuple[str, ...]
Signs = tuple[Sequence[int], Sequence[int], Float[np.ndarray, "t n"]]


@house_style()
def errors_against_autograd(errors: Mapping[str, float]) -> Figure:
    """For each lemma and matrix the largest error of an entry."""
    ax = panels(6.4, 0.32 * len(errors) + 1.2)
    error_bars(ax, {name: max(abs(error), 1e-18) for name, error in errors.items()}, height=0.55)
    ax.set(xlabel="largest error of any entry (float64)", title="Closed forms against automatic differentiation")
    return ax.figure


def error_bars(ax: Axes, errors: Mapping[str, float], height: float) -> None:
    """Largest errors on a logarithmic axis, beside the tolerance."""
    ax.barh(list(errors), [abs(error) for error in errors.values()], color="C2", height=height)
    ax.axvline(TOLERANCE, **THEORY)
    ax.text(TOLERANCE * 1.4, 0, "tolerance", fontsize=8.5, rotation=90, va="center")
    ax.set(xscale="log", xlim=(1e-18, 1e-8))
    listed(ax)


@house_style()
def accuracy_by_width(found: Mapping[Size, Sequence[float]]) -> Figure:
    """In-context accuracy of planted weights, mean and range over seeds, by width and sharpness."""
    ax = panels(6.4, 4.2)
    widths = sorted({d for d, _ in found})
    for i, sharp in enumerate(sorted({s for _, s in found})):
        values = [found[d, sharp] for d in widths]
        ax.fill_between(widths, [min(v) for v in values], [max(v) for v in values], color=f"C{i}", alpha=0.15, lw=0)
        ax.plot(widths, [np.mean(v) for v in values], "o-", ms=4, color=f"C{i}", label=f"β = {sharp}")
    ax.axhline(0.97, **THEORY, label="asked for at d = 512: 0.97")
    ax.set(xlabel="width d", ylabel="in-context accuracy", ylim=(0, 1.03))
    ax.set_title("The induction head of Eq. 7, written by hand")
    log_sizes(ax, widths)
    return finished(ax)


@house_style()
def signals_of_steps(
    task: SecondVisit, terms: Mapping[str, float], closed: Mapping[str, float], signs: Signs
) -> Figure:
    """Signal and noise of each step side by side, and where the diagonal of step 2 is positive."""
    first, second, third, where = panels(13.2, 4, 1, 4, width_ratios=(1, 1.2, 1.3, 1.3))
    names = {"e$_k$": "W_O2.diagonal", "e$_j$": "W_O2.off", "Φ1e$_k$": "W_O2.Phi1.diagonal", "Φ1e$_j$": "W_O2.Phi1.off"}
    _bars(first, {label: closed[name] for label, name in names.items()}, 1 / (task.N * task.T))
    first.set(title="Step 1: output", xlabel="what u$_k$ᵀ W_O2 W_V2 reads (j ≠ k)", ylabel="score in units of η/NT")
    _bars(second, {f"Δ$^{part}$": terms[f"Δ^{part} along Φ1e_q: found"] for part in "oqr"}, 1 / task.T)
    second.set(title="Step 2: trigger", xlabel="output, trigger, other positions")
    second.set_ylabel("along Φ1e$_q$, in units of 1/T")
    _letters(third, task, terms)
    _signs(where, *signs)
    for ax in (first, second, third):
        ax.axhline(0, color=MUTED, lw=0.8)
    return finished(third, fontsize=7.5, ncols=2)


def _bars(ax: Axes, values: Mapping[str, float], unit: float) -> None:
    heights = [value / unit for value in values.values()]
    ax.bar(list(values), heights, color=["C0" if i % 2 == 0 else "C1" for i in range(len(heights))], width=0.6)
    for i, height in enumerate(heights):
        ax.text(i, height, f"{height:.3g}", ha="center", va="bottom" if height >= 0 else "top", fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.margins(y=0.12)


def _letters(ax: Axes, task: SecondVisit, terms: Mapping[str, float]) -> None:
    """A is the signal; C its share in the mean; B and D vanish with N."""
    t = np.arange(2, task.T + 1)
    for i, letter in enumerate("ABCD"):
        found = [terms[f"{letter}, t={s}: found"] for s in t]
        ax.plot(t, found, color=f"C{i}", label=f"{letter}, computed", marker="o", ms=3.5)
    for i, letter in ((0, "A"), (2, "C")):
        paper = [terms[f"{letter}, t={s}: paper"] for s in t]
        ax.plot(t, paper, color=f"C{i}", label=f"{letter}, paper", ls="--", lw=1.2)
    ax.set(xlabel="position t", ylabel="along p$_{t−1}$", title="Step 3: previous token")


def _signs(ax: Axes, lengths: Sequence[int], sizes: Sequence[int], values: Float[np.ndarray, "t n"]) -> None:
    """Where the diagonal of step 2 is positive, and where the paper's sufficient condition begins."""
    rows = range(len(lengths))
    ax.contourf(sizes, rows, values > 0, levels=[-0.5, 0.5, 1.5], colors=["#f3c6a8", "#bcd9ec"])
    squares = [(t * t, i) for i, t in enumerate(lengths) if t * t <= max(sizes)]
    ax.plot(*zip(*squares, strict=True), color=INK, ls=":", lw=1.2)
    ax.text(squares[-1][0], squares[-1][1] + 0.3, "N = T²", fontsize=8.5, ha="right")
    ax.text(16, len(lengths) * 0.6, "positive: learned", fontsize=9, ha="center")
    ax.text(3.1, 0.3, "negative", fontsize=9)
    ax.set_yticks(rows, [str(t) for t in lengths])
    ax.set(xlabel="tokens N", ylabel="length T", title="Step 2: sign of the diagonal")
    log_sizes(ax, [4, 8, 16, 32, 64])
    ax.grid(visible=False)


@house_style()
def recall_by_width(found: Mapping[Size, Rows], memories: Sequence[str]) -> Figure:
    """Recall of each memory after three steps, by width and number of sequences; dots are seeds."""
    axes = panels(11.4, 3.8, 1, len(memories), sharey=True)
    widths, samples = sorted({d for d, _ in found}), sorted({n for _, n in found})
    for ax, name in zip(axes, memories, strict=True):
        for i, n in enumerate(samples):
            by_width = {d: [row[f"recall.{name}"] for row in found[d, n]] for d in widths}
            seed_dots(ax, by_width, f"C{i}", f"n = {n} sequences")
        ax.set(xlabel="width d", title=name, ylim=(-0.02, 1.02))
        log_sizes(ax, widths)
    axes[0].set_ylabel("recall after three steps")
    return finished(axes[0])


@house_style()
def recalls_by_order(
    found: Mapping[tuple[str, Order], Rows], orders: Sequence[Order], chance: Mapping[str, float]
) -> Figure:
    """Recall of each memory after one step on each, in every order, from zero and from random initial values."""
    axes = panels(11.4, 4, 1, 2, sharey=True)
    for ax, first in zip(axes, ("zero", "random"), strict=True):
        for i, (name, level) in enumerate(chance.items()):
            for j, order in enumerate(orders):
                values = [row[f"recall.{name}{'.t<T' if name == 'W_K1' else ''}"] for row in found[first, order]]
                x = j + 0.25 * (i - 1)
                ax.bar(x, float(np.mean(values)), width=0.22, color=f"C{i}", label=name if j == 0 else None)
                ax.plot([x] * len(values), values, "o", ms=2.5, color=INK, alpha=0.5)
                ax.plot([x - 0.11, x + 0.11], [level, level], color=INK, ls=":", lw=1.2)
        ax.set_xticks(range(len(orders)), ["\n".join(order) for order in orders], fontsize=8)
        ax.set(title=f"From {first}", xlabel="order of the steps, from above")
    axes[0].set(ylabel="recall (dotted: chance)", ylim=(0, 1.15))
    return finished(axes[0], ncols=3, loc="upper center", framealpha=0.9, frameon=True)

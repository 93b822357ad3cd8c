"""Figures of learning by single gradient steps: closed forms, constructions, signal and noise of Theorem 3."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.show.panels import INTERVAL, bars, finished, listed, log_sizes, mean_interval, panels, seed_dots
from engram.show.style import INK, MUTED, THEORY, house_style
from engram.show.subtitles import headline
from engram.tasks.second_visit import SecondVisit

TOLERANCE = 1e-10
Size = tuple[int, int]
Rows = Sequence[Mapping[str, float]]
Order = tuple[str, ...]
LETTERS = {
    "A": "the label stands at t (the signal)",
    "B": "A for the prediction p̂ = 1/N",
    "C": "A averaged over all positions",
    "D": "C for the prediction p̂ = 1/N",
}
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
    """In-context accuracy of planted weights, mean and interval over seeds, by width and sharpness."""
    ax = panels(6.4, 4.2)
    widths = sorted({d for d, _ in found})
    for i, sharp in enumerate(sorted({s for _, s in found})):
        values = [found[d, sharp] for d in widths]
        low, high = zip(*map(mean_interval, values), strict=True)
        ax.fill_between(widths, low, high, color=f"C{i}", alpha=0.15, lw=0, gid=INTERVAL)
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
    (first, second), (where, third) = panels(12.4, 9, 2, 2)
    names = {
        "the token itself,\nattended to directly": "W_O2.diagonal",
        "another token,\ndirectly": "W_O2.off",
        "the token itself,\nthrough layer 1 (Φ1)": "W_O2.Phi1.diagonal",
        "another token,\nthrough layer 1": "W_O2.Phi1.off",
    }
    _bars(first, {label: closed[name] for label, name in names.items()}, 1 / (task.N * task.T))
    first.set(title="Step 1 writes W_O2: score of output k when layer 2 reads …", xlabel="score in units of η/NT")
    parts = {"o": "the place after\nthe first visit (Δ$^o$)", "q": "the visits of\nthe trigger (Δ$^q$)"}
    parts |= {"r": "all other\npositions (Δ$^r$)"}
    _bars(second, {words: terms[f"Δ^{part} along Φ1e_q: found"] for part, words in parts.items()}, 1 / task.T)
    second.set(title="Step 2 writes W_K2: what the trigger's key gets from …", xlabel="along Φ1e$_q$, in units of 1/T")
    _letters(third, task, terms)
    _signs(where, *signs)
    finished(where, loc="upper right")
    third.axhline(0, color=MUTED, lw=0.8)
    about = "Theorem 3: what three population steps write, each quantity of its proof computed exactly"
    return headline(finished(third, loc="upper left"), f"{about}. N = {task.N} tokens, T = {task.T}; no seed matters")


def _bars(ax: Axes, values: Mapping[str, float], unit: float) -> None:
    """Names stand beside their bars: below them they would run into each other in a column of a paper."""
    lengths = [value / unit for value in values.values()]
    ax.barh(list(values), lengths, color=["C0" if i % 2 == 0 else "C1" for i in range(len(lengths))], height=0.6)
    for i, length in enumerate(lengths):
        at = (max(length, 0.0), i)  # never where the name stands
        ax.annotate(f"{length:.3g}", at, (3, 0), va="center", fontsize=9, textcoords="offset points")
    ax.axvline(0, color=MUTED, lw=0.8)
    ax.tick_params(axis="y", labelsize=8.5)
    ax.invert_yaxis()
    ax.margins(x=0.2)


def _letters(ax: Axes, task: SecondVisit, terms: Mapping[str, float]) -> None:
    """A is the signal; C its share in the mean; B and D vanish with N."""
    t = np.arange(2, task.T + 1)
    for i, (letter, meaning) in enumerate(LETTERS.items()):
        found = [terms[f"{letter}, t={s}: found"] for s in t]
        ax.plot(t, found, "os^D"[i] + "-", color=f"C{i}", label=f"{letter}: {meaning}", ms=(6, 8, 6, 4)[i], mfc="none")
    for i, letter in ((0, "A"), (2, "C")):
        paper = [terms[f"{letter}, t={s}: paper"] for s in t]
        ax.plot(t, paper, color=f"C{i}", label=f"{letter} as the paper has it", ls="--", lw=1.2)
    ax.set(xlabel="position t of the query", ylabel="part along p$_{t−1}$, the position before", ylim=(-0.05, 0.27))
    ax.set_title("Step 3 writes W_K1: the four terms of Eq. 26–29")


def _signs(ax: Axes, lengths: Sequence[int], sizes: Sequence[int], values: Float[np.ndarray, "t n"]) -> None:
    """Where the diagonal of step 2 is positive, and where the paper's sufficient condition begins."""
    rows = range(len(lengths))
    ax.contourf(sizes, rows, values > 0, levels=[-0.5, 0.5, 1.5], colors=["#f3c6a8", "#bcd9ec"])
    squares = [(t * t, i) for i, t in enumerate(lengths) if t * t <= max(sizes)]
    ax.plot(*zip(*squares, strict=True), color=INK, ls=":", lw=1.2, label="N = T²; the paper asks for N ≫ T²")
    ax.text(16, len(lengths) * 0.6, "positive: the trigger is learned", fontsize=9, ha="center")
    ax.text(3.1, 0.3, "negative", fontsize=9)
    ax.set_yticks(rows, [str(t) for t in lengths])
    ax.set(xlabel="tokens N", ylabel="length T", title="Step 2: where the diagonal of W_K2 is positive")
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
    axes = panels(12.4, 4.8, 1, 2, sharey=True)
    for ax, first in zip(axes, ("zero", "random"), strict=True):
        for i, (name, level) in enumerate(chance.items()):
            for j, order in enumerate(orders):
                values = [row[f"recall.{name}{'.t<T' if name == 'W_K1' else ''}"] for row in found[first, order]]
                written = max(row[f"written.{name}"] for row in found[first, order]) > 0
                _recall_bar(ax, j + 0.25 * (i - 1), values, level, f"C{i}" if written else None)
        ax.set_xticks(range(len(orders)), ["\n".join(order) for order in orders], fontsize=8)
        ax.set(title=f"From {first}", xlabel="order of the steps, the first above", ylabel="recall", ylim=(0, 1.06))
    _name_bars(axes[0], list(chance))
    fig = axes[0].figure
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return fig


def _recall_bar(ax: Axes, x: float, values: Sequence[float], chance: float, colour: str | None) -> None:
    """The mean over seeds with its interval; without a colour nothing was written, and a cross says so."""
    if colour is None:
        ax.plot(x, 0.03, "x", color=INK, ms=6, mew=1.4)
    else:
        ax.bar(x, float(np.mean(values)), width=0.22, color=colour, alpha=0.6)
        ax.plot([x] * len(values), values, "o", ms=2.5, color=colour)
        bars(ax, [x], [mean_interval(values)], INK)
    ax.plot([x - 0.11, x + 0.11], [chance, chance], color=INK, ls=":", lw=1.2)


def _name_bars(ax: Axes, names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        ax.plot([], [], "s", ms=9, color=f"C{i}", alpha=0.6, label=name)
    ax.plot([], [], "x", color=INK, ms=6, mew=1.4, label="nothing written: the gradient is exactly zero")
    ax.plot([], [], color=INK, ls=":", lw=1.2, label="chance")

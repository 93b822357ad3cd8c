"""Figures of published curves that were read anew, and of noise at equal fullness."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.panels import MARKS, finished, legends_below, lines_and_mean, log_sizes, panels
from engram.show.style import INK, house_style

STAR = {"marker": "*", "ms": 12, "mec": INK, "ls": "none"}


@house_style()
def read_anew(schedules: Sequence[Record], recursion: Sequence[Record], wrong: Sequence[Record]) -> Figure:
    """Errors of three schedules, of the scalar approximation, and the mean p of wrong tokens by three rules."""
    left, middle, right = panels(15, 4.4, 1, 3)
    _schedules(left, schedules)
    for i, (name, words) in enumerate({"real": "real descent", "scalar": "scalar approximation"}.items()):
        lines_and_mean(middle, [_curve(r, f"error.{name}") for r in recursion], f"C{i}", words)
        middle.plot(_last_step(recursion), (0.045, 0.15)[i], color=f"C{i}", **STAR)
    middle.set(xlabel="step (batches of 1000, γ=1)", ylabel="0/1 error", title="Each q by itself: d=10, N=100")
    middle.set(ylim=(0, None))
    for i, rule in enumerate(("gradient", "sign", "normalised")):
        lines_and_mean(right, [_curve(r, f"p.{rule}") for r in wrong], f"C{i}", rule)
    right.plot(_last_step(wrong), 0.013, color="C0", **STAR)
    right.set(xlabel="step (population, γ=1)", ylabel="mean p of wrong tokens", title="Rules of steps: d=10, N=10")
    for ax in (left, middle, right):
        ax.plot([], [], color="w", label="published, about", **STAR)
    return finished(left, middle, right)


def _schedules(ax: Axes, records: Sequence[Record]) -> None:
    names = {"small": ("γ=0.1", 0.21), "large": ("γ=10", 0.22), "decayed": ("γ=10, ×0.03 after 100", 0.15)}
    for i, (name, (words, published)) in enumerate(names.items()):
        lines_and_mean(ax, [(r.column("samples"), r.column(f"error.{name}")) for r in records], f"C{i}", words)
        ax.plot(records[0].column("samples")[-1], published, color=f"C{i}", **STAR)
    ax.set(xlabel="samples seen (batch 1)", ylabel="0/1 error", title="Fewer dimensions than tokens: d=5, N=30")


def _curve(record: Record, column: str) -> tuple[Any, Any]:
    return np.arange(len(record.rows)), record.column(column)


def _last_step(records: Sequence[Record]) -> int:
    return len(records[0].rows) - 1


@house_style()
def noise_when_full(memories: Mapping[tuple[str, int], Sequence[Record]]) -> Figure:
    """The share of keys that are wrong by the number of pairs stored, without noise (open) and with it (filled).

    No wrong key at all has no place on a logarithmic axis: it is drawn where a single one would be.
    """
    ax = panels(6.8, 4.4)
    sizes = sorted({row["N"] for records in memories.values() for r in records for row in r.rows})
    for i, ((kind, d), records) in enumerate(memories.items()):
        rows = [row for r in records for row in r.rows]
        words = f"{'matrix' if kind == 'linear' else kind}, d={d}"
        look = {"marker": MARKS[i], "color": f"C{i}", "ls": "none", "ms": 6}
        ax.plot([r["N"] for r in rows], [max(r["error"], 1 / r["asked"]) for r in rows], label=words, **look)
        clean = [max(1 - r["clean"], 1 / r["asked"]) for r in rows]
        ax.plot([r["N"] for r in rows], clean, mfc="none", **look | {"ms": 9})  # a ring around what lies on it
    ax.plot([], [], marker="o", mfc="none", color=INK, ls="none", label="open: clean keys")
    ax.plot([], [], marker="o", color=INK, ls="none", label="filled: noise of half their norm")
    ax.set(
        yscale="log",
        xlabel="pairs stored N (half full, full)",
        ylabel="share of keys that are wrong\n(none: drawn as a single one)",
    )
    ax.set_title("Noise at equal fullness")
    log_sizes(ax, sizes)
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes], fontsize=8.5)
    return legends_below(ax, ncols=3)

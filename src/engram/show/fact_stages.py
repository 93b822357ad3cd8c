"""Figures of the stages of learning facts: losses of the parts over time, and which part comes first."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, ScalarFormatter

from engram.records import Record
from engram.records.files import Row
from engram.show.style import INK, MUTED, house_style

PARTS = {"loss": "total", "loss.relation": "relation alone", "loss.subject": "subject alone"}


@house_style()
def linear_stages(
    flow: Sequence[Row],
    sampled: Sequence[Record],
    times: Mapping[int, tuple[float, float]],
    rates: Mapping[int, tuple[float, float]],
    rate: float,
) -> Figure:
    """Left: losses of the exact flow (lines) and of sampled SGD (dots). Right: when each part is known, by subjects."""
    fig = Figure(figsize=(11.4, 4.2))
    left, right = fig.subplots(1, 2, width_ratios=(1.5, 1))
    steps = np.array([row["time"] for row in flow]) / rate
    for i, (column, name) in enumerate(PARTS.items()):
        left.plot(steps, [row[column] for row in flow], color=f"C{i}", label=f"{name}, exact flow")
        for n, record in enumerate(sampled):
            at, values = record.curve(f"all.{column}")
            left.plot(at, values, ".", ms=2.5, color=f"C{i}", alpha=0.5, label=f"{name}, SGD" if n == 0 else None)
    draw_levels(left, {"ln |A|": log(32), "ln D": log(8)})
    left.set(xlabel="step (learning rate 0.1)", ylabel="loss (nats)", title="Relation first, then the fact")
    left.legend(fontsize=8.5, loc="center right", markerscale=4)
    _order(right, times, rates)
    return fig


def draw_levels(ax: Axes, named: Mapping[str, float]) -> None:
    for name, level in named.items():
        ax.axhline(level, color=MUTED, ls=":", lw=1)
        ax.text(1.0, level, name, transform=ax.get_yaxis_transform(), va="bottom", ha="right", fontsize=8.5)


def _order(ax: Axes, times: Mapping[int, tuple[float, float]], rates: Mapping[int, tuple[float, float]]) -> None:
    """Times at which a part is half known, and 1/λ scaled to the relation's."""
    S = list(times)
    for i, name in enumerate(("relation", "subject")):
        ax.plot(S, [times[s][i] for s in S], "o-", color=f"C{i + 1}", label=f"{name} half known")
    scale = np.mean([times[s][0] * rates[s][0] for s in S])
    ax.plot(S, [scale / rates[s][1] for s in S], color=INK, ls="--", lw=1.1, label="∝ 1/λ$_s$")
    ax.set(
        xscale="log", yscale="log", xlabel="subjects S (R = 16, D = 2)", ylabel="time", title="Which part comes first"
    )
    ax.set_xticks(S, [str(s) for s in S])
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(ScalarFormatter())
    ax.minorticks_off()
    ax.legend(fontsize=8.5)


@house_style()
def sampled_stages(records: Sequence[Record], named: Mapping[str, float], title: str) -> Figure:
    """Left: losses of the parts. Right: how the probability is shared out, and how far it is from p(a | r)."""
    fig = Figure(figsize=(11.4, 4.2))
    left, right = fig.subplots(1, 2)
    right_columns = {"all.mass.right": "right answer", "all.mass.relation": "other answers of the relation"}
    right_columns |= {"all.distance.relation": "distance to p(a | r)"}
    for ax, columns in ((left, {f"all.{k}": v for k, v in PARTS.items()}), (right, right_columns)):
        for i, (column, name) in enumerate(columns.items()):
            for n, record in enumerate(records):
                ax.plot(*record.curve(column), color=f"C{i}", lw=1.2, alpha=0.8, label=name if n == 0 else None)
        ax.set_xlabel("step")
        ax.legend(fontsize=8.5)
    draw_levels(left, named)
    left.set(ylabel="loss (nats)", title=title)
    right.set(ylabel="share", title="Hallucination: right relation, wrong subject", ylim=(0, 1.02))
    return fig


@house_style()
def one_fact(beliefs: Sequence[tuple[int, Any]], title: str) -> Figure:
    """How the probability is shared out over training when one fact is asked for."""
    fig = Figure(figsize=(7.4, 3.8))
    ax = fig.subplots()
    steps = [step for step, _ in beliefs]
    shares = [[getattr(belief, name) for _, belief in beliefs] for name in ("right", "relation", "rest")]
    labels = ("right answer", "right relation, wrong subject", "other answers")
    ax.stackplot(steps, shares, labels=labels, colors=["#009E73", "#E69F00", "#d8dee4"])
    ax.set(xlabel="step", ylabel="probability", ylim=(0, 1), xlim=(0, max(steps[-1], 1)), title=title)
    ax.legend(loc="center right", fontsize=8.5, frameon=True)
    return fig

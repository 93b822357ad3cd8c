"""Figures of factual recall: facts against parameters, attention against MLP, bits, and the stages of learning."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, ScalarFormatter

from engram.records import Record
from engram.records.files import Row
from engram.show.literal import literal
from engram.show.panels import BySize, dots, draw_grid, finished, lines, log_sizes, panels
from engram.show.style import MUTED, THEORY, house_style

OfBoth = Mapping[int, tuple[float, float]]  # of relation and subject, by the number of subjects
PARTS = {"loss": "total", "loss.relation": "relation alone", "loss.subject": "subject alone"}


@house_style()
def facts_by_parameters(groups: Mapping[str, BySize], published: float, title: str) -> Figure:
    """Facts at 99 % over parameters, beside the published line."""
    ax = panels(6.8, 4.6)
    for i, (name, stored) in enumerate(groups.items()):
        dots(ax, dict(sorted(stored.items())), i, name)
    ends = np.array([min(map(min, groups.values())), max(map(max, groups.values()))])
    ax.plot(ends, published * ends, **THEORY, label=f"{published:g} facts a parameter (published)")
    ax.set(xlabel="parameters 4·H·d_h·d + 2·m·d", ylabel="facts stored at 99 %", title=title)
    return _log_log(ax)


@house_style()
def trade_off(cells: Mapping[tuple[int, int], float], facts: int, published: Sequence[tuple[int, int]]) -> Figure:
    """Accuracy over the parameters of attention and of the MLP; right of the published boundary all facts are known."""
    ax = panels(7.4, 5)
    draw_grid(ax, cells, "attention: d·d_h·H", "MLP: d·m")
    ax.set_title(f"Best accuracy on {facts} facts")
    if published:
        xs, ys = (sorted({size[i] for size in cells}) for i in (0, 1))
        line = [[np.interp(point[i], axis, range(len(axis))) for point in published] for i, axis in enumerate((xs, ys))]
        ax.plot(*line, color="#D55E00", lw=2, ls="--", label="published boundary (read off its figure)")
        ax.figure.legend(loc="outside lower center")
    return ax.figure


@house_style()
def constructions(histogram: Sequence[Row], by_width: Mapping[int, float], by_units: Mapping[int, float]) -> Figure:
    """Left: scores of answers by the number of sets they lie in. Right: accuracy over width and over MLP units."""
    left, *others = panels(11.4, 4, 1, 3, width_ratios=(1.6, 1, 1))
    edges = [row["score"] for row in histogram]
    for i, (count, name) in enumerate({2: "in A_s and A_r: right", 1: "in one of them", 0: "in none"}.items()):
        shares = [row[f"share.{count}"] for row in histogram]
        left.fill_between(edges, shares, step="post", color=f"C{i}", alpha=0.6, lw=0, label=name)
    left.set(xlabel="score of an answer", ylabel="share of its kind", title="Attention only: scores count sets")
    left.set_ylim(0, left.get_ylim()[1] * 1.3)
    sizes = {"width d": ("Attention only", by_width), "MLP units m": ("Attention and MLP", by_units)}
    for ax, (size, (title, found)) in zip(others, sizes.items(), strict=True):
        ax.plot(list(found), list(found.values()), "o-", color="C0")
        ax.set(xlabel=size, ylabel="facts recalled", ylim=(0, 1.03), title=title)
        log_sizes(ax, found)
    return finished(left)


@house_style()
def stored_and_used(found: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """Bits known of the book against bits of the rounded weights; nothing can lie above the line."""
    ax = panels(6.4, 4.6)
    for i, (name, rows) in enumerate(found.items()):
        levels = sorted({int(row["levels"]) for row in rows})
        label = f"{name}: {levels[0]}{f'–{levels[-1]}' if len(levels) > 1 else ''} levels a weight"
        dots(ax, [(row["used"], row["stored"]) for row in rows], i, label)
    ends = np.array(ax.get_xlim())
    ax.plot(ends, ends, **THEORY, label="bound: one bit stored for each used")
    ax.set(xlabel="bits used", ylabel="bits stored", title="Trained models near capacity")
    return _log_log(ax)


def _log_log(ax: Axes) -> Figure:
    ax.set(xscale="log", yscale="log")
    ax.grid(axis="x")
    return finished(ax)


@house_style()
def linear_stages(flow: Sequence[Row], sampled: Sequence[Record], times: OfBoth, rates: OfBoth, rate: float) -> Figure:
    """Left: losses of the exact flow (lines) and of sampled SGD (dots). Right: when each part is known, by subjects."""
    left, right = panels(11.4, 4.2, 1, 2, width_ratios=(1.5, 1))
    steps = np.array([row["time"] for row in flow]) / rate
    for i, (column, name) in enumerate(PARTS.items()):
        left.plot(steps, [row[column] for row in flow], color=f"C{i}", label=f"{name}, exact flow")
        curves = [record.curve(f"all.{column}") for record in sampled]
        lines(left, curves, f"{name}, SGD", ls="", marker=".", ms=2.5, color=f"C{i}", alpha=0.5)
    _levels(left, {"ln |A|": log(32), "ln D": log(8)})
    left.set(xlabel="step (learning rate 0.1)", ylabel="loss (nats)", title="Relation first, then the fact")
    left.legend(loc="center right", markerscale=4)
    _order(right, times, rates)
    return finished(right)


def _levels(ax: Axes, named: Mapping[str, float]) -> None:
    for name, level in named.items():
        ax.axhline(level, color=MUTED, ls=":", lw=1)
        ax.text(1.0, level, name, transform=ax.get_yaxis_transform(), va="bottom", ha="right", fontsize=8.5)


def _order(ax: Axes, times: OfBoth, rates: OfBoth) -> None:
    """Times at which a part is half known, and 1/λ scaled to the relation's."""
    S = list(times)
    for i, name in enumerate(("relation", "subject")):
        ax.plot(S, [times[s][i] for s in S], "o-", color=f"C{i + 1}", label=f"{name} half known")
    scale = np.mean([times[s][0] * rates[s][0] for s in S])
    ax.plot(S, [scale / rates[s][1] for s in S], **THEORY, label="∝ 1/λ$_s$")
    ax.set(yscale="log", xlabel="subjects S (R = 16, D = 2)", ylabel="time", title="Which part comes first")
    log_sizes(ax, S)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(ScalarFormatter())
    ax.minorticks_off()


@house_style()
def sampled_stages(records: Sequence[Record], named: Mapping[str, float], title: str) -> Figure:
    """Left: losses of the parts. Right: how the probability is shared out, and how far it is from p(a | r)."""
    left, right = panels(11.4, 4.2, 1, 2)
    shares = {"all.mass.right": "right answer", "all.mass.relation": "other answers of the relation"}
    shares |= {"all.distance.relation": "distance to p(a | r)"}
    for ax, columns in ((left, {f"all.{k}": v for k, v in PARTS.items()}), (right, shares)):
        for i, (column, name) in enumerate(columns.items()):
            lines(ax, [record.curve(column) for record in records], name, color=f"C{i}", lw=1.2, alpha=0.8)
        ax.set_xlabel("step")
    _levels(left, named)
    left.set(ylabel="loss (nats)", title=title)
    right.set(ylabel="share", title="Hallucination: right relation, wrong subject", ylim=(0, 1.02))
    return finished(left, right)


@house_style()
def one_fact(beliefs: Sequence[tuple[int, Any]], title: str) -> Figure:
    """How the probability is shared out over training when one fact is asked for."""
    ax = panels(7.4, 3.8)
    steps = [step for step, _ in beliefs]
    shares = [[getattr(belief, name) for _, belief in beliefs] for name in ("right", "relation", "rest")]
    labels = ("right answer", "other answers of the relation", "all other answers")
    ax.stackplot(steps, shares, labels=labels, colors=["#009E73", "#E69F00", "#d8dee4"])
    chance = beliefs[0][1].chance.relation
    ax.axhline(chance, color=MUTED, ls=":", lw=1.2, label=f"right relation, guessing blindly: {chance:.0%}")
    ax.set(xlabel="step", ylabel="probability", ylim=(0, 1), xlim=(0, max(steps[-1], 1)), title=literal(title))
    return finished(ax, loc="center right", frameon=True)

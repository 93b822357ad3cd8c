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
from engram.show.panels import BySize, dots, dots_and_mean, draw_grid, finished, legends_below, lines, log_sizes, panels
from engram.show.style import INK, MUTED, THEORY, house_style, written_out

OfBoth = Mapping[int, tuple[float, float]]  # of relation and subject, by the number of subjects
PARTS = {
    "loss": "total: relation plus subject",
    "loss.relation": "relation",
    "loss.subject": "subject, given the relation",
}


@house_style()
def facts_by_parameters(groups: Mapping[str, BySize], published: float, title: str) -> Figure:
    """Left: facts at 99 % over parameters. Right: facts per parameter. Both beside the published line."""
    left, right = panels(11, 4.4, 1, 2)
    sizes = sorted({size for stored in groups.values() for size in stored})
    for i, (name, stored) in enumerate(groups.items()):
        by_size = dict(sorted(stored.items()))
        dots(left, by_size, i, f"{name}, one dot per seed")
        shares = {size: [value / size for value in values] for size, values in by_size.items()}
        dots_and_mean(right, shares, i, name)
    left.plot(sizes, published * np.array(sizes), **THEORY, label=f"{published:g} facts per parameter (published)")
    right.axhline(published, **THEORY, label=f"{published:g} (published)")
    left.set(yscale="log", xlabel="parameters 4·H·d_h·d + 2·m·d", ylabel="facts stored at 99 %", title=title)
    right.set(xlabel="parameters 4·H·d_h·d + 2·m·d", ylabel="facts per parameter", ylim=(0, 1.15 * published))
    right.set_title("The same for each parameter, mean over seeds")
    for ax in (left, right):
        log_sizes(ax, sizes)
    return finished(left, right)


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
    """Left: bits known of the book against bits of the rounded weights. Right: their ratio. Nothing can pass 1."""
    left, right = panels(11, 4.4, 1, 2, width_ratios=(1.25, 1))
    for i, (name, rows) in enumerate(found.items()):
        levels = sorted({int(row["levels"]) for row in rows})
        label = f"{name}: {levels[0]}{f'–{levels[-1]}' if len(levels) > 1 else ''} levels a weight"
        dots(left, [(row["used"], row["stored"]) for row in rows], i, label)
        dots_and_mean(right, {i: [row["ratio"] for row in rows]}, i)
    ends = np.array(left.get_xlim())
    left.plot(ends, ends, **THEORY, label="bound: one bit stored for each bit used")
    left.fill_between(ends, ends, 3 * ends, color=MUTED, alpha=0.12, lw=0, label="impossible")
    left.set(
        xscale="log", yscale="log", xlim=ends, xlabel="bits of the rounded weights", ylabel="bits known of the facts"
    )
    left.set_title("Trained models near capacity")
    right.axhline(1, **THEORY, label="bound: one bit for each bit")
    right.set_xticks(range(len(found)), list(found))
    right.set(
        yscale="log", ylim=(0.01, 2), xlim=(-0.5, len(found) - 0.5), ylabel="bits known for each bit of the weights"
    )
    right.set_title("How much of the bound is used")
    return finished(left, right, loc="best")


@house_style()
def linear_stages(flow: Sequence[Row], sampled: Sequence[Record], times: OfBoth, rates: OfBoth, rate: float) -> Figure:
    """Left: losses of the exact flow (lines) and of SGD (rings). Right: when each part is known, by subjects."""
    left, right = panels(12.4, 4.6, 1, 2, width_ratios=(1.5, 1))
    steps = np.array([row["time"] for row in flow]) / rate
    for i, (column, name) in enumerate(PARTS.items()):
        look = {"lw": 4, "alpha": 0.4} if i == 0 else {"lw": 1.8}  # the sum lies behind its parts
        left.plot(steps, [row[column] for row in flow], color=f"C{i}", label=name, **look)
        curves = [record.curve(f"all.{column}") for record in sampled]
        every = max(1, len(curves[0][0]) // 25)
        rings = [(x[::every], y[::every]) for x, y in curves]
        lines(left, rings, "_", ls="", marker="o", ms=4.5, mfc="none", mew=0.8, color=f"C{i}", alpha=0.7)
    left.plot([], [], color=INK, label="lines: exact flow")
    left.plot([], [], "o", color=INK, mfc="none", ms=4.5, label=f"rings: SGD, {len(sampled)} seeds")
    _levels(left, {"ln |A|: any answer": log(32), "ln D: any answer of the relation": log(8)})
    left.set(xlabel="step (learning rate 0.1)", ylabel="loss (nats)", title="Relation first, then the fact")
    left.legend(loc="center right", bbox_to_anchor=(1, 0.4))
    _order(right, times, rates)
    return finished(right, loc="upper left")


def _levels(ax: Axes, named: Mapping[str, float]) -> None:
    for name, level in named.items():
        ax.axhline(level, color=MUTED, ls=":", lw=1)
        ax.text(1.0, level, name, transform=ax.get_yaxis_transform(), va="bottom", ha="right", fontsize=8.5)


def _order(ax: Axes, times: OfBoth, rates: OfBoth) -> None:
    """Times at which a part is half known, and 1/λ scaled to the relation's."""
    S = list(times)
    for i, name in enumerate(("relation", "subject")):
        ax.plot(S, [times[s][i] for s in S], "o-", color=f"C{i + 1}", label=f"{name} half known (computed)")
    scale = np.mean([times[s][0] * rates[s][0] for s in S])
    ax.plot(S, [scale / rates[s][1] for s in S], **THEORY, label="theory for the subject: ∝ 1/λ$_s$")
    ax.set(yscale="log", xlabel="subjects S (R = 16 relations, D = 2)", ylabel="time of the flow (rate × steps)")
    ax.set_title("Which part comes first")
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
    ax = panels(7.4, 4.4)
    steps = [step for step, _ in beliefs]
    shares = [[getattr(belief, name) for _, belief in beliefs] for name in ("right", "relation", "rest")]
    labels = ("right answer", "other answers of the relation", "all other answers")
    ax.stackplot(steps, shares, labels=labels, colors=["#009E73", "#E69F00", "#d8dee4"])
    chance = beliefs[0][1].chance.relation
    ax.axhline(chance, color=MUTED, ls=":", lw=1.2, label=f"right relation, guessing blindly: {chance:.0%}")
    ax.set(xlabel="training step", ylabel="probability", ylim=(0, 1), title=literal(title))
    _most_happens_early(ax, steps)
    return legends_below(ax)


def _most_happens_early(ax: Axes, steps: Sequence[int]) -> None:
    """A logarithmic axis from step 1 on, and step 0 before it."""
    last = max(steps[-1], 1)
    decades = [10**power for power in range(7) if 10**power < last / 2]
    ax.set_xscale("symlog", linthresh=1, linscale=0.3)
    ax.set_xlim(0, last)
    ax.set_xticks([0, *decades, last], [written_out(step) for step in (0, *decades, last)])
    ax.set_xticks([], minor=True)

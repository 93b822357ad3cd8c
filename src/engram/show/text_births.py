"""Figures of births on real text: scores of heads, what the context is worth, bigrams and copies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from engram.records import Record
from engram.show.curves import seed_curves
from engram.show.panels import finished, lines_and_mean, panels
from engram.show.style import CYCLE, INK, REFERENCE, house_style
from engram.show.subtitles import describe, headline

Curve = tuple[Any, Any]
Best = Callable[[Record, str], Curve]  # steps, and at each the highest score of any head
WORDS = {"previous": "previous-token head", "induction": "induction head"}
COLOUR = {"previous": CYCLE[2], "induction": CYCLE[1]}


@house_style()
def text_births(records: Sequence[Record], best: Best) -> Figure:
    """The best head of each kind; losses of what comes twice; what a longer context is worth."""
    top, middle, bottom = panels(7.2, 7.6, 3, sharex=True, height_ratios=(1.2, 1, 1))
    for kind, words in WORDS.items():
        lines_and_mean(top, [best(record, kind) for record in records], COLOUR[kind], f"best {words}")
    top.set(ylabel="score", ylim=(0, 1.02), title="Heads on random tokens that come twice")
    seed_curves(middle, records, "repeat.first", INK, "first copy")
    seed_curves(middle, records, "repeat.second", CYCLE[1], "second copy")
    middle.set(ylabel="loss (nats)", title="Losses there")
    seed_curves(bottom, records, "context.score", CYCLE[0], "late minus early loss")
    bottom.axhline(0, **REFERENCE, label="a context worth nothing")
    bottom.set(xlabel=_steps(records[0]), ylabel="in-context score (nats)", title="Text that is held out")
    about = f"Birth of an induction head on real text: {describe(records)}"
    return headline(finished(top, middle, bottom), about)


def _steps(record: Record) -> str:
    tokens = record.train.plan.batch * record.train.task.T
    return f"training step ({tokens:,} tokens each)"


@house_style()
def parts(runs: Mapping[str, Sequence[Record]], best: Best) -> Figure:
    """The best head of each kind, one line for each variant."""
    axes: Sequence[Axes] = panels(7.2, 5.6, 2, sharex=True)
    for ax, (kind, words) in zip(axes, WORDS.items(), strict=True):
        for i, (label, records) in enumerate(runs.items()):
            lines_and_mean(ax, [best(record, kind) for record in records], CYCLE[i], label)
        ax.set(ylabel="score", ylim=(0, 1.02), title=f"Best {words}")
    everything = [record for records in runs.values() for record in records]
    axes[-1].set_xlabel(_steps(everything[0]))
    return headline(finished(*axes), f"Births on real text, one change at a time: {describe(everything)}")


@house_style()
def bigrams_and_copies(records: Sequence[Record], moved: Sequence[Curve]) -> Figure:
    """Accuracies at common bigrams and at copies; what the last feed-forward part does to their odds."""
    top, bottom = panels(7.2, 5.6, 2, sharex=True)
    seed_curves(top, records, "guessed.common", CYCLE[0], "common bigrams")
    seed_curves(top, records, "guessed.copied", CYCLE[1], "copies")
    top.set(ylabel="accuracy", ylim=(0, 1.02), title="What is guessed on text that is held out")
    lines_and_mean(bottom, moved, CYCLE[3], "without the last feed-forward part minus with it")
    bottom.axhline(0, **REFERENCE, label="no effect")
    bottom.set(xlabel=_steps(records[0]), ylabel="log p(copy)/p(bigram)", title="Where copy and bigram differ")
    return headline(finished(top, bottom), f"Bigrams and copies on real text: {describe(records)}")

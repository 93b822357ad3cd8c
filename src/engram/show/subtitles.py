"""What was run, in words: the line above a figure."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from matplotlib.figure import Figure

from engram.claims.experiment import Runs
from engram.claims.ranges import tested_range
from engram.records import Record
from engram.show.literal import literal
from engram.show.panels import CUT, INTERVAL
from engram.show.style import MUTED, house_style, written_out
from engram.specs import Train
from engram.tasks import Task

KINDS = {"Train": "training", "Search": "search for a capacity", "Check": "measurement"}
PLURALS = {"search for a capacity": "searches for a capacity"}
UNBROKEN = "\u00a0"  # a space at which no line ends
INTERVALS = f"Bands and bars around means: 95{UNBROKEN}% intervals over seeds."
AT_THE_ENDS = f"{INTERVALS[:-1]}; those of shares are cut at 0 and 1."
LETTERS = 14  # that fit into an inch


def headline(fig: Figure, text: str) -> Figure:
    """The figure with a line above it, or as many as its width requires; it says what bands and bars are."""
    drawn = {part.get_gid() for ax in fig.axes for part in (*ax.collections, *ax.lines)}
    if drawn & {INTERVAL, CUT}:
        text = f"{text.rstrip('. ')}. {AT_THE_ENDS if CUT in drawn else INTERVALS}"
    lines = even_lines(text, int(LETTERS * fig.get_figwidth()))
    with house_style():
        fig.suptitle("\n".join(map(literal, lines)), fontsize=9, color=MUTED, x=0.01, ha="left")
    return fig


def even_lines(text: str, letters: int) -> list[str]:
    """As few lines as it needs, and none with a single word in it."""
    lines = wrap(text, letters)
    if len(lines) < 2:
        return lines
    least = next(n for n in range(len(text) // max(1, len(lines)), letters + 1) if len(wrap(text, n)) == len(lines))
    return wrap(text, least)


def subtitled(fig: Figure, runs: Runs) -> Figure:
    """A figure that does not yet say what was run says it."""
    return fig if fig.get_suptitle() else headline(fig, in_words(runs))


def in_words(runs: Runs) -> str:
    """How many runs of which kind with how many seeds, and their sizes.

    “35 measurements, 5 seeds, quick scale: d = 16 to 64, N = 5 to 400”
    """
    counts = Counter(KINDS[record.kind] for record in runs.records)
    said = " and ".join(f"{n} {name if n == 1 else PLURALS.get(name, f'{name}s')}" for name, n in counts.items())
    sizes = sizes_in_words(runs.records)
    seeds = runs.seeds or sorted({record.spec.seed for record in runs.records})
    about = [said, seeds_in_words(seeds), f"{runs.scale} scale", *_texts(runs.records)]
    return f"{', '.join(about)}{f': {sizes}' if sizes else ''}"


def seeds_in_words(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seeds" if len(seeds) != 1 else f"seed {seeds[0]}"


def sizes_in_words(records: Sequence[Record]) -> str:
    """Of a Search without the sizes that it tried, which are its result."""
    found = tested_range(record.spec for record in records)
    sizes = {name: span for name, _, span in (size.partition(" ") for size in found.split(", ") if size)}
    if any(record.kind == "Search" for record in records):
        sizes.pop("n", None)
    spans = {name: " to ".join(written_out(float(end)) for end in span.split(" … ")) for name, span in sizes.items()}
    return ", ".join(f"{name} = {span}".replace(" ", UNBROKEN) for name, span in spans.items())


def describe(records: Sequence[Record]) -> str:
    """What all these trainings share, and how many seeds there are."""
    found = [record.spec_json.get("seed", 0) for record in records]  # of a record from elsewhere it may be anything
    seeds = sorted({seed for seed in found if isinstance(seed, int)})
    return ", ".join([*shared(records), seeds_in_words(seeds)])


def shared(records: Sequence[Record]) -> list[str]:
    """Only what is the same in all of them, in words: "K = 5 triggers", "batches of 128", "SGD with rate 0.2", …"""
    first, *others = [_sizes(record.train) if record.may_run else [] for record in records]
    return [size for size in first if all(size in of_other for of_other in others)]


def _texts(records: Sequence[Record]) -> list[str]:
    """Those that users brought, each once."""
    own = [own_text(record.train.task) for record in records if record.kind == "Train" and record.may_run]
    return list(dict.fromkeys(filter(None, own)))


def own_text(task: Task) -> str:
    """The text of a task by its name, unless it is the one that comes with Engram: "text mine.txt"."""
    path = getattr(getattr(task, "corpus", None), "path", "")
    return f"text {Path(path).name}" if path else ""


WORDS = {"K": "K = {} triggers", "T": "T = {} tokens", "d": "width d = {}"}


def _sizes(spec: Train) -> list[str]:
    parts, optimiser = (spec.task, spec.model), spec.plan.optimiser
    found = {name: getattr(part, name) for part in parts for name in WORDS if hasattr(part, name)}
    sizes = [WORDS[name].format(size) for name, size in found.items()]
    rate = f"{type(optimiser).__name__} with rate {optimiser.lr:g}"
    return [
        *filter(None, [own_text(spec.task)]),
        *sizes,
        f"batches of {spec.plan.batch}",
        rate,
        f"{spec.steps:,} steps",
    ]

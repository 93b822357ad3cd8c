"""One edge of a real model cut: induction heads whose keys do not see what the previous-token head wrote.

What L17H1 of SmolLM2-135M-Instruct writes is taken from what the keys of all later heads see, and from nothing else:
queries, values and the stream keep it. The same with L12H2, which also looks at the token before.

    engram run real.composition --seeds 10000-10004
"""

from typing import Any

from engram.claims import Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.experiments.real import SMOLLM2

TIMES = "there is one model of this size"
SOURCE = "our own study of SmolLM2-135M-Instruct; Birth of a Transformer, Eq. 7, for the composition through keys"
CLAIMS = {
    "real.composition": "Induction in layers 18 and 19 of SmolLM2-135M-Instruct reads in its keys what L17H1 wrote: "
    "without it there is none, and at most 25 % of the gain from a repeat; without L12H2 there is at least 90 %.",
}
WRITERS = {"L17H1": {"layer": 17, "head": 1}, "L12H2": {"layer": 12, "head": 2}}
WRITER, OTHER = WRITERS
LAYERS = (18, 19)
PERIOD = {"smoke": 12, "quick": 50, "paper": 50}
SEQUENCES = {"smoke": 2, "quick": 4, "paper": 4}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """At smoke scale random weights of ours take the place of the language model."""
    whose: tuple[str, dict[str, Any]] = ("real.keys_without", {"model": SMOLLM2})
    law, named = ("real.stand_in_keys_without", {}) if scale == "smoke" else whose
    return {
        writer: checks(law, seeds, SEQUENCES[scale], period=PERIOD[scale], **named, **where)
        for writer, where in WRITERS.items()
    }


def claims(runs: Runs) -> Measures:
    name = f"keys without {WRITER}: largest induction score of layers 18 and 19"
    yield Measure.over_seeds(name, largest(runs[WRITER]), high=0.05)
    yield Measure.over_seeds(f"keys without {WRITER}: share of the gain left", left(runs[WRITER]), high=0.25)
    yield Measure.over_seeds(f"keys without {OTHER}: share of the gain left", left(runs[OTHER]), low=0.9)


def largest(records: Records, column: str = "induction") -> list[float]:
    return [max(row[column] for row in record.rows if row["layer"] in LAYERS) for record in records]


def left(records: Records) -> list[float]:
    return [record.rows[0]["left"] for record in records]


def table(runs: Runs) -> list[dict[str, Any]]:
    """Means over seeds."""
    columns = {
        "largest induction score, whole": lambda records: largest(records, "whole"),
        "keys without it": largest,
        "loss on the repeat": lambda records: [record.rows[0]["repeat"] for record in records],
        "gain left": left,
    }
    mean = {(w, name): sum(of(runs[w])) / len(runs[w]) for w in WRITERS for name, of in columns.items()}
    return [{"writer": w, **{name: round(mean[w, name], 3) for name in columns}} for w in WRITERS]


def figure(runs: Runs) -> Figure:
    from engram.show.real_heads import keys_cut

    whose = "Random weights" if runs.scale == "smoke" else "SmolLM2-135M-Instruct (4-bit-derived)"
    rows = {writer: [row for record in runs[writer] for row in record.rows] for writer in WRITERS}
    shares = {f"keys without {writer}": left(runs[writer]) for writer in WRITERS}
    return keys_cut(rows, shares, f"{whose}, {len(runs[WRITER])} seeds of random tokens")

"""A fact of a real model rewritten by one outer product: whether it flips, and whether neighbours stay.

Facts about countries that SmolLM2-135M-Instruct knows (its likeliest token is the answer) are rewritten one at a time
in W_F of layer 29, by a step of 0.2 ‖x‖ from the old answer to another one of the same relation, which the seed draws
(engram.probes.write). Neighbours are other countries in the same relation, ten for each fact. For comparison a value is
optimised at the subject in layer 4 (engram.probes.rome), for twelve facts of each seed.

    engram run real.edit --seeds 10000-10004
"""

from collections.abc import Iterator
from math import inf
from typing import Any

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds, checks
from engram.experiments.real import SMOLLM2

TIMES = "there is one model of this size"
SOURCE = "our own study of SmolLM2-135M-Instruct; Meng, Bau, Andonian and Belinkov 2022 (ROME) for the comparison"
CLAIMS = {
    "real.edit": "One outer product of fixed size in layer 29 of SmolLM2-135M-Instruct rewrites a fact that it knows; "
    "neighbours and other facts of the subject stay, which a value optimised at the subject in layer 4 destroys.",
}
WHY = {
    "real.edit": (
        "Keys at the last token of a template are alike, so that an edit writes over countries that have its old "
        "answer: in a look at 40 facts 1 % of these neighbours stay, 81 % of the others. Relations with few answers "
        "lose most: 25 % stay of currencies, 50 % of continents, 73 % of languages, 91 % of capitals. The study in "
        "which 90 % stayed had five facts and the smallest step that flips. Control: the other measures of the same "
        "edits agree, and an edit that is undone gives the model back to the byte."
    ),
}
PROSE = "bcdd7e2eae81b6159030c38f6238edf5a924b34a90ce9ae4a81f3a246673f8ea"  # SHA-256 of engram.tasks.prose
WRITE: dict[str, Any] = {"layer": 29, "size": 0.2, "how": "write", "facts": 0}
ROME: dict[str, Any] = {"layer": 4, "size": 0.0, "how": "rome", "facts": 12}
NEIGHBOURS = 10
KINDS = {  # what is counted: hits, out of how many
    "flips": ("flips", None),
    "paraphrases answered by the new one": ("paraphrased", "paraphrases"),
    "neighbours kept": ("neighbours_kept", "neighbours"),
    "other facts of the subject kept": ("mates_kept", "mates"),
}
BANDED = ("flips", "neighbours kept", "other facts of the subject kept")
ENOUGH, FEW = 0.75, 0.4


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """At smoke scale random weights of ours take the place of the language model."""
    if scale == "smoke":
        small = {"write": WRITE | {"layer": 4}, "rome": ROME | {"layer": 1, "facts": 2}}
        return {how: checks("real.stand_in_edits", seeds, 2, **sizes) for how, sizes in small.items()}
    return {
        how: checks("real.edits", seeds, NEIGHBOURS, model=SMOLLM2, text=PROSE, **sizes)
        for how, sizes in {"write": WRITE, "rome": ROME}.items()
    }


def claims(runs: Runs) -> Claimed:
    written = [share(runs["write"], kind, low=ENOUGH) for kind in BANDED]
    optimised = share(runs["rome"], BANDED[-1], f"value optimised at the subject: {BANDED[-1]}", high=FEW)
    yield "real.edit", [*written, optimised]


def share(records: Records, kind: str, name: str | None = None, low: float = -inf, high: float = inf) -> Measure:
    """Over facts: those of all seeds together count as one, whatever new answers they were given."""
    hits, out_of = zip(*by_fact(records, kind), strict=True)
    return Measure.share(name or kind, hits, out_of, low, high).noted(counts="facts")


def by_fact(records: Records, kind: str) -> Iterator[tuple[int, int]]:
    """Hits and trials of every fact that has any trials."""
    hit, of = KINDS[kind]
    rows = [row for record in records for row in record.rows]
    for fact in sorted({row["fact"] for row in rows}):
        own = [row for row in rows if row["fact"] == fact]
        trials = int(sum(row[of] if of else 1 for row in own))
        if trials:
            yield int(sum(row[hit] for row in own)), trials


def table(runs: Runs) -> list[dict[str, Any]]:
    return [_row(how, kind, share(records, kind)) for how, records in runs.items() for kind in KINDS]


def _row(how: str, kind: str, found: Measure) -> dict[str, Any]:
    low, high = (round(float(edge), 3) for edge in found.interval)
    return {
        "how": how,
        "what": kind,
        "share": round(found.measured, 3),
        "interval": f"{low} … {high}",
        "facts": found.n,
    }


def figure(runs: Runs) -> Figure:
    from engram.show.real_facts import edited_facts

    found = {how: {kind: share(records, kind) for kind in KINDS} for how, records in runs.items()}
    whose = "Random weights" if runs.scale == "smoke" else "SmolLM2-135M-Instruct (4-bit-derived)"
    shares = {
        how: {kind: (one.measured, *one.interval, one.n) for kind, one in kinds.items()} for how, kinds in found.items()
    }
    return edited_facts(shares, f"{whose}, {len(runs['write'])} seeds of new answers")

"""The memory W_K2 of "Birth of a Transformer" in the weights of a real model: whose writing heads find.

Queries of a token in an induction head of SmolLM2-135M-Instruct, against keys made of what an earlier head writes about
each of 1024 random tokens (engram.probes.composition): how many tokens find themselves, through every earlier head.

    engram run real.qk-recall --seeds 10000-10004
"""

from typing import Any

from engram.claims import Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.experiments.real import SMOLLM2

TIMES = "there is one model of this size"
SOURCE = "our own study of SmolLM2-135M-Instruct; Birth of a Transformer, Eq. 7, for the memory W_K2"
CLAIMS = {
    "real.qk-recall": "The keys of the five strongest induction heads of SmolLM2-135M-Instruct hold the memory W_K2: "
    "through L17H1 at least 85 % of 1024 tokens are recalled, and through no other head as many.",
}
READERS = {"L18H4": (18, 4), "L18H5": (18, 5), "L18H6": (18, 6), "L19H7": (19, 7), "L19H8": (19, 8)}
WRITER = (17, 1)
TOKENS = {"smoke": 40, "quick": 1024, "paper": 1024}
EMBEDDINGS = ("effective", "raw")


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """At smoke scale random weights of ours take the place of the language model."""
    whose: tuple[str, dict[str, Any]] = ("real.key_recall", {"model": SMOLLM2})
    law, named = ("real.stand_in_key_recall", {}) if scale == "smoke" else whose
    readers = " ".join(f"{i}.{h}" for i, h in READERS.values())
    return {
        embedding: checks(law, seeds, TOKENS[scale], readers=readers, embedding=embedding, **named)
        for embedding in EMBEDDINGS
    }


def claims(runs: Runs) -> Measures:
    records, step = runs["effective"], 1 / TOKENS[runs.scale]
    for name in READERS:
        through = [recalls(record.rows, name)[WRITER] for record in records]
        yield Measure.over_seeds(f"{name}: recall through L17H1", through, low=0.85, resolution=step)
    for name in READERS:
        found = [recalls(record.rows, name) for record in records]
        best = [max(value for writer, value in of.items() if writer != WRITER) for of in found]
        own = [of[WRITER] for of in found]
        yield Measure.difference(f"{name}: recall through L17H1 minus the best other head", own, best, resolution=step)


Writers = dict[tuple[int, int], float]


def recalls(rows: list[dict[str, Any]], reader: str) -> Writers:
    """The recall of a reader's keys through every earlier head."""
    own = [row for row in rows if (row["layer"], row["head"]) == READERS[reader]]
    return {(int(row["writer_layer"]), int(row["writer_head"])): row["recall"] for row in own}


def means(records: Records, reader: str) -> Writers:
    found = [recalls(record.rows, reader) for record in records]
    return {writer: sum(of[writer] for of in found) / len(found) for writer in found[0]}


def table(runs: Runs) -> list[dict[str, Any]]:
    """Means over seeds, and the second partner."""
    return [_row(name, means(runs["effective"], name), means(runs["raw"], name)) for name in READERS]


def _row(name: str, found: Writers, raw: Writers) -> dict[str, Any]:
    first, second = sorted(found, key=lambda writer: -found[writer])[:2]
    ranked = {"first partner": first, "second partner": second}
    cells = {what: f"L{i}H{h} {found[i, h]:.3f}" for what, (i, h) in ranked.items()}
    return {"reader": name, **cells, "L17H1, raw embeddings": round(raw[WRITER], 3)}


def figure(runs: Runs) -> Figure:
    from engram.show.real_heads import partners_of

    whose = "Random weights" if runs.scale == "smoke" else "SmolLM2-135M-Instruct (4-bit-derived)"
    found = {embedding: {name: means(runs[embedding], name) for name in READERS} for embedding in EMBEDDINGS}
    n = TOKENS[runs.scale]
    return partners_of(found, WRITER, n, f"{whose}, {len(runs['raw'])} seeds of {n} random tokens")

"""The memory W_O2 in a real model: whether heads write the token that they look at.

For 1024 random tokens, the largest logit over the whole vocabulary of what a head of SmolLM2-135M-Instruct writes when
it looks at the token alone (engram.probes.ov_copying): with raw embeddings as the circuit of a toy has it, and with
effective ones, the residual of [start, token] that enters the head's layer. A failure is predicted for the induction
heads, which write for later layers and not for the output.

    engram run real.ov-copying --seeds 10000-10004
"""

from typing import Any

from engram.claims import Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.experiments.real import SMOLLM2

TIMES = "there is one model of this size"
SOURCE = "our own study of SmolLM2-135M-Instruct; Birth of a Transformer, Eq. 7, for the memory W_O2"
CLAIMS = {
    "real.ov-copying": "The five strongest induction heads of SmolLM2-135M-Instruct copy at most 2 % of raw embeddings "
    "to the output; a later head, L24H3, copies at least 15 % of effective ones.",
}
TOP = {"L18H4": (18, 4), "L18H5": (18, 5), "L18H6": (18, 6), "L19H7": (19, 7), "L19H8": (19, 8)}
LATE = {"L24H3": (24, 3)}
HEADS = TOP | LATE
TOKENS = {"smoke": 40, "quick": 1024, "paper": 1024}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """At smoke scale random weights of ours take the place of the language model."""
    heads = " ".join(f"{i}.{h}" for i, h in HEADS.values())
    if scale == "smoke":
        return {"copying": checks("real.stand_in_copying_recall", seeds, TOKENS[scale], heads=heads)}
    return {"copying": checks("real.copying_recall", seeds, TOKENS[scale], model=SMOLLM2, heads=heads)}


def claims(runs: Runs) -> Measures:
    records, step = runs["copying"], 1 / TOKENS[runs.scale]
    for name in TOP:
        raw = values(records, name, "raw")
        yield Measure.over_seeds(f"{name}: recall on raw embeddings", raw, high=0.02, resolution=step)
    late = values(records, "L24H3", "effective")
    yield Measure.over_seeds("L24H3: recall on effective embeddings", late, low=0.15, resolution=step)


def values(records: Records, name: str, column: str) -> list[float]:
    """A number of one head, by seed."""
    return [
        next(row[column] for row in record.rows if (row["layer"], row["head"]) == HEADS[name]) for record in records
    ]


def table(runs: Runs) -> list[dict[str, Any]]:
    """Means over seeds."""
    records = runs["copying"]
    mean = {(n, c): sum(values(records, n, c)) / len(records) for n in HEADS for c in ("raw", "effective")}
    return [{"head": n, "raw": round(mean[n, "raw"], 4), "effective": round(mean[n, "effective"], 4)} for n in HEADS]


def figure(runs: Runs) -> Figure:
    from engram.show.real_heads import copied_tokens

    whose = "Random weights" if runs.scale == "smoke" else "SmolLM2-135M-Instruct (4-bit-derived)"
    found = {c: {name: values(runs["copying"], name, c) for name in HEADS} for c in ("raw", "effective")}
    n = TOKENS[runs.scale]
    return copied_tokens(found, f"{whose}, {len(runs['copying'])} seeds of {n} random tokens")

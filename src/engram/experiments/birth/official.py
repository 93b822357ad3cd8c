"""The authors' own code beside ours: one run of theirs, logged every ten steps, could be one of our runs.

The simplified model learns in context: K=5 random triggers, uniform outputs, T=256, d=128, SGD with lr 0.2, momentum
0.9 and weight decay 1e-4, batch 512. The authors' run is one seed of albietz/transformer-birth, 300 steps on a CPU; its
batches come from racing processes, so that it cannot be repeated to the digit. Its file is read from the folder that
ENGRAM_REFERENCE names; without it the committed records still decide.

Registered before the two were compared: eight seeds of ours, 10000 … 10007, and no more; of each of six columns the
means over the steps 0–90, 100–190 and 200–290; in every column the largest |z| of the three (engram.claims.prediction)
must lie below 4.51, the limit of Student's t with 7 degrees of freedom for 18 readings. A run of ours passes with
probability 0.95 or more. Loss and accuracy are those of a step's batch, recalls those behind its update: this is how
the authors' code logs them.

    engram run birth.official --scale paper --seeds 10000-10007
"""

from typing import Any

import numpy as np

from engram.claims import Figure, Labelled, Measures, Records, Runs, Scale, Seeds, checks
from engram.claims.prediction import could_be_ours, deviations, largest, standardised
from engram.laws.published import COLUMNS, GAP

TIMES = "there is no smaller version of a published curve"
SOURCE = "Birth of a Transformer, the authors' code (albietz/transformer-birth), run unchanged for 300 steps"
CLAIMS = {"birth.official-curve": "The authors' own code, run unchanged, gives a curve that cannot be told from ours."}
SHA256 = "dd59ffaa38ac87fa6674fc0e4d35160bf60e4439f54d79e171f4cc12f79fb5ec"  # of birth/official_joint.jsonl
LOGGED = {"smoke": 3, "quick": 30, "paper": 30}
STRETCHES = 3  # of equal length: a mean over each is a reading
RESOLUTION = {  # one answer more or less
    "recall.W_O2": 1 / 65,
    "recall.W_K2": 1 / 65,
    "recall.W_K1.t<64": 1 / 63,
    "recall.W_K1": 1 / 255,
}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """At smoke scale a run of ours takes the place of the published one."""
    if scale == "smoke":
        return {"beside": checks("published.stand_in", seeds, LOGGED[scale], other=99, T=32, d=16, batch=8)}
    return {"beside": checks("published.official_joint", seeds, LOGGED[scale], sha256=SHA256)}


def claims(runs: Runs) -> Measures:
    records = runs["beside"]
    for column in COLUMNS:
        name = f"{column}: largest |z| of the published run, means over {STRETCHES} stretches"
        yield could_be_ours(name, *readings(records, column), RESOLUTION.get(column, 0.0), STRETCHES * len(COLUMNS))


def curves(records: Records, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Our runs, one row each, and the published one."""
    ours = np.array([record.column(column) for record in records])
    return ours, ours[0] + records[0].column(column + GAP)


def readings(records: Records, column: str) -> tuple[np.ndarray, np.ndarray]:
    """The means over the stretches, of ours and of the published run."""
    ours, published = curves(records, column)
    return ours.reshape(len(ours), STRETCHES, -1).mean(axis=-1), published.reshape(STRETCHES, -1).mean(axis=-1)


def table(runs: Runs) -> list[dict[str, Any]]:
    """Every reading: the published run, our mean, deviation and n, and the standardised difference."""
    return [row for column in COLUMNS for row in _compared(runs["beside"], column)]


def _compared(records: Records, column: str) -> list[dict[str, Any]]:
    (ours, published), floor = readings(records, column), RESOLUTION.get(column, 0.0)
    steps = records[0].column("at").reshape(STRETCHES, -1).astype(int)
    numbers = {
        "published": published,
        "ours": ours.mean(axis=0),
        "deviation": deviations(ours, floor),
        "z": standardised(ours, published, floor),
    }
    return [
        {"column": column, "steps": f"{at[0]}–{at[-1]}"}
        | {name: float(f"{values[i]:.4g}") for name, values in numbers.items()}
        | {"n": len(records)}
        for i, at in enumerate(steps)
    ]


def figure(runs: Runs) -> Figure:
    from engram.show.published import beside_published

    records = runs["beside"]
    found = {column: curves(records, column) for column in COLUMNS}
    worst = {column: largest(*readings(records, column), RESOLUTION.get(column, 0.0)) for column in COLUMNS}
    whose = "another run of ours" if runs.scale == "smoke" else "the authors' code"
    return beside_published(records[0].column("at"), found, worst, whose)

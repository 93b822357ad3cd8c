"""Three steps of Theorem 3 with random embeddings and finite samples: maps over (d, n) and over (N, T).

The theorem's own data and architecture (one trigger, everything uniform), but embeddings are random in d dimensions, or
gradients come from n sequences instead of all. Two maps over (N, T) tell the two apart: orthonormal embeddings with few
sequences, and random embeddings with many. In the exact population the diagonal of step 2 is positive for nearly all
(N, T) (theory.step2); the sentence here, ours, says the same of what a finite model sees. (Answers cannot all be right:
a trigger that stands first ends in a tie. At T = 5 the signal of step 2 is small for every N.)

    engram run theory.three-steps-finite --seeds 3
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.records import Record
from engram.specs import Check
from engram.theory.induction import least_tokens

TIMES = "quick 1 min a seed, paper 20 min a seed on 2 cores"
SOURCE = "Birth of a Transformer, Theorem 3 (with finite width and samples)"
CLAIMS = {
    "theory.step2-finite": "From T = 8 on N ≫ T² is not needed with random embeddings or few samples either.",
    "theory.three-steps-finite": "Width and samples together decide: three steps write all memories if both are large.",
}
LAW = "learning.steps.from_samples"
N, T = 32, 8
WIDTHS = {"smoke": (32, 64), "quick": (64, 128, 256, 512, 1024), "paper": (64, 128, 256, 512, 1024, 2048)}
SAMPLES = {"smoke": (16, 64), "quick": (64, 256, 1024, 4096), "paper": (64, 256, 1024, 4096, 16384)}
TOKENS = {"smoke": (8, 16), "quick": (8, 16, 32, 64), "paper": (8, 16, 32, 64, 128)}
LENGTHS = {"smoke": (5, 8), "quick": (5, 8, 16), "paper": (5, 8, 16, 32, 64)}


FINITE = {"smoke": ((0, 32), (64, 64)), "quick": ((0, 1024), (512, 8192)), "paper": ((0, 1024), (1024, 65536))}
Cells = Mapping[tuple[int, int], Sequence[Mapping[str, float]]]


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    sizes = [{"N": N, "T": T, "d": d, "n": n} for d in WIDTHS[scale] for n in SAMPLES[scale]]
    sizes += [
        {"N": tokens, "T": length, "d": d, "n": n}
        for d, n in FINITE[scale]  # d = 0 stands for orthonormal embeddings
        for tokens in TOKENS[scale]
        for length in LENGTHS[scale]
    ]
    return [Check(law=LAW, sizes=size, seed=seed) for size in _once(sizes) for seed in seeds]


def _once(sizes: Sequence[dict[str, int]]) -> list[dict[str, int]]:
    """A cell that is on both maps is measured once."""
    return list({tuple(size.values()): size for size in sizes}.values())


def cells(records: Sequence[Record], axes: tuple[str, str], **fixed: int) -> Cells:
    """The rows of all seeds by the two axes, of the records with these other sizes."""
    found: dict[tuple[int, int], list[Mapping[str, float]]] = {}
    for record in records:
        if fixed.items() <= record.check.sizes.items():
            key = record.check.sizes[axes[0]], record.check.sizes[axes[1]]
            found.setdefault(key, []).append(record.rows[0])
    return found


def grid(records: Sequence[Record]) -> Cells:
    """The cells over (d, n); a cell of the other maps that has the same N and T is left out."""
    found = cells(records, ("d", "n"), N=N, T=T)
    few = min(n for _, n in found)
    widths = {d for d, n in found if n == few}
    samples = {n for d, n in found if d == min(widths)}
    return {(d, n): rows for (d, n), rows in found.items() if d in widths and n in samples}


def maps(records: Sequence[Record]) -> dict[str, Cells]:
    """By what is kept finite, the cells over (N, T)."""
    kept = {(r.check.sizes["d"], r.check.sizes["n"]): None for r in records if r.check.sizes["T"] != T}
    names = {(d, n): f"{f'random, d = {d}' if d else 'orthonormal'}, n = {n}" for d, n in kept}
    return {name: cells(records, ("N", "T"), d=d, n=n) for (d, n), name in names.items()}


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    signs = []
    for title, found in maps(records).items():
        short = [size for size in found if size[1] >= 8 and least_tokens(size[1]) < size[0] < size[1] ** 2]
        worst = np.min([[row["positive.W_K2"] for row in found[size]] for size in short], axis=0)
        label = f"{title}: share of triggers with a positive diagonal, worst of {len(short)} cells with N < T², T ≥ 8"
        signs.append(Measure.over_seeds(label, worst.tolist(), low=0.95))
    yield _claim("theory.step2-finite", *signs)
    found = grid(records)
    d, n = max(found)
    few, narrow = min(n for _, n in found), min(d for d, _ in found)
    least, with_few, in_narrow = (np.array(_least(found[size])) for size in ((d, n), (d, few), (narrow, n)))
    yield _claim(
        "theory.three-steps-finite",
        Measure.over_seeds(f"d={d}, n={n}: least recall of the three", least.tolist(), low=0.95),
        Measure.over_seeds(f"this minus that from {few} sequences", (least - with_few).tolist(), low=0.25),
        Measure.over_seeds(f"this minus that at d={narrow}", (least - in_narrow).tolist(), low=0.25),
    )


def _least(rows: Sequence[Mapping[str, float]]) -> list[float]:
    """The data do not ask for the one before T, so W_K1 is read for t < T."""
    return [min(row[f"recall.{name}"] for name in ("W_O2", "W_K2", "W_K1.t<T")) for row in rows]


def _claim(id: str, *measures: Measure) -> Claim:
    return Claim(id, CLAIMS[id], SOURCE, measures)


def figure(records: Sequence[Record]) -> Any:
    from engram.show.maps import recall_maps

    return recall_maps(grid(records), maps(records))

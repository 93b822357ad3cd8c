"""Three steps of Theorem 3 with random embeddings and finite samples: maps over (d, n) and over (N, T).

The theorem's own data and architecture (one trigger, everything uniform), but embeddings are random in d dimensions, or
gradients come from n sequences instead of all. Two maps over (N, T) separate the two: orthonormal embeddings with few
sequences, and random embeddings with many. In the exact population the diagonal of step 2 is positive for nearly all
(N, T) (theory.step2); the sentence here, ours, says the same of what a finite model sees. (Answers cannot all be right:
a trigger that stands first ends in a tie. At T = 5 the signal of step 2 is small for every N.)

    engram run theory.three-steps-finite --seeds 3
"""

from collections.abc import Mapping, Sequence

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds, checks
from engram.claims.readings import least_share
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
ASKED = {"W_O2": N, "W_K2": N, "W_K1.t<T": T - 2}  # questions to each memory
ONE_MORE = 1 / N  # answer: differences of recalls are no finer
WIDTHS = {"smoke": (32, 64), "quick": (64, 128, 256, 512, 1024), "paper": (64, 128, 256, 512, 1024, 2048)}
SAMPLES = {"smoke": (16, 64), "quick": (64, 256, 1024, 4096), "paper": (64, 256, 1024, 4096, 16384)}
TOKENS = {"smoke": (8, 16), "quick": (8, 16, 32, 64), "paper": (8, 16, 32, 64, 128)}
LENGTHS = {"smoke": (5, 8), "quick": (5, 8, 16), "paper": (5, 8, 16, 32, 64)}
ORTHONORMAL = "orthonormal"  # stands where a width stands
FINITE = {
    "smoke": ((ORTHONORMAL, 32), (64, 64)),
    "quick": ((ORTHONORMAL, 1024), (512, 8192)),
    "paper": ((ORTHONORMAL, 1024), (1024, 65536)),
}
Cell = tuple[int, int, int | str, int]  # N, T, d, n
Cells = Mapping[tuple[int, int], Sequence[Mapping[str, float]]]


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By (N, T, d, n); a cell that is on both maps is measured once."""
    cells: list[Cell] = [(N, T, d, n) for d in WIDTHS[scale] for n in SAMPLES[scale]]
    cells += [(tokens, T, d, n) for d, n in FINITE[scale] for tokens in TOKENS[scale] for T in LENGTHS[scale]]
    return {cell: _checks(seeds, *cell) for cell in cells}


def _checks(seeds: Seeds, N: int, T: int, d: int | str, n: int) -> list[Check]:
    if d == ORTHONORMAL:
        return checks(f"{LAW}_orthonormal", seeds, N=N, T=T, n=n)
    return checks(LAW, seeds, N=N, T=T, d=d, n=n)


def grid(runs: Runs) -> Cells:
    """The rows of all seeds over (d, n)."""
    sizes = [(d, n) for d in WIDTHS[runs.scale] for n in SAMPLES[runs.scale]]
    return {size: [record.rows[0] for record in runs[N, T, *size]] for size in sizes}


def maps(runs: Runs) -> dict[str, Cells]:
    """By what is kept finite, the rows of all seeds over (N, T)."""
    names = {(d, n): f"{d if d == ORTHONORMAL else f'random, d = {d}'}, n = {n}" for d, n in FINITE[runs.scale]}
    return {
        name: {size[:2]: [record.rows[0] for record in same] for size, same in runs.items() if size[2:] == kept}
        for kept, name in names.items()
    }


def claims(runs: Runs) -> Claimed:
    signs = []
    for title, found in maps(runs).items():
        short = [(N, T) for N, T in found if T >= 8 and least_tokens(T) < N < T**2]
        triggers = {f"{N}, {T}": N for N, T in short}
        positive = zip(*([row["positive.W_K2"] for row in found[size]] for size in short), strict=True)
        worst = [least_share(dict(zip(triggers, of_seed, strict=True)), triggers) for of_seed in positive]
        label = f"{title}: share of triggers with a positive diagonal, worst of {len(short)} cells with N < T², T ≥ 8"
        signs.append(Measure.share(label, *zip(*worst, strict=True), low=0.9))
    yield "theory.step2-finite", signs
    found, (narrow, *_, d), (few, *_, n) = grid(runs), WIDTHS[runs.scale], SAMPLES[runs.scale]
    least, with_few, in_narrow = (_least(found[size]) for size in ((d, n), (d, few), (narrow, n)))
    memories = [least_share(recalls(row), ASKED) for row in found[d, n]]
    measures = [
        Measure.share(f"d={d}, n={n}: least recall of the three", *zip(*memories, strict=True), low=0.9),
        Measure.difference(f"this minus that from {few} sequences", least, with_few, low=0.25, resolution=ONE_MORE),
        Measure.difference(f"this minus that at d={narrow}", least, in_narrow, low=0.25, resolution=ONE_MORE),
    ]
    yield "theory.three-steps-finite", measures


def recalls(row: Mapping[str, float]) -> dict[str, float]:
    """The data never ask for the position before T, so W_K1 is read for t < T."""
    return {name: row[f"recall.{name}"] for name in ASKED}


def _least(rows: Sequence[Mapping[str, float]]) -> list[float]:
    return [min(recalls(row).values()) for row in rows]


def figure(runs: Runs) -> Figure:
    from engram.show.critical_widths import recall_maps

    return recall_maps(grid(runs), maps(runs))

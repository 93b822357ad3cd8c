"""An MLP written by hand stores at least N ∝ md pairs: at fixed N/(md) its recall does not fall with m.

The linearised network with σ = t² + t³ moves its first layer along δ_i = Σ_z ⟨v_i, u_z⟩ h_k(w_i·e_z) e_z. With k = 2
its kernel is ⟨e_z, x⟩³, which keeps pairs apart while N is well below d³; with k = 0 it is ⟨e_z, x⟩, a linear memory,
whose recall must fall. Few units are noisy (the right score itself varies like 1/m): recall rises with m at first.

    engram run memory.mlp-construction --seeds 5
"""

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds, checks
from engram.experiments.memory import means
from engram.specs import Check

TIMES = "quick 15 s a seed, paper 1 min a seed on 2 cores"
SOURCE = "Understanding factual recall, Theorem 2 (construction by the tangent kernel); talks"
CLAIMS = {
    "memory.mlp-construction": "At fixed N/(md) the recall of a hand-written MLP is flat in m.",
    "memory.mlp-construction-holds": "At fixed N/(md) its recall does not fall with m; that of a linear memory does.",
}
WHY = {
    "memory.mlp-construction": (
        "Recall rises with m because the right score itself is noisy when there are few units. The theorem is a lower "
        "bound: it needs only that recall does not fall, and up to m = 1024 it does not. Beyond that N comes near d³, "
        "the limit of the kernel ⟨e, x⟩³, and recall falls (0.43 at m = 2048, 0.27 at m = 4096, N = 0.02 md); the "
        "theorem lets the degree grow with N. Control: with the linear kernel, whose recall must fall, the same code "
        "measures a fall of 0.14 for each doubling of m (memory.mlp-construction-holds)."
    ),
}
UNITS = {"smoke": (64, 128), "quick": (64, 128, 256, 512, 1024), "paper": (64, 128, 256, 512, 1024)}
ASKED = {"smoke": 200, "quick": 4000, "paper": 20_000}
D, LOADS = 32, (0.005, 0.01, 0.02)  # width, N/(md)
DEGREES = {"cubic": 2, "linear": 0}  # of the kernel: k


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By the kernel, the load N/(md), and m."""
    kinds = [*(("cubic", load) for load in LOADS), ("linear", LOADS[-1])]
    return {
        (kernel, load, m): tangent(kernel, load, m, ASKED[scale], seeds) for kernel, load in kinds for m in UNITS[scale]
    }


def tangent(kernel: str, load: float, m: int, asked: int, seeds: Seeds) -> list[Check]:
    draws = max(2, round(asked / (load * m * D)))
    return checks("collapse.tangent", seeds, draws, d=D, m=m, degree=DEGREES[kernel], load=load)


def claims(runs: Runs) -> Claimed:
    found = {f"N/(md) = {load}": slopes(runs, "cubic", load) for load in LOADS}
    name = "change of recall by a doubling of m, d = 32"
    flat = [Measure.over_seeds(f"{at}: {name}", values, low=-0.05, high=0.05) for at, values in found.items()]
    yield "memory.mlp-construction", flat
    holds = [Measure.over_seeds(f"{at}: {name}", values, low=-0.05) for at, values in found.items()]
    linear = Measure.over_seeds(f"linear kernel: {name}", slopes(runs, "linear", LOADS[-1]), high=-0.05)
    yield "memory.mlp-construction-holds", [*holds, linear]


def slopes(runs: Runs, kernel: str, load: float) -> list[float]:
    """For each seed the slope of recall in log2 m."""
    curves = recalls(runs, kernel, load)
    return [float(np.polyfit(np.log2(list(curves)), seed, 1)[0]) for seed in zip(*curves.values(), strict=True)]


def recalls(runs: Runs, kernel: str, load: float) -> dict[int, list[float]]:
    """Recall over seeds, by m."""
    return {m: means(runs[kernel, load, m], "accuracy") for m in UNITS[runs.scale]}


def figure(runs: Runs) -> Figure:
    from engram.show.capacity import flat_figure

    curves = {f"kernel ⟨e, x⟩³, N = {load} md": recalls(runs, "cubic", load) for load in LOADS}
    curves[f"kernel ⟨e, x⟩, N = {LOADS[-1]} md"] = recalls(runs, "linear", LOADS[-1])
    return flat_figure(curves, f"units m (d = {D})", "MLP written by hand")

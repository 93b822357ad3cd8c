"""An MLP written by hand stores at least N ∝ md pairs: at fixed N/(md) its recall does not fall with m.

The linearised network with σ = t² + t³ moves its first layer along δ_i = Σ_z ⟨v_i, u_z⟩ h_k(w_i·e_z) e_z. With k = 2
its kernel is ⟨e_z, x⟩³, which keeps pairs apart while N is well below d³; with k = 0 it is ⟨e_z, x⟩, a linear memory,
whose recall must fall. Few units are noisy (the right score itself varies like 1/m): recall rises with m at first.

    engram run memory.mlp-construction --seeds 5
"""

from collections.abc import Sequence

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds, checks
from engram.experiments.memory import means
from engram.specs import Check

TIMES = "quick 15 s a seed, paper 1 min a seed on 2 cores"

SOURCE = "Understanding factual recall, Theorem 2 (construction by the tangent kernel); talks"
CLAIMS = {
    "memory.mlp-construction": "At fixed N/(md) the recall of a hand-written MLP is flat in m.",
    "memory.mlp-construction-holds": "Up to m = 1024 it does not fall with m (d = 32); that of a linear memory does.",
    "memory.mlp-construction-ends": "From m = 1024 on, where N comes near d³, it falls with m (d = 32).",
}
WHY = {
    "memory.mlp-construction": (
        "Recall rises with m because the right score itself is noisy when there are few units. The theorem is a lower "
        "bound: it needs only that recall does not fall, and up to m = 1024 it does not. Beyond that N comes near d³, "
        "the limit of the kernel ⟨e, x⟩³, and recall falls (memory.mlp-construction-ends); the theorem lets the degree "
        "grow with N. Control: with the linear kernel, whose recall must fall, the same code "
        "measures a fall of 0.14 for each doubling of m (memory.mlp-construction-holds)."
    ),
}
UNITS = {"smoke": (64, 128), "quick": (64, 128, 256, 512, 1024), "paper": (64, 128, 256, 512, 1024)}
MORE_UNITS = {"smoke": (128, 256), "quick": (1024, 2048, 4096), "paper": (1024, 2048, 4096)}
ASKED = {"smoke": 200, "quick": 4000, "paper": 20_000}
D, LOADS = 32, (0.005, 0.01, 0.02)  # width, N/(md)
DEGREES = {"cubic": 2, "linear": 0}  # of the kernel: k


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By the kernel, the load N/(md), and m."""
    kinds = [*(("cubic", load) for load in LOADS), ("linear", LOADS[-1])]
    sizes = [(*kind, m) for kind in kinds for m in UNITS[scale]]
    sizes += [("cubic", LOADS[-1], m) for m in MORE_UNITS[scale]]
    return {size: tangent(*size, ASKED[scale], seeds) for size in sizes}


def tangent(kernel: str, load: float, m: int, asked: int, seeds: Seeds) -> list[Check]:
    draws = max(2, round(asked / (load * m * D)))
    return checks("collapse.tangent", seeds, draws, d=D, m=m, degree=DEGREES[kernel], load=load)


def claims(runs: Runs) -> Claimed:
    units, more = UNITS[runs.scale], MORE_UNITS[runs.scale]
    found = {f"N/(md) = {load}": slopes(runs, "cubic", load, units) for load in LOADS}
    name = "change of recall by a doubling of m, d = 32"
    flat = [Measure.slope(f"{at}: {name}", values, low=-0.05, high=0.05) for at, values in found.items()]
    yield "memory.mlp-construction", flat
    holds = [Measure.slope(f"{at}: {name}", values, low=-0.05) for at, values in found.items()]
    linear = Measure.slope(f"linear kernel: {name}", slopes(runs, "linear", LOADS[-1], units), high=-0.05)
    last = [_last_doubling(runs, load, units) for load in LOADS]
    yield "memory.mlp-construction-holds", [*holds, *last, linear]
    ends = slopes(runs, "cubic", LOADS[-1], more)
    yield "memory.mlp-construction-ends", [Measure.slope(f"N/(md) = {LOADS[-1]}: {name}", ends, high=-0.05)]


def _last_doubling(runs: Runs, load: float, units: Sequence[int]) -> Measure:
    """A slope over all m could hide a fall at the end."""
    curves = recalls(runs, "cubic", load, units)
    name = f"N/(md) = {load}: recall at m = {units[-1]} minus m = {units[-2]}"
    return Measure.difference(name, curves[units[-1]], curves[units[-2]], low=-0.05)


def slopes(runs: Runs, kernel: str, load: float, units: Sequence[int]) -> list[float]:
    """For each seed the slope of recall in log2 m."""
    curves = recalls(runs, kernel, load, units)
    return [float(np.polyfit(np.log2(list(curves)), seed, 1)[0]) for seed in zip(*curves.values(), strict=True)]


def recalls(runs: Runs, kernel: str, load: float, units: Sequence[int]) -> dict[int, list[float]]:
    """Recall over seeds, by m."""
    return {m: means(runs[kernel, load, m], "accuracy") for m in units}


def figure(runs: Runs) -> Figure:
    from engram.show.capacity import flat_figure

    units = UNITS[runs.scale]
    all_units = sorted({*units, *MORE_UNITS[runs.scale]})
    curves = {f"kernel ⟨e, x⟩³, N = {load} md": recalls(runs, "cubic", load, units) for load in LOADS[:-1]}
    curves[f"kernel ⟨e, x⟩³, N = {LOADS[-1]} md"] = recalls(runs, "cubic", LOADS[-1], all_units)
    curves[f"kernel ⟨e, x⟩, N = {LOADS[-1]} md"] = recalls(runs, "linear", LOADS[-1], units)
    return flat_figure(curves, f"units m (d = {D})", "MLP written by hand")

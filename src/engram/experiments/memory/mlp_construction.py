"""An MLP written by hand stores N ∝ md pairs: at fixed N/(md) its recall is flat in m, also beyond N = d².

The linearised network with σ = t² + t³ moves its first layer along δ_i = Σ_z ⟨v_i, u_z⟩ h_k(w_i·e_z) e_z. With k = 2
its kernel is ⟨e_z, x⟩³, which keeps pairs apart; with k = 0 it is ⟨e_z, x⟩, a linear memory, whose recall must fall.

    engram run memory.mlp-construction --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engram.experiments import Scale
from engram.experiments.memory import of_law
from engram.records import Check, Claim, Measure, Record

TIMES = "quick 15 s a seed, paper 1 min a seed on 2 cores"
SOURCE = "Understanding factual recall, Theorem 2 (construction by the tangent kernel); talks"
CLAIMS = {
    "memory.mlp-construction": "A hand-written MLP of m units stores N ∝ md pairs: at fixed N/(md) recall is flat in m."
}
UNITS = {"smoke": (64, 128), "quick": (64, 128, 256, 512, 1024), "paper": (64, 128, 256, 512, 1024, 2048)}
ASKED = {"smoke": 200, "quick": 4000, "paper": 20_000}
D, PER_MILLE = 32, 20


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    return [
        Check(
            law="collapse.tangent",
            sizes=sizes(m, k),
            draws=max(2, round(1000 * ASKED[scale] / (PER_MILLE * m * D))),
            seed=s,
        )
        for s in seeds
        for k in (0, 2)
        for m in UNITS[scale]
    ]


def sizes(m: int, k: int) -> dict[str, int]:
    return {"d": D, "m": m, "degree": k, "per_mille": PER_MILLE}


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    at = f"N/(md) = {PER_MILLE / 1000}, d = {D}"
    yield Claim(
        "memory.mlp-construction",
        CLAIMS["memory.mlp-construction"],
        SOURCE,
        (
            Measure.over_seeds(f"change of recall by a doubling of m, {at}", slopes(records, 2), low=-0.05, high=0.05),
            Measure.over_seeds("the same for the linear kernel, which must fall", slopes(records, 0), high=-0.05),
        ),
    )


def slopes(records: Sequence[Record], k: int) -> list[float]:
    """For each seed the slope of recall in log2 m."""
    curves = recalls(records, k)
    units = np.log2(list(curves))
    return [float(np.polyfit(units, seed, 1)[0]) for seed in zip(*curves.values(), strict=True)]


def recalls(records: Sequence[Record], k: int) -> dict[int, list[float]]:
    """Recall over seeds, by m."""
    units = sorted({r.check.sizes["m"] for r in records})
    return {m: [rows[0]["accuracy"] for rows in of_law(records, "collapse.tangent", m=m, degree=k)] for m in units}


def figure(records: Sequence[Record]) -> Any:
    from engram.show.capacity import flat_figure

    curves = {"kernel ⟨e, x⟩³ (k = 2)": recalls(records, 2), "kernel ⟨e, x⟩ (k = 0): linear": recalls(records, 0)}
    return flat_figure(curves, f"units m (d = {D}, N = {PER_MILLE / 1000} md)", "MLP written by hand")

"""The cost of an experiment at a scale: its runs measured, added up, and spread over cores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from engram.claims.costs import CORES, Known, identity
from engram.claims.experiment import Experiment, Scale
from engram.costs.cost import Cost
from engram.costs.measure import Measured
from engram.specs.spec import run_id

DIGITS = 4  # of a number that is stored


@dataclass(frozen=True)
class Spread:
    """All seeds on so many cores: no run is spread, so its longest run is the least that it takes."""

    seconds: float  # of one core
    longest: float
    cores: int

    @property
    def wall(self) -> float:
        return max(self.longest, self.seconds / self.cores)

    @property
    def bottleneck(self) -> str:
        return "longest" if self.longest > self.seconds / self.cores else "total"


def spread(known: Known, seeds: int, cores: int = CORES) -> Spread:
    """So many seeds of an experiment."""
    return Spread(known.once + seeds * known.seconds, known.longest, cores)


def estimate(experiment: Experiment, scale: Scale, measured: Measured) -> Known:
    """One seed."""
    specs = experiment.specs(scale, [0])
    costs = measured.of(specs)
    shared = {run_id(spec) for spec in experiment.specs(scale, [1])}
    found = [(spec, cost) for spec, cost in zip(specs, costs, strict=True) if isinstance(cost, Cost)]
    own = [cost for spec, cost in found if run_id(spec) not in shared]
    once = [cost for spec, cost in found if run_id(spec) in shared]
    return Known(
        _rounded(fsum(cost.seconds for cost in own)),
        _rounded(fsum(cost.seconds for cost in once)),
        _rounded(max((cost.seconds for _, cost in found), default=0.0)),
        _flops(own or once),
        _rounded(fsum(cost.bytes for cost in own or once)),
        round(_share([cost for _, cost in found]), 2),
        {identity(spec): _rounded(cost.seconds) for spec, cost in found},
        list(_missing(costs)),
    )


def _flops(costs: Sequence[Cost]) -> float | None:
    """Where nothing is a product of torch, there is nothing to tell."""
    counted = [cost.flops for cost in costs if cost.flops is not None]
    return _rounded(fsum(counted)) if counted else None


def _share(costs: Sequence[Cost]) -> float:
    """Of the seconds that were not carried over from other sizes."""
    total = fsum(cost.seconds for cost in costs)
    return fsum(cost.seconds for cost in costs if cost.is_run) / total if total else 0.0


def _missing(costs: Sequence[Cost | str]) -> Iterator[str]:
    words = [cost for cost in costs if isinstance(cost, str)]
    for why in dict.fromkeys(words):
        n = words.count(why)
        yield f"{n} run{'s' * (n > 1)} not measured: {why}"


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def to_json(known: Known) -> dict[str, Any]:
    return dict(vars(known))

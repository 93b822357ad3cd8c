"""Weights of the runs of a home, for interventions that take something over from another run."""

from pathlib import Path

from engram.errors import EngramError
from engram.lab.run_reader import RunReader
from engram.models import Weights
from engram.specs.events import WeightsOf


def weights_of(home: Path) -> WeightsOf:
    """All weights of a run of this home at a stored step; its heads write, ablated or not."""

    def of(name: str, step: int) -> Weights:
        run = RunReader(home).run(name)  # refuses what is no run of this home
        stored = run.record.snapshot_steps
        if step not in stored:
            near = min(stored, key=lambda other: abs(other - step), default="none")
            raise EngramError(f"of: run {name} has no stored weights of step {step}; the nearest that it has: {near}")
        run.look_for_weights()
        return run.weights(step)

    return of

"""Sweeps: an experiment, or one Spec, at every combination of some of its fields."""

from engram.sweeps.cells import Cell
from engram.sweeps.sweep import Planned, Swept, plan_sweep, sweep

__all__ = ["Cell", "Planned", "Swept", "plan_sweep", "sweep"]

"""The planted alternatives of the claims that come with Engram, one line each, by the folder of their experiments.

A claim must not agree on any of them. An experiment of one's own names its controls itself: CONTROLS in its file.
"""

import importlib

from engram.claims.controls import Controls
from engram.claims.experiment import Experiment, hook


def of(experiment: Experiment) -> Controls:
    """The controls of an experiment's claims: those in its own file, else those of this room."""
    own = hook(experiment.module, "CONTROLS")
    if own is not None:
        return own
    folder = experiment.name.partition(".")[0]
    known: Controls = importlib.import_module(f"engram.controls.{folder}").CONTROLS if "." in experiment.name else {}
    return {id: known[id] for id in experiment.statements if id in known}

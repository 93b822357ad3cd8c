"""Engram: an open laboratory for transformers as associative memories.

>>> import engram
>>> result = engram.run("birth.joint", scale="smoke", seeds=1)   # doctest: +SKIP
>>> record = engram.load("last")                                 # doctest: +SKIP
>>> record.model()(record.spec.task.sample(0, 0, 1).tokens).attention2.shape   # doctest: +SKIP
"""

# ruff: noqa: F401 (the imports are for type checkers: at run time names are fetched by _HOME)

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engram.adapters import read_model, read_network
    from engram.api import load, run
    from engram.calculator.predict import predict
    from engram.claims import Claim, Measure
    from engram.embeddings import directions
    from engram.engines.local import Local
    from engram.engines.ray_cluster import Ray
    from engram.engines.slurm import Slurm
    from engram.errors import EngramError
    from engram.lab.notebook import show_lab
    from engram.learning import SGD, Adam, FullBatch, Muon, Plan, Stage
    from engram.memory import Hopfield, Linear
    from engram.memory.stored import Labels, Stored
    from engram.models import Layer, Model, Network, Simplified, Trace, Transformer, network_of
    from engram.probes.causal import patch
    from engram.probes.probe import Look, Probe
    from engram.probing import probe
    from engram.records import Record
    from engram.shown import figure
    from engram.specs import Check, Search, Train
    from engram.specs.events import Event, OfHead, OfMatrix
    from engram.sweeps import sweep
    from engram.tasks import Association, Batch, Bigram, Composition, Hops, NoisyRecall
    from engram.tasks.batch import marks_of
    from engram.values import Value, generator

# Read when torch is loaded: its threads spin for microseconds, then sleep. By default they spin for milliseconds, and
# beside other busy programs a small step takes fifty times as long. `engram bench step.busy` measures it.
for _name, _value in (("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "500")):
    os.environ.setdefault(_name, _value)

__version__ = "0.2.0"
_HOME = {
    "engram.api": ("run", "load"),
    "engram.adapters": ("read_model", "read_network"),
    "engram.calculator.predict": ("predict",),
    "engram.lab.notebook": ("show_lab",),
    "engram.learning": ("SGD", "Adam", "FullBatch", "Muon", "Plan", "Stage"),
    "engram.memory": ("Hopfield", "Linear"),
    "engram.memory.stored": ("Labels", "Stored"),
    "engram.models": ("Layer", "Model", "Network", "Simplified", "Trace", "Transformer", "network_of"),
    "engram.probes.causal": ("patch",),
    "engram.probes.probe": ("Look", "Probe"),
    "engram.probing": ("probe",),
    "engram.claims": ("Claim", "Measure"),
    "engram.records": ("Record",),
    "engram.shown": ("figure",),
    "engram.specs": ("Check", "Search", "Train"),
    "engram.specs.events": ("Event", "OfHead", "OfMatrix"),
    "engram.sweeps": ("sweep",),
    "engram.tasks": ("Association", "Batch", "Bigram", "Composition", "Hops", "NoisyRecall"),
    "engram.tasks.batch": ("marks_of",),
    "engram.embeddings": ("directions",),
    "engram.engines.local": ("Local",),
    "engram.engines.ray_cluster": ("Ray",),
    "engram.engines.slurm": ("Slurm",),
    "engram.errors": ("EngramError",),
    "engram.values": ("Value", "generator"),
}
__all__ = sorted(name for names in _HOME.values() for name in names)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Names are fetched when first used: `import engram` and `engram --help` do not wait for torch."""
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(module), name)
    from engram.errors import did_you_mean

    hint = did_you_mean(name, __all__)
    raise AttributeError(f"module 'engram' has no attribute {name!r}{hint and f'; {hint[:-1]}'}")


def __dir__() -> list[str]:
    """Everything public, for completion."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

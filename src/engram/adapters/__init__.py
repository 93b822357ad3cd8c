"""Other people's models as a Network: one file for each family, called as Hugging Face calls its `model_type`.

>>> from engram.adapters import read_network
>>> network = read_network("gpt2-L4")                            # doctest: +SKIP
>>> logits = network.stream([[4, 17, 18, 19, 17, 20]])           # doctest: +SKIP
"""

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

import torch

from engram.adapters.source import Source, read_folder
from engram.errors import EngramError, did_you_mean
from engram.models import Network

__all__ = ["families", "network_from", "read_network"]


def read_network(folder: str | Path, dtype: torch.dtype = torch.float32) -> Network:
    """The model in a Hugging Face folder (config.json and model.safetensors)."""
    return network_from(read_folder(Path(folder).expanduser(), dtype))


def network_from(source: Source) -> Network:
    """The model that was read, by the reader of its family."""
    known, family = families(), source.family
    if family not in known:
        hint = did_you_mean(family, known)
        raise EngramError(f"{source.name}: no reader for model_type {family!r:.60}; {hint}known: {', '.join(known)}")
    return known[family](source)


def families() -> dict[str, Callable[[Source], Network]]:
    """Every family that can be read: a module of this room with a function `network`."""
    modules = {info.name: importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)}
    return {name: module.network for name, module in modules.items() if hasattr(module, "network")}

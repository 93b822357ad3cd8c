"""Other people's models as a Network: one file for each family, called as Hugging Face calls its `model_type`.

>>> from engram.adapters import read_model
>>> model = read_model("smollm2")                                # doctest: +SKIP
>>> tokens = model.tokenizer.encode("The Eiffel Tower is in the city of")     # doctest: +SKIP
>>> logits = model.network.stream([tokens], read="last")         # doctest: +SKIP
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from engram.adapters.moments import moments
from engram.adapters.opening import Opened, opened
from engram.adapters.source import Source
from engram.adapters.tokenizer import Tokenizer
from engram.errors import EngramError, did_you_mean
from engram.models import Network

__all__ = ["Pretrained", "Tokenizer", "families", "network_from", "read_model", "read_network", "revisions"]


@dataclass(frozen=True)
class Pretrained:
    """A model that others trained, and its tokenizer, where its files have one."""

    network: Network
    tokenizer: Tokenizer | None


def read_model(where: str | Path, dtype: torch.dtype = torch.float32, *, consent: bool = False) -> Pretrained:
    """The model in a Hugging Face folder (config.json, model.safetensors), in a .gguf file, or of a name.

    Names are "smollm2", and those of the Hugging Face hub, "org/name" or "org/name@revision"; `consent` allows that
    what is not on this computer is downloaded.
    """
    return _pretrained(opened(where, dtype, consent))


def read_network(where: str | Path, dtype: torch.dtype = torch.float32, *, consent: bool = False) -> Network:
    """The same without a tokenizer."""
    return network_from(opened(where, dtype, consent).source)


def revisions(
    where: str | Path, names: Iterable[str] | None = None, dtype: torch.dtype = torch.float32, *, consent: bool = False
) -> Iterator[tuple[str, Pretrained]]:
    """A model at several moments of its training, one after another; only one of them is in memory or on the disk.

    Subfolders of a folder, such as those that `engram runs export` writes, or revisions on the hub, which are
    downloaded and removed again. Without `names` all that there are, in the order of the numbers in their names.
    """
    for name, opening in moments(where, names, dtype, consent):
        yield name, _pretrained(opening())


def network_from(source: Source) -> Network:
    """The model that was read, by the reader of its family."""
    known, family = families(), source.family
    if family not in known:
        hint = did_you_mean(family, known)
        raise EngramError(f"{source.name}: no reader for model_type {family!r:.60}; {hint}known: {', '.join(known)}")
    return known[family](source)


def _pretrained(found: Opened) -> Pretrained:
    return Pretrained(network_from(found.source), found.tokenizer())


def families() -> dict[str, Callable[[Source], Network]]:
    """Every family that can be read: a module of this room with a function `network`."""
    modules = {info.name: importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)}
    return {name: module.network for name, module in modules.items() if hasattr(module, "network")}

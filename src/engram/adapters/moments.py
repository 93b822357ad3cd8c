"""One model at several moments of its training: subfolders of a folder, or revisions on the hub."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from engram.adapters.folder import read_folder
from engram.adapters.hub import HubName, branches, fetch_into, hub_name
from engram.adapters.opening import Opened
from engram.adapters.source import CONFIG
from engram.adapters.tokenizer import tokenizer_of_folder
from engram.errors import EngramError

Moments = Iterator[tuple[str, Callable[[], Opened]]]


def moments(where: str | Path, names: Iterable[str] | None, dtype: torch.dtype, consent: bool) -> Moments:
    """Names of moments, and how each is opened."""
    named = hub_name(where)
    if named is None:
        return _of_folder(Path(where).expanduser(), names, dtype)
    if not consent:
        raise EngramError(f"{named}: revisions are downloaded; agree with --yes, in Python with consent=True")
    return _of_hub(named, names, dtype)


def _of_folder(folder: Path, names: Iterable[str] | None, dtype: torch.dtype) -> Moments:
    found = _in_order(path.parent.name for path in folder.glob(f"*/{CONFIG}"))
    if not found:
        raise EngramError(f"{folder}: no folder with models in it; each moment is a folder with {CONFIG}")
    for name in found if names is None else names:
        if name not in found:
            raise EngramError(f"{folder}: there is no {name!r:.80}; there are {', '.join(found):.200}")
        yield name, partial(_opened, folder / name, dtype, f"{folder.resolve().name}@{name}")


def _of_hub(named: HubName, names: Iterable[str] | None, dtype: torch.dtype) -> Moments:
    for name in _in_order(branches(named)) if names is None else names:
        yield name, partial(_passing, HubName(named.repo, name), dtype)


def _passing(named: HubName, dtype: torch.dtype) -> Opened:
    """A revision whose files are removed as soon as they were read."""
    with TemporaryDirectory(prefix="engram-revision-") as folder:
        fetch_into(Path(folder), named)
        read = _opened(Path(folder), dtype, str(named))
        tokenizer = read.tokenizer()
    return Opened(read.source, lambda: tokenizer)


def _opened(folder: Path, dtype: torch.dtype, name: str) -> Opened:
    return Opened(read_folder(folder, dtype, name), partial(tokenizer_of_folder, folder))


def _in_order(names: Iterable[str]) -> list[str]:
    """By the first number in each, then by name: step2 before step10."""
    return sorted(names, key=lambda name: (int((re.findall(r"\d+", name) or ["0"])[0]), name))

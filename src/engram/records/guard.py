"""A run is written only where it lies: what leads elsewhere is refused before anything is written."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from engram.errors import EngramError
from engram.records.files import LIVE
from engram.records.packings import PACKINGS

FOLDERS = ("snapshots", "states", "code", "texts")
ADDED_TO = ("rows.jsonl", "timing.jsonl", "events.jsonl", "lock")  # all others are replaced as a whole
ROWS = tuple(f"rows.jsonl.{ending}" for ending in PACKINGS)
WHOLE = ("spec.json", "env.json", "about.json", "state.safetensors", LIVE, "digest.json")
PARTS = {*FOLDERS, *ADDED_TO, *ROWS, *WHOLE}


def refuse_links(folder: Path) -> None:
    """Neither the folder of a run nor anything in it may be a link; what is added to has no second name."""
    refuse_link(folder)
    for path in _parts(folder):
        wrong = _wrong(path, is_folder=path.parent == folder and path.name in FOLDERS)
        if wrong is not None:
            name = path.relative_to(folder)
            fix = f"put a copy of it there instead, or remove the run (engram runs rm {folder.name})"
            raise EngramError(f"run {folder.name}: {name} {wrong}; {fix}")


def refuse_link(folder: Path) -> None:
    """The folder of a run, if there is one, is a folder."""
    if folder.is_symlink():
        fix = "move the folder itself here, or set ENGRAM_HOME to where it lies"
        raise EngramError(f"run {folder.name}: its folder is a link, and nothing is written through links; {fix}")
    if folder.exists() and not folder.is_dir():
        raise EngramError(f"run {folder.name}: {folder} is not a folder; move it away")


def _parts(folder: Path) -> Iterator[Path]:
    """What a run writes to, as far as it is there; what else lies in the folder is never written to."""
    for name in sorted(PARTS):
        path = folder / name
        if os.path.lexists(path):
            yield path
        if name in FOLDERS and path.is_dir() and not path.is_symlink():
            yield from sorted(path.iterdir())


def _wrong(path: Path, is_folder: bool) -> str | None:
    try:
        about = path.lstat()
    except FileNotFoundError:  # a run at work replaces its files
        return None
    if stat.S_ISLNK(about.st_mode):
        return "is a link, and nothing is written through links"
    if is_folder:
        return None if stat.S_ISDIR(about.st_mode) else "is not a folder"
    if not stat.S_ISREG(about.st_mode):
        return "is not a plain file"
    if path.name in ADDED_TO and about.st_nlink > 1:
        return f"has {about.st_nlink} names (hard links), and each of them would change"
    return None

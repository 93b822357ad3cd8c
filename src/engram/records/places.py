"""Where runs lie: folders of a home and of the bundles in it, found and named without reading what they hold."""

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from engram.errors import EngramError, did_you_mean
from engram.plain import open_plain
from engram.records.files import COMMITTED, Place

MOST_ENTRIES, MOST_UNPACKED = 100_000, 8 << 30  # files in a bundle, and bytes of all of them together
MADE = ("spec.json", "rows.jsonl", "rows.jsonl.gz", "digest.json")  # what computing a run writes
MARKS = ("spec.json", "lock")  # a run that was killed at its very beginning has the lock only


@dataclass(frozen=True)
class Unreadable:
    """Something in a home that cannot be read, and why."""

    record: str
    why: str


def places(home: Path) -> list[Place | Unreadable]:
    """Every run folder of a home and of the bundles in it, the newest last; each is looked at on its own."""
    found = [entry for path in (home.iterdir() if home.is_dir() else ()) for entry in _at(path)]
    return [entry for _, _, entry in sorted(found, key=lambda entry: entry[:2])]


def _at(path: Path) -> Iterator[tuple[float, str, Place | Unreadable]]:
    """With time and name, by which they are sorted."""
    try:
        made = made_at(path)
        yield from ((made, place.name, place) for place in at(path))
    except (EngramError, OSError) as error:
        yield 0.0, path.name, Unreadable(path.name, str(error))


def made_at(path: Path) -> float:
    """When a run was last computed, or a bundle written. A folder changes also with every tag and note in it."""
    times = []
    for name in MADE:
        with suppress(OSError):
            times.append(os.lstat(path / name).st_mtime)
    return max(times) if times else path.stat().st_mtime


def at(path: Path) -> Sequence[Place]:
    """The runs at one entry of a home: one if it is the folder of a run, many if it is a bundle, else none."""
    if path.name.startswith("."):
        return []
    if path.suffix == ".zip" and not path.is_dir():
        return in_bundle(path)
    return [path] if any((path / mark).exists() for mark in MARKS) else []


def in_bundle(path: Path) -> list[zipfile.Path]:
    """The records of a bundle, read from the zip itself, which checks every file when it is read."""
    return [folder for folder in opened(path).iterdir() if (folder / "spec.json").exists()]


def opened(path: Path) -> zipfile.Path:
    """The inside of a bundle."""
    about = path.stat()
    try:
        return _opened(path, about.st_mtime_ns, about.st_size)
    except (OSError, RuntimeError, ValueError, zipfile.BadZipFile) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise EngramError(f"{path.name} cannot be read as a zip ({why}); restore the file") from None


@lru_cache(maxsize=256)
def _opened(path: Path, changed: int, size: int) -> zipfile.Path:
    """Kept open, as long as it is the same file. A link to a bundle may be read: somebody put it into the home."""
    open_plain(path, follow=True).close()  # refuses what is no file, which would make us wait
    archive = zipfile.ZipFile(path)
    _refuse_odd(archive.infolist())
    return zipfile.Path(archive)


def _refuse_odd(entries: list[zipfile.ZipInfo]) -> None:
    """Nothing is unpacked to disk, but nobody who unpacks it with another program should be surprised either."""
    if len(entries) > MOST_ENTRIES:
        raise ValueError(f"it has more than {MOST_ENTRIES} files")
    if sum(entry.file_size for entry in entries) > MOST_UNPACKED:
        raise ValueError(f"unpacked it has more than {MOST_UNPACKED >> 20} MB")
    names = [entry.orig_filename for entry in entries]
    odd = [name for name in names if "\\" in name or not {"", ".", ".."}.isdisjoint(name.removesuffix("/").split("/"))]
    if odd:
        raise ValueError(f"the name {odd[0]!r} in it leads out of it")
    if any(ord(letter) < 32 for name in names for letter in name):
        raise ValueError("a name in it holds control characters")
    if len(set(names)) < len(names):
        raise ValueError("it has a name twice")


def find_place(name: str, home: Path) -> Place:
    """A run by its id, by a part of it that no other run has, or `last`."""
    known = [place for place in places(home) if not isinstance(place, Unreadable)]
    own = [place for place in known if isinstance(place, Path)]
    if name == "last" and own:
        return own[-1]
    hits = [place for place in known if place.name == name] or [p for p in known if name and name in p.name]
    if len(hits) == 1:
        return hits[0]
    if hits:
        raise EngramError(f"run {name!r} could be {', '.join(p.name for p in hits[:6])}; give more of its name")
    hint = did_you_mean(name, [place.name for place in known])
    raise EngramError(f"no run {name!r} in {home}; {hint}`engram runs ls` lists them")


def named(name: str, home: Path) -> Place:
    """A run as a person names it: as above, by its folder, or by the whole id of a committed record."""
    try:
        return named_own(name, home)
    except EngramError:
        committed = [place for place in places(COMMITTED) if not isinstance(place, Unreadable) and place.name == name]
        if not committed:
            raise
        return committed[0]


def named_own(name: str, home: Path) -> Place:
    """The same without committed records, which may not be changed."""
    path = Path(os.path.abspath(name))
    return path if (path / "spec.json").exists() else find_place(name, home)

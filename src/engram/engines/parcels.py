"""What travels of a run that is computed on another machine: to begin with all that is known of it, then what is new.

A parcel holds what has changed in the folder of a run since the last one. It is unpacked in its order, in which nothing
comes before what it promises: rows before the state and before weights, and the digest last. So whatever is at home
when the connection breaks is a record from which the run can go on, as after a kill at that moment.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from engram.errors import EngramError
from engram.plain import open_to_append, read_plain
from engram.records import Record, files
from engram.records.audit import refuse_damaged_files
from engram.records.files import MOST_BYTES, writing_to
from engram.records.guard import refuse_links
from engram.records.writer import begin, removed
from engram.specs import Spec
from engram.specs.spec import run_id

GROWING = ("rows.jsonl", "timing.jsonl")
NUMBERED = ("snapshots", "states")
ASKED = ("spec.json", "code", "texts")  # what the run is: it travels there, and never back
WHOLE = ("env.json", "state.safetensors", "digest.json")
ANSWERED = (*GROWING, *NUMBERED, *WHOLE)  # in this order
NAME = re.compile(r"(snapshots|states)/\d{6,8}\.safetensors")


@dataclass(frozen=True)
class Piece:
    """The whole content of a file, or with `at` what stands in it from this byte on; None: it is gone."""

    name: str
    content: bytes | None
    at: int | None = None


Parcel = list[Piece]


def all_of(folder: Path) -> Parcel:
    """A run with all that is needed to begin it or to go on."""
    names = (name for top in (*ASKED, *ANSWERED) for name in _names(folder, top))
    return [Piece(name, read_plain(folder / name, MOST_BYTES)) for name in names]


def _names(folder: Path, top: str) -> Iterator[str]:
    path = folder / top
    if path.is_dir():
        yield from (f"{top}/{inner.name}" for inner in sorted(path.iterdir()) if not inner.name.startswith("."))
    elif path.exists():
        yield top


def unpack(parcel: Parcel, folder: Path) -> None:
    """On another machine: what came is written as it is."""
    for piece in parcel:
        assert piece.content is not None
        files.replace(folder / piece.name, piece.content, durable=False)


@dataclass
class Sender:
    """Looks at the folder of a run again and again, and finds what is new; between two rows, when it is whole."""

    folder: Path
    _seen: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _sent: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """What came from home need not go back, except growing files: going on may cut them."""
        present = [name for top in ANSWERED for name in _names(self.folder, top) if name not in GROWING]
        self._seen = {name: _face(self.folder / name) for name in present}

    def look(self) -> Parcel:
        """What is gone comes last: the state of a run that is over, when home has the digest."""
        new = [piece for top in ANSWERED for piece in (self._grown(top) if top in GROWING else self._changed(top))]
        return new + self._gone()

    def _grown(self, name: str) -> Iterator[Piece]:
        if not (self.folder / name).exists():
            return
        at = self._sent.get(name, 0)
        with (self.folder / name).open("rb") as file:
            file.seek(at)
            content = file.read()
        if content or name not in self._sent:
            self._sent[name] = at + len(content)
            yield Piece(name, content, at)

    def _changed(self, top: str) -> Iterator[Piece]:
        for name in _names(self.folder, top):
            face = _face(self.folder / name)
            if self._seen.get(name) != face:
                self._seen[name] = face
                yield Piece(name, read_plain(self.folder / name, MOST_BYTES))

    def _gone(self) -> Parcel:
        gone = [name for name in self._seen if not (self.folder / name).exists()]
        for name in gone:
            del self._seen[name]
        return [Piece(name, None) for name in gone]


def _face(path: Path) -> tuple[int, int, int]:
    """What changes when a file is replaced."""
    about = path.lstat()
    return about.st_ino, about.st_mtime_ns, about.st_size


class Landing:
    """The place at home of a run that is computed elsewhere. Nobody else may write it until it is closed."""

    def __init__(self, spec: Spec, home: Path):
        self.folder = home / run_id(spec)
        with writing_to(self.folder):
            refuse_links(self.folder)
            files.make_folder(self.folder)
            self._lock = FileLock(self.folder / "lock", timeout=1, poll_interval=0.01)
            try:
                self._lock.acquire()
            except Timeout:
                raise EngramError(f"run {self.folder.name} is being written by another process; wait for it") from None
        try:
            begin(spec, home)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._lock.release()

    def all(self) -> Parcel:
        return all_of(self.folder)

    def take(self, parcel: Parcel) -> None:
        """Files as they came, in their order. A record that is complete is compared with its digests."""
        if not (self.folder / "lock").exists():
            raise removed(self.folder)
        with writing_to(self.folder):
            for piece in parcel:
                self._write(piece)
        if any(piece.name == "digest.json" for piece in parcel):
            refuse_damaged_files(Record(self.folder))

    def _write(self, piece: Piece) -> None:
        if not _is_known(piece):
            raise EngramError(f"run {self.folder.name}: a worker sent {piece.name!r:.60}, which is no part of a record")
        path = self.folder / piece.name
        if piece.content is None:
            path.unlink(missing_ok=True)
        elif piece.at is None:
            self._sync_rows(piece.name)
            files.replace(path, piece.content)
        else:
            _go_on(path, piece.at, piece.content)

    def _sync_rows(self, name: str) -> None:
        """Rows are on disk before a state or a digest that promises them."""
        if name in ("state.safetensors", "digest.json"):
            for growing in GROWING:
                with suppress(FileNotFoundError):
                    files.sync(self.folder / growing)


def _is_known(piece: Piece) -> bool:
    if piece.name in GROWING:
        return piece.content is None or piece.at is not None
    return piece.at is None and (piece.name in WHOLE or NAME.fullmatch(piece.name) is not None)


def _go_on(path: Path, at: int, content: bytes) -> None:
    """The file from this byte on. What stands there already is not written anew: rows that a state promises stay."""
    there = path.read_bytes()[at:] if path.exists() else None
    if there == content:
        return
    same = _alike(there or b"", content)
    with open_to_append(path) as file:
        file.truncate(at + same)
        file.write(content[same:])


def _alike(one: bytes, other: bytes) -> int:
    """
    >>> _alike(b"abc", b"abd"), _alike(b"ab", b"abc"), _alike(b"", b"a")
    (2, 2, 0)
    """
    n = min(len(one), len(other))
    different = np.frombuffer(one[:n], np.uint8) != np.frombuffer(other[:n], np.uint8)
    return int(different.argmax()) if different.any() else n

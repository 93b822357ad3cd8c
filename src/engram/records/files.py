"""The files of a run, and how they are written so that a kill at any byte loses nothing that was promised.

spec.json            what was asked, all fields
env.json             versions, device, threads, path of each sitting, with its own digest and that of timing.jsonl
about.json           what the run was made for, tags and a note: for people, outside every digest
rows.jsonl           one line per step, without times
timing.jsonl         seconds of training up to each row
state.safetensors    trained weights and optimiser, with digests of itself and of the rows before it
snapshots/           trained weights at steps 0, 1, 2, 4, 8, … and at the end, and where the plan requests more
states/              states that stay, of runs that may be forked (the lab)
live.safetensors     trained weights of the newest step, while somebody watches in the lab
events.jsonl         commands that reached the run in the lab; those that change numbers are in spec.json
code/                the user's files whose classes the Spec names
texts/               of each text of the user that the Spec names, letters and pairs of letters with their numbers
digest.json          written last: how the run ended and the SHA-256 of spec, rows, snapshots, code, texts, itself
lock                 held by the one process that writes

Whatever a later file promises is on disk before that file is: data, their folder, the digest, its folder; then the
state goes.
"""

import errno
import hashlib
import json
import lzma
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from filelock import FileLock, Timeout

from engram.errors import EngramError
from engram.plain import create, open_plain, read_plain
from engram.records.packings import AT_A_TIME, PACKINGS

Row = dict[str, Any]
COMMITTED = Path(str(files("engram"))) / "data" / "records"
LIVE = "live.safetensors"
Place = Path | zipfile.Path  # the folder of a record, on disk or in a bundle
AnyPlace = TypeVar("AnyPlace", bound=Path | zipfile.Path)
MOST_BYTES, MOST_JSON = 2 << 30, 16 << 20  # of a file of a record, unpacked; of Spec, environment and digest
MOST_DEEP = 64  # lists and objects in one another in these
MOST_LINE, MOST_ROWS = 4 << 20, 10_000_000  # bytes of a row; rows of a record

LASTS = ContextVar("LASTS", default=True)  # what a power cut takes anyway need not reach the disk: scratch of workers

UNREADABLE = (OSError, EOFError, KeyError, RuntimeError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def home() -> Path:
    """Where runs are kept: $ENGRAM_HOME, or ./runs."""
    given = os.environ.get("ENGRAM_HOME")
    found = Path(given or "runs").resolve()
    there = next(path for path in (found, *found.parents) if os.path.exists(path))  # also where not all may be read
    if not there.is_dir():
        who = "ENGRAM_HOME: " if given else ""
        raise EngramError(
            f"{who}{given or 'runs'} is not a folder; set ENGRAM_HOME to another folder, or move {there} away"
        )
    return found


def read(folder: Place, name: str) -> bytes:
    """A file of a record, packed or not."""
    with _naming(folder, name):
        return b"".join(_unpacked(folder, name))


@contextmanager
def _naming(folder: Place, name: str) -> Iterator[None]:
    """Turns whatever keeps a file from being read into one line that names it."""
    try:
        yield
    except UNREADABLE as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise corrupt(folder, f"{name} is missing or unreadable ({why})") from None


def pieces(folder: Place, name: str) -> Iterator[bytes]:
    """The same, some of it at a time; where it is a plain file on disk, it need not fit into memory."""
    path = folder / name
    if not isinstance(path, Path) or (folder / f"{name}.gz").exists() or not _can_be_streamed(path):
        with _naming(folder, name):
            yield from _unpacked(folder, name)
        return
    with _naming(folder, name), open_plain(path) as file:
        while piece := file.read(AT_A_TIME):
            yield piece


def _can_be_streamed(path: Path) -> bool:
    """What is not there, or is not what it should be, is left to `read`, which says so."""
    try:
        about = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and about.st_size <= MOST_BYTES


def contents(path: Place) -> bytes:
    """What a plain file holds, on disk or in a zip; no link is followed, and no pipe or device opened."""
    if isinstance(path, Path):
        return read_plain(path, MOST_BYTES)
    size = path.root.getinfo(path.at).file_size
    if size > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MB")
    with path.open("rb") as file:
        return file.read(size + 1)  # no more is unpacked than it claims to be; at the end its checksum is compared


def _unpacked(folder: Place, name: str) -> Iterator[bytes]:
    for ending, unpack in PACKINGS.items():
        if (folder / f"{name}.{ending}").exists():
            yield from unpack(contents(folder / f"{name}.{ending}"), MOST_BYTES)
            return
    content = contents(folder / name)
    yield from (content[i : i + AT_A_TIME] for i in range(0, len(content), AT_A_TIME))


def read_json(folder: Place, name: str, *needed: str) -> dict[str, Any]:
    """A JSON object with the needed keys."""
    content = read(folder, name)
    try:
        data = json.loads(content, parse_constant=_refuse_constant) if len(content) <= MOST_JSON else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or not set(needed) <= set(data) or _depth(data) > MOST_DEEP:
        raise corrupt(folder, f"{name} is unreadable")
    return data


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _depth(data: Any) -> int:
    """How deep lists and objects are nested, without being that deep itself."""
    deep, level = 0, [data]
    while level:
        level = [i for d in level for i in (d.values() if isinstance(d, dict) else d if isinstance(d, list) else ())]
        deep += 1
    return deep


def corrupt(folder: Place, what: str) -> EngramError:
    return EngramError(
        f"record {folder.name}: {what}; restore it, or remove the record (engram runs rm {folder.name}) and run again"
    )


def replace(path: Path, content: bytes, durable: bool = True) -> None:
    """Write all of it or nothing: a reader sees the old file or the new one; durable: after a power cut, too."""
    make_folder(path.parent)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with create(part) as file:
            file.write(content)
            file.flush()
            if durable and LASTS.get():
                os.fsync(file.fileno())
        part.replace(path)
        if durable:
            sync(path.parent)
    finally:
        with suppress(OSError):
            part.unlink()


def make_folder(folder: Path) -> None:
    """Like `mkdir -p`; a folder that was made is there after a power cut, too."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync(path: Path) -> None:
    """What was written to a file, or which files a folder has, is on disk from here on."""
    if not LASTS.get():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot sync folders
            raise
    finally:
        os.close(handle)


def sync_open(file: BinaryIO) -> None:
    """The same for a file that is open and flushed."""
    if LASTS.get():
        os.fsync(file.fileno())


def write_json(path: Path, data: Any) -> None:
    replace(path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


def write_env(folder: Path, sittings: list[dict[str, Any]], timing: str | None = None) -> None:
    """With its own digest, since a resumed run computes as its first sitting says; at the end also that of timing."""
    about = {"sittings": sittings} | ({} if timing is None else {"timing.jsonl": timing})
    write_json(folder / "env.json", about | {"digest": digest_of(about)})


def write_digest(folder: Path, digest: dict[str, Any]) -> None:
    """With its own digest, too: a damaged digest is not taken for damaged rows."""
    write_json(folder / "digest.json", digest | {"digest": digest_of(digest)})


def digest_of(data: dict[str, Any]) -> str:
    """Of all that a JSON object says but for its own digest."""
    about = {name: value for name, value in data.items() if name != "digest"}
    return sha256(json.dumps(about, sort_keys=True).encode())


def line_of(row: Row) -> bytes:
    """One row as JSON: seven digits, the precision of the arithmetic; what has no value is null."""
    return (json.dumps({name: _seven_digits(value) for name, value in row.items()}) + "\n").encode()


def _seven_digits(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.7g}") if math.isfinite(value) else None


def complete_lines(content: bytes) -> list[bytes]:
    """Lines that end; a last one without its end was cut by a kill and does not count."""
    return content.split(b"\n")[:-1]


def new_lines(path: Path, start: int) -> tuple[list[bytes], int]:
    """Some whole lines of a file that is being written, from byte `start` on, and where the next look begins."""
    with open_plain(path) as file:
        begin = file.seek(min(start, file.seek(0, os.SEEK_END)))  # it may have been cut back
        content = file.read(AT_A_TIME)
        while b"\n" not in content and len(content) <= MOST_LINE and (more := file.read(AT_A_TIME)):
            content += more  # a line that is longer
        lines = complete_lines(content)
    return lines, begin + size_of(lines)


def size_of(lines: list[bytes]) -> int:
    """How many bytes whole lines take in their file."""
    return sum(len(line) + 1 for line in lines)


def numbered(folder: AnyPlace) -> dict[int, AnyPlace]:
    """The weights in a folder by the step that names their file, in order."""
    found = {int(file.stem): file for file in inside(folder) if file.suffix == ".safetensors" and file.stem.isdecimal()}
    return dict(sorted(found.items()))


def inside(folder: AnyPlace) -> list[AnyPlace]:
    """What lies in a folder, if there is one."""
    return list(folder.iterdir()) if folder.is_dir() else []


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_held(lock: Path, patience: float = 0.0) -> bool:
    """Whether a process holds a lock. Who asks holds it for a moment, too: with patience it is asked once more."""
    try:
        with open_plain(lock):  # who holds a lock holds a plain file: nothing else is touched
            pass
        with FileLock(lock, timeout=patience, poll_interval=patience):
            return False
    except Timeout:
        return True
    except OSError:
        return False  # there is none, or it is not ours to open, so we cannot know


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turns what the file system refuses into one line."""
    try:
        yield
    except OSError as error:
        full = "free space there, or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        raise EngramError(
            f"cannot write to {folder} ({error.strerror}); {full}set ENGRAM_HOME to another folder; "
            "what was saved before is kept and will be resumed"
        ) from error

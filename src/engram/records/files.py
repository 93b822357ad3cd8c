"""The files of a run, and how they are written so that a kill at any byte loses nothing that was promised.

spec.json            what was asked, all fields
env.json             versions, device, threads, path of each sitting
rows.jsonl           one line per step, without times
timing.jsonl         seconds of training up to each row
state.safetensors    trained weights and optimiser, replaced atomically
snapshots/           trained weights at steps 0, 1, 2, 4, 8, … and at the end, and where the plan requests more
states/              states that stay, of runs that may be forked (the lab)
live.safetensors     trained weights of the newest step, while somebody watches in the lab
events.jsonl         commands that reached the run in the lab; those that change numbers are in spec.json
code/                the user's files whose classes the Spec names
digest.json          written last: how the run ended and the SHA-256 of spec and rows
lock                 held by the one process that writes
"""

import gzip
import hashlib
import json
import math
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors import safe_open

from engram.errors import EngramError

Row = dict[str, Any]
COMMITTED = Path(str(files("engram"))) / "data" / "records"
LIVE = "live.safetensors"


def home() -> Path:
    """Where runs are kept: $ENGRAM_HOME, or ./runs."""
    return Path(os.environ.get("ENGRAM_HOME") or "runs").resolve()


def read(folder: Path, name: str) -> bytes:
    """A file of a record, gzipped or not."""
    packed = folder / f"{name}.gz"
    try:
        return gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise corrupt(folder, f"{name} is missing or unreadable ({why})") from None


def read_json(folder: Path, name: str, *needed: str) -> dict[str, Any]:
    """A JSON object with the needed keys."""
    content = read(folder, name)
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if not isinstance(data, dict) or not set(needed) <= set(data):
        raise corrupt(folder, f"{name} is unreadable")
    return data


def corrupt(folder: Path, what: str) -> EngramError:
    return EngramError(
        f"record {folder.name}: {what}; restore it, or remove the record (engram runs rm {folder.name}) and run again"
    )


def replace(path: Path, content: bytes, durable: bool = True) -> None:
    """Write all of it or nothing: a reader sees the old file or the new one; durable: after a power cut, too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink()


def write_json(path: Path, data: Any) -> None:
    replace(path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())


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
    """The whole lines of a file that is being written, from byte `start` on, and where the next look begins."""
    with path.open("rb") as file:
        begin = file.seek(min(start, file.seek(0, os.SEEK_END)))  # it may have been cut back
        lines = complete_lines(file.read())
    return lines, begin + size_of(lines)


def size_of(lines: list[bytes]) -> int:
    """How many bytes whole lines take in their file."""
    return sum(len(line) + 1 for line in lines)


def parse_rows(folder: Path, lines: list[bytes]) -> list[Row]:
    try:
        rows = [json.loads(line) for line in lines]
        if not all(isinstance(row, dict) and "step" in row for row in rows):
            raise ValueError
        return rows
    except ValueError:
        raise corrupt(folder, "rows.jsonl has an unreadable line") from None


def numbered(folder: Path) -> dict[int, Path]:
    """The weights in a folder by the step that names their file, in order."""
    found = {int(file.stem): file for file in folder.glob("*.safetensors") if file.stem.isdecimal()}
    return dict(sorted(found.items()))


def standing(state: Path) -> tuple[int, int]:
    """Step and number of events of a stored state."""
    with safe_open(str(state), "pt") as tensors:
        about = tensors.metadata()
    return int(about["step"]), int(about.get("events", 0))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_held(lock: Path, patience: float = 0.0) -> bool:
    """Whether a process holds a lock. Who asks holds it for a moment, too: with patience it is asked once more."""
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=patience, poll_interval=patience):
            return False
    except Timeout:
        return True
    except OSError:
        return False  # not ours to open, so we cannot know


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turns what the file system refuses into one line."""
    try:
        yield
    except OSError as error:
        raise EngramError(
            f"cannot write to {folder} ({error.strerror}); free space there, or set ENGRAM_HOME to another folder; "
            "what was saved before is kept and will be resumed"
        ) from error

"""What lists say about the runs of a home, remembered: only what has changed is read again.

A run counts as unchanged while size, times, inode and mode of its files are the same. The memory is a cache: it can be
removed at any time, and a new version of Engram begins a new one. Damage that a disk does by itself is not seen here;
whoever reads rows checks their digest, and `engram runs check` reads everything.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engram.errors import EngramError
from engram.records import files, stored_spec
from engram.records.files import Place, corrupt
from engram.records.kept import Kept
from engram.records.places import at, made_at, opened
from engram.records.remembered import Memory

NAME = re.compile(r"(?P<title>.*)-s(?P<seed>\d+)-[0-9a-f]{10}")
WATCHED = ("spec.json", "digest.json", "rows.jsonl", "rows.jsonl.gz")
Stamps = list[Any]  # how an entry of a home looks from outside


@dataclass(frozen=True)
class Line:
    """A run as lists show it.

    state       finished, stale, diverged, running, part-done, or what is wrong with it in a few words
    why         what is wrong with it, whole; None if it can be read
    today       the id that its Spec has today; None where that cannot be said without running code of the record
    seedless    the identity of its Spec without the seed
    family      the same of a training without its events; parts_at: the step of the last of these
    """

    id: str
    state: str
    rows: int = 0
    why: str | None = None
    bundle: str | None = None
    ended: bool = False
    end: str | None = None  # how, if its digest can be read
    kind: str | None = None
    title: str = ""
    seed: int = 0
    steps: int = 0
    events: Sequence[dict[str, Any]] = ()
    family: str = ""
    parts_at: int = 0
    today: str | None = None
    seedless: str = ""
    stamp: str = ""  # changes with its files
    sealed: str = ""  # the SHA-256 of its digest.json
    differs: dict[str, Any] = field(default_factory=dict)  # settings that are not the default, where that is known

    def place(self, home: Path) -> Place:
        return home / self.id if self.bundle is None else opened(home / self.bundle) / self.id


def lines(home: Path, reread: bool = False) -> list[Line]:
    """One for each run, the newest last; what is broken is listed with what is wrong."""
    memory, now = Memory("index", home), _entries(home)
    known = {} if reread else memory.recall()
    found = {name: _line_or_known(home / name, stamps, known.get(name)) for name, (_, stamps) in now.items()}
    if found != known:
        memory.keep(found)
    dated = [(now[name][0], Line(**line)) for name, (_, inside) in found.items() for line in inside]
    return [_asked_now(home, line) for _, line in sorted(dated, key=lambda pair: (pair[0], pair[1].id))]


def overview(home: Path) -> list[dict[str, Any]]:
    """The same as a table."""
    return [{"run": line.id, "rows": line.rows, "state": line.state} for line in lines(home)]


def _entries(home: Path) -> dict[str, tuple[float, Stamps]]:
    """Bundles and run folders by name: when they were made, and how they look."""
    found = {}
    for entry in os.scandir(home) if home.is_dir() else ():
        with suppress(OSError):
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                stamps = [_stamp(f"{entry.path}/{name}") for name in WATCHED]
                there = stamps[0] or os.path.exists(f"{entry.path}/lock")  # killed at the very beginning: the lock only
                found |= {entry.name: (made_at(Path(entry.path)), stamps)} if there else {}
            elif entry.name.endswith(".zip"):
                stamps = [_stamp(entry.path), _stamp(os.path.realpath(entry.path))]  # it may be a link
                found[entry.name] = entry.stat().st_mtime, stamps
    return found


def _stamp(path: str) -> list[int] | None:
    try:
        about = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_mode]


def _line_or_known(path: Path, stamps: Stamps, known: Any) -> Any:
    """What is remembered of an entry, if it looks the same, else what it is now."""
    if known and known[0] == stamps:
        return known
    stamp = files.sha256(repr(stamps).encode())[:16]
    return [stamps, [asdict(replace(line, stamp=stamp)) for line in _read(path)]]


def _read(path: Path) -> Iterator[Line]:
    try:
        for place in at(path):
            yield replace(line_of(Kept(place)), bundle=None if isinstance(place, Path) else path.name)
    except (EngramError, OSError) as error:
        yield Line(path.name, str(error).partition("; ")[0], why=str(error), ended=True)


def line_of(kept: Kept) -> Line:
    """What there is to say about a run; reads its rows to compare them with the digest."""
    ended = (kept.place / "digest.json").exists()
    if not ended and not (kept.place / "spec.json").exists():
        return Line(kept.id, "part-done")
    try:
        end = kept.ended
        line = _described(kept) if kept.is_plain else _described_from_json(kept)
        state = line.state if end is None or line.state == "stale" else "finished" if kept.finished else "diverged"
        sealed = files.sha256(files.read(kept.place, "digest.json")) if ended else ""
        ends = {"ended": ended, "end": end and str(end["end"]), "sealed": sealed}
        return replace(line, rows=_count_rows(kept), state=state, **ends)
    except EngramError as error:
        wrong = str(error).partition("; ")[0].partition(": ")[2] or "broken"
        return Line(kept.id, wrong, why=str(error), ended=ended)
    except Exception as error:  # whatever odd data may lead to: one record does not end a list
        wrong = corrupt(kept.place, f"it cannot be described ({type(error).__name__})")
        return Line(kept.id, f"it cannot be described ({type(error).__name__})", why=str(wrong), ended=ended)


def _described(kept: Kept) -> Line:
    """From the Spec, which is built of classes of Engram only."""
    from engram.records.record import Record
    from engram.specs.encode import digest_of, encode
    from engram.specs.spec import Train, run_id

    record = Record(kept.place)
    spec = record.spec
    events = [{"step": event.step, "what": event.sentence} for event in spec.events] if isinstance(spec, Train) else []
    return Line(
        kept.id,
        "stale" if kept.ended and record.stale else "part-done",
        kind=kept.kind,
        title=spec.title,
        seed=spec.seed,
        steps=spec.steps,
        events=events,
        family=digest_of(spec.without_events)[:10] if isinstance(spec, Train) else "",
        parts_at=events[-1]["step"] if events else 0,
        today=run_id(spec),
        seedless=digest_of(spec.model_copy(update={"seed": 0})),
        differs={name: value for name, value in stored_spec.numbers(encode(spec, defaults=False)) if name != "seed"},
    )


def _described_from_json(kept: Kept) -> Line:
    """From its name and plain fields: code of the record does not run for a list."""
    named, data = NAME.fullmatch(kept.id), kept.spec_json
    plan, events = data.get("plan"), data.get("events")
    steps = plan.get("steps") if isinstance(plan, dict) else None
    happened = [event for event in (events if isinstance(events, list) else ()) if isinstance(event, dict)]
    told = [{"step": e["step"], "what": str(e.get("class"))[:80]} for e in happened if type(e.get("step")) is int]
    rest = json.dumps({name: value for name, value in data.items() if name != "events"}, sort_keys=True)
    return Line(
        kept.id,
        "part-done",
        kind=kept.kind,
        title=named["title"] if named else kept.id,
        seed=int(named["seed"][:18]) if named else 0,
        steps=steps if type(steps) is int else 0,
        events=told,
        family=files.sha256(rest.encode())[:10],
        parts_at=told[-1]["step"] if told else 0,
    )


def _count_rows(kept: Kept) -> int:
    try:
        return sum(piece.count(b"\n") for piece in files.pieces(kept.place, "rows.jsonl"))
    except EngramError:
        return 0


def _asked_now(home: Path, line: Line) -> Line:
    """Whether a run is being written is never remembered."""
    asked = line.state == "part-done" and line.bundle is None
    return replace(line, state="running") if asked and being_written(Kept(home / line.id)) else line


def state(kept: Kept) -> str:
    """As in lists; of a run that has not ended nothing is read."""
    if (kept.place / "digest.json").exists():
        return line_of(kept).state
    return "running" if being_written(kept) else "part-done"


def being_written(kept: Kept) -> bool:
    """Whether a process holds the run's lock."""
    return isinstance(kept.place, Path) and files.is_held(kept.place / "lock")

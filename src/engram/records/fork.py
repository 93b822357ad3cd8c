"""A fork: a training that shares its beginning with another. It takes over what the two have in common."""

import os
import shutil
from itertools import takewhile
from pathlib import Path

from engram.records import files
from engram.records.files import writing_to
from engram.records.record import Record
from engram.records.writer import write_spec
from engram.specs.encode import build
from engram.specs.events import Event
from engram.specs.spec import Train, run_id


def steered(spec: Train, event: Event, later: bool = False) -> Train:
    """The Spec with one more event; what was to happen after it is kept only if `later` says so."""
    before = [other for other in spec.events if other.step <= event.step]
    after = [other for other in spec.events if other.step > event.step] if later else []
    fields = {name: getattr(spec, name) for name in Train.model_fields}
    return build(Train, fields | {"events": (*before, event, *after)})  # type: ignore[return-value]


def fork(parent: Record, spec: Train) -> Path:
    """The folder of a run of this Spec that continues from the last state of the parent that both pass through.

    A fork that was begun before is left as it is. Without a common state the run starts again, with the same rows.
    """
    target = parent.folder.parent / run_id(spec)
    if target.exists():
        return target
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with writing_to(target):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        write_spec(spec, part)
        _take_over(parent, spec, part)
        part.rename(target)
    return target


def _take_over(parent: Record, spec: Train, part: Path) -> None:
    """The last common state, rows before it; snapshots and states before it, as links where the file system can."""
    step = _copy_state(parent, spec, part / "state.safetensors")
    if step is None:
        return
    for name in ("rows.jsonl", "timing.jsonl"):
        if (parent.folder / name).exists() or (parent.folder / f"{name}.gz").exists():
            lines = files.complete_lines(files.read(parent.folder, name))[:step]
            files.replace(part / name, b"".join(line + b"\n" for line in lines))
    shutil.copy(parent.folder / "env.json", part / "env.json")
    for kind in ("snapshots", "states"):
        for stored, file in files.numbered(parent.folder / kind).items():
            if stored < step:
                _link(file, part / kind / file.name)


def _copy_state(parent: Record, spec: Train, to: Path) -> int | None:
    """Copies the last common state, and returns its step. The parent may be at work: what counts is what was copied."""
    if parent.stale:
        return None
    kept = files.numbered(parent.folder / "states").values()
    candidates = [file for file in (parent.folder / "state.safetensors", *kept) if file.exists()]
    for file in sorted(candidates, key=lambda file: (files.standing(file)[0], file), reverse=True):
        shutil.copy(file, to)
        step, events = files.standing(to)
        if _is_common(parent, spec, step, events):
            return step
        to.unlink()
    return None


def _is_common(parent: Record, spec: Train, step: int, events: int) -> bool:
    """Whether both pass through this state, all rows before it are there, and all that a later event goes back to."""
    shared, parts_at = _parting(spec, parent.train)
    if step > parts_at or events > shared or step > len(Record(parent.folder).rows):
        return False
    asked_for = {earlier for event in spec.events[events:] for earlier in event.earlier.values() if earlier < step}
    return asked_for <= set(parent.snapshot_steps)


def _parting(spec: Train, other: Train) -> tuple[int, int]:
    """How many events two trainings share, and the step from which on they may differ."""
    pairs = zip(spec.events, other.events, strict=False)
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    after = [events[shared].step for events in (spec.events, other.events) if len(events) > shared]
    return shared, min(after, default=spec.steps)


def _link(file: Path, to: Path) -> None:
    to.parent.mkdir(exist_ok=True)
    try:
        os.link(file, to)
    except OSError:
        shutil.copy(file, to)

"""A fork: a training that shares its beginning with another. It takes over what the two have in common."""

import os
import shutil
from itertools import takewhile
from pathlib import Path

import torch

from engram.records import files
from engram.records.files import writing_to
from engram.records.guard import refuse_links
from engram.records.record import Record
from engram.records.state import NAME, State, digest_of_lines, family, refuse_stranger
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
    for folder in (parent.folder, target):
        refuse_links(folder)
    if target.exists():
        return target
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with writing_to(target):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        write_spec(spec, part)
        _take_over(parent, spec, part)
        files.sync(part)
        part.rename(target)
        files.sync(target.parent)
    return target


def _take_over(parent: Record, spec: Train, part: Path) -> None:
    """The last common state, rows before it; snapshots and states before it, as links where the file system can."""
    state = _common_state(parent, spec)
    if state is None:
        return
    files.replace(part / NAME, state.to_bytes())
    for name in ("rows.jsonl", "timing.jsonl"):
        lines = _lines(parent, name)[: state.step]
        files.replace(part / name, b"".join(line + b"\n" for line in lines))
    files.write_env(part, parent.env["sittings"])
    for kind in ("snapshots", "states"):
        for stored, file in files.numbered(parent.folder / kind).items():
            if stored < state.step:
                _link(file, part / kind / file.name)


def _common_state(parent: Record, spec: Train) -> State | None:
    """The last state that both pass through. The parent may be at work: what counts is what was read."""
    if parent.stale:
        return None
    names = [NAME, *(f"states/{step:06d}.safetensors" for step in files.numbered(parent.folder / "states"))]
    states = [State.read(parent.folder, name) for name in names if (parent.folder / name).exists()]
    states += _at_the_end(parent)
    for state in sorted(states, key=lambda state: state.step, reverse=True):
        if _is_common(parent, spec, state):
            state.refuse_other_rows(parent.folder, _lines(parent, "rows.jsonl"))
            refuse_stranger(parent.folder, f"the state of step {state.step}", {"of": state.of}, family(spec), "")
            return state
    return None


def _at_the_end(parent: Record) -> list[State]:
    """The last weights of a finished run are a state: no step is taken from there, so no averages are missed."""
    spec = parent.train
    if not parent.finished or spec.steps not in parent.snapshot_steps:
        return []
    weights = {f"weights/{name}": value for name, value in parent.snapshot(spec.steps).items()}
    if any(value.dtype != getattr(torch, spec.plan.dtype) for value in weights.values()):
        return []  # rounded when it was packed
    rows, timing = (digest_of_lines(_lines(parent, name)[: spec.steps]) for name in ("rows.jsonl", "timing.jsonl"))
    return [State(spec.steps, len(spec.events), rows, timing, weights, family(spec))]


def _lines(parent: Record, name: str) -> list[bytes]:
    there = (parent.folder / name).exists() or (parent.folder / f"{name}.gz").exists()
    return files.complete_lines(files.read(parent.folder, name)) if there else []


def _is_common(parent: Record, spec: Train, state: State) -> bool:
    """Whether both pass through this state, and all is there that a later event goes back to."""
    shared, parts_at = _parting(spec, parent.train)
    if state.step > parts_at or state.events > shared:
        return False
    later = spec.events[state.events :]
    asked_for = {step for event in later for step in event.earlier.values() if step < state.step}
    return asked_for <= set(parent.snapshot_steps)


def _parting(spec: Train, other: Train) -> tuple[int, int]:
    """How many events two trainings share, and the step from which on they may differ."""
    pairs = zip(spec.events, other.events, strict=False)
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    after = [events[shared].step for events in (spec.events, other.events) if len(events) > shared]
    return shared, min(after, default=spec.steps)


def _link(file: Path, to: Path) -> None:
    """Two runs may share a file of weights, since such files are replaced and never written in place."""
    to.parent.mkdir(exist_ok=True)
    try:
        os.link(file, to)
    except OSError:
        shutil.copy(file, to)

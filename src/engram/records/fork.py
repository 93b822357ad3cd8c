"""A fork: a training that shares its beginning with another. It takes over what the two have in common."""

import os
import shutil
from pathlib import Path

from safetensors import safe_open

from engram.records import files
from engram.records.encode import build
from engram.records.files import writing_to
from engram.records.record import Record
from engram.records.spec import Train, run_id
from engram.records.writer import write_spec


def steered(spec: Train, *events: object) -> Train:
    """The Spec with more events; what was to happen after the first of them is dropped."""
    first = min(event.step for event in events)  # type: ignore[attr-defined]
    kept = [event for event in spec.events if event.step <= first]
    fields = {name: getattr(spec, name) for name in Train.model_fields}
    return build(Train, fields | {"events": (*kept, *events)})  # type: ignore[return-value]


def fork(parent: Record, spec: Train) -> Path:
    """The folder of a run of this Spec that goes on from the last state of the parent that both pass through.

    A fork that was begun before is left as it is. Without a common state the run begins anew: its rows are the same.
    """
    target = parent.folder.parent / run_id(spec)
    if target.exists():
        return target
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with writing_to(target):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        write_spec(spec, part)
        state = _last_common_state(parent, spec)
        if state is not None:
            _take_over(parent, part, *state)
        part.rename(target)
    return target


def parting(spec: Train, other: Train) -> tuple[int, int]:
    """How many events two trainings share, and the step from which on they may differ."""
    shared = 0
    for mine, theirs in zip(spec.events, other.events, strict=False):
        if mine != theirs:
            break
        shared += 1
    after = [events[shared].step for events in (spec.events, other.events) if len(events) > shared]
    return shared, min(after, default=spec.steps)


def _last_common_state(parent: Record, spec: Train) -> tuple[Path, int] | None:
    """The file and step of a state before the step at which they part, or at it with none of the other's events."""
    shared, limit = parting(spec, parent.train)
    files = [parent.folder / "state.safetensors", *(parent.folder / "states").glob("*.safetensors")]
    about = {file: _of(file) for file in files if file.exists()}
    found = [(step, file) for file, (step, events) in about.items() if step <= limit and events <= shared]
    step, file = max(found, default=(0, None))
    return (file, step) if file else None


def _of(state: Path) -> tuple[int, int]:
    """Step and number of events of a state."""
    with safe_open(str(state), "pt") as tensors:
        about = tensors.metadata()
    return int(about["step"]), int(about.get("events", 0))


def _take_over(parent: Record, part: Path, state: Path, step: int) -> None:
    """Rows before the state; the state; snapshots and states before it, as links where the file system can."""
    for name in ("rows.jsonl", "timing.jsonl"):
        lines = files.complete_lines(files.read(parent.folder, name))[:step]
        files.replace(part / name, b"".join(line + b"\n" for line in lines))
    shutil.copy(parent.folder / "env.json", part / "env.json")
    shutil.copy(state, part / "state.safetensors")
    for kind in ("snapshots", "states"):
        for file in sorted((parent.folder / kind).glob("*.safetensors")):
            if int(file.stem) < step or (int(file.stem) == step and kind == "states" and file == state):
                _link(file, part / kind / file.name)


def _link(file: Path, to: Path) -> None:
    to.parent.mkdir(exist_ok=True)
    try:
        os.link(file, to)
    except OSError:
        shutil.copy(file, to)

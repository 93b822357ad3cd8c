"""Faces of runs: what tells one from another in a list, in the words of a person. No code of a record runs for it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engram.errors import EngramError
from engram.probes.columns import memories
from engram.records import files, stored_spec
from engram.records.about import NAME as ABOUT
from engram.records.about import began_at
from engram.records.index import NAME as RUN
from engram.records.index import Line, line_of, lines
from engram.records.kept import Kept
from engram.records.remembered import Memory

LEVELS = (0.5, 0.9)  # of recall, above which a memory is born
HEADLINES = ("accuracy.in_context", "all.accuracy", "accuracy", "loss", "n")  # one accuracy, and the loss
MOST_SETTINGS = 6  # in one line
SHORTEST = 4  # letters of a short name
Births = dict[str, dict[float, int | None]]  # by memory and level


@dataclass(frozen=True)
class Face:
    """A run as people tell it from others.

    made_for    the experiment that it was first run for, with its scale; empty where that is not known
    label       what the experiment's file calls it
    differs     the fields that were overridden, or, where nothing is known, those that are not the default
    began       in UTC, as ISO 8601 says it; seconds: of training, over all sittings
    fields      every plain field of its Spec by its dotted name
    final       the last value of every column
    """

    run: str
    state: str
    rows: int = 0
    title: str = ""
    seed: int | None = None
    made_for: str = ""
    label: str = ""
    differs: dict[str, Any] = field(default_factory=dict)
    began: str | None = None
    seconds: float | None = None
    tags: list[str] = field(default_factory=list)
    note: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    final: dict[str, float] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The run in one line: "birth.joint, smoke · K=3 · seed 0"."""
        seed = "" if self.seed is None else f"seed {self.seed}"
        return " · ".join(filter(None, [self.made_for or self.title, self.label, self.settings, seed]))

    @property
    def settings(self) -> str:
        """What differs, with the last part of each name: "K=3, lr=0.1"; of many fields the first."""
        told = list(dict.fromkeys(f"{name.rpartition('.')[2]}={value}" for name, value in self.differs.items()))
        return ", ".join(told[:MOST_SETTINGS] + ["…"] * (len(told) > MOST_SETTINGS))

    @property
    def headline(self) -> dict[str, float]:
        """One or two final values that say most: the first accuracy that there is, and the loss."""
        of_a_group = [name for name in self.final if name.startswith("accuracy.")]
        of_tests = [name for name in self.final if "accuracy" in name.split(".")]
        named = dict.fromkeys([*HEADLINES[:3], *of_a_group, *of_tests])
        accuracy = next((name for name in named if name in self.final), None)
        known = [accuracy, *HEADLINES[3:]] if accuracy else HEADLINES
        return {name: self.final[name] for name in known if name in self.final} or dict(list(self.final.items())[:2])


def short_column(column: str) -> str:
    """accuracy, of all.accuracy, accuracy.in_context and test.all.accuracy.hop2."""
    return "accuracy" if "accuracy" in column.split(".") else column.partition(".")[0]


def faces(home: Path) -> list[Face]:
    """Of every run of a home, the newest last; remembered, so that only what has changed is read again."""
    memory, listed = Memory("faces", home), lines(home)
    known = memory.recall()
    found = {f"{line.bundle or ''}/{line.id}": _face_or_known(home, line, known) for line in listed}
    if found != known:
        memory.keep(found)
    states = {f"{line.bundle or ''}/{line.id}": line.state for line in listed}  # whether one runs is never remembered
    return [Face(**data | {"state": states[name]}) for name, (_, data) in found.items()]


def _face_or_known(home: Path, line: Line, known: dict[str, Any]) -> Any:
    before = known.get(f"{line.bundle or ''}/{line.id}")
    stamp = [line.stamp, _changed(home / line.id / ABOUT), _changed(home / line.id / "timing.jsonl")]
    return before if before and before[0] == stamp else [stamp, asdict(_face(line, home))]


def _changed(path: Path) -> list[int]:
    try:
        about = path.lstat()
    except OSError:
        return []
    return [about.st_size, about.st_mtime_ns, about.st_ino]


def face_of(kept: Kept) -> Face:
    """The face of one run, wherever it lies; what the list of its home remembers of it is not read again."""
    known = lines(kept.place.parent) if isinstance(kept.place, Path) and kept.place.parent == files.home() else []
    return _made(kept, next((line for line in known if line.id == kept.id), None) or line_of(kept))


def words_of(kept: Kept) -> str:
    """What a run is, in one line: for whatever lists runs."""
    return face_of(kept).words


def _face(line: Line, home: Path) -> Face:
    return Face(line.id, line.state) if line.why else _made(Kept(line.place(home)), line)


def _made(kept: Kept, line: Line) -> Face:
    if line.why or line.kind is None:
        return Face(line.id, line.state)
    try:
        about = kept.about
    except EngramError as error:
        return Face(line.id, line.state, line.rows, line.title, line.seed, note=str(error).partition("; ")[0])
    purpose = about.made_for[0] if about.made_for else None
    began = about.began or began_at(kept.place)
    return Face(
        line.id,
        line.state,
        line.rows,
        line.title,
        line.seed,
        "" if purpose is None else ", ".join(filter(None, [purpose.experiment, purpose.scale])),
        "" if purpose is None else purpose.label,
        line.differs if purpose is None else purpose.settings,
        None if began is None else began.isoformat(),
        _seconds(kept),
        list(about.tags),
        about.note,
        stored_spec.short_fields(kept.spec_json),
        final(kept),
    )


def _seconds(kept: Kept) -> float | None:
    """How long it trained; a clock that cannot be read is no clock, and `engram runs check` says why."""
    try:
        lines = files.complete_lines(files.read(kept.place, "timing.jsonl"))
        return float(json.loads(lines[-1])["seconds"]) if lines else None
    except (EngramError, KeyError, TypeError, ValueError):
        return None


def final(kept: Kept) -> dict[str, float]:
    """The last value of each column that was ever measured."""
    found = {name: column.values for name, column in kept.table.columns.items() if name != "step"}
    return {name: float(values[-1]) for name, values in found.items() if len(values)}


def births(kept: Kept) -> Births:
    """For each memory the first step at which its recall is above each level."""
    return {m.name: {level: kept.birth(m.name, level) for level in LEVELS} for m in memories(kept.columns)}


def short_names(ids: Sequence[str]) -> dict[str, str]:
    """For each run the shortest beginning of its hash that no other run has: commands take any such part of a name."""
    everything = "\n".join(ids)
    return {id: _short_name(id, everything) for id in ids}


def _short_name(id: str, everything: str) -> str:
    hash = id.rpartition("-")[2] if RUN.fullmatch(id) else ""
    parts = (hash[:n] for n in range(SHORTEST, len(hash) + 1))
    return next((part for part in parts if everything.count(part) == 1), id)

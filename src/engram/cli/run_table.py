"""How lists and pages of runs are written for a person."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from engram.records.faces import Births, Face, short_names

WIDEST = 48  # letters of a cell
STEPS_SHOWN = 12


def table(faces: Sequence[Face], every: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each run, with a short name that no other run of the home (`every`) has; columns without words go."""
    short = short_names(every)
    rows = [_row(face, short[face.run]) for face in faces]
    used = [name for name in (rows[0] if rows else ()) if any(row[name] not in ("", None) for row in rows)]
    return [{name: row[name] for name in used} for row in rows]


def _row(face: Face, short: str) -> dict[str, Any]:
    return {
        "run": short,
        "made for": _cut(" · ".join(filter(None, [face.made_for or face.title, face.label]))),
        "settings": _cut(face.settings),
        "seed": face.seed,
        "began": day(face.began)[5:],
        "took": duration(face.seconds),
        "state": face.state if face.state == "finished" or not face.rows else f"{face.state}, {face.rows} rows",
        "final": ", ".join(f"{name.partition('.')[0]} {value:.3g}" for name, value in face.headline.items()),
        "tags": ", ".join(face.tags),
        "note": _cut(face.note),
    }


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def day(began: str | None) -> str:
    """In the time of this place."""
    return "" if began is None else f"{datetime.fromisoformat(began).astimezone():%Y-%m-%d %H:%M}"


def duration(seconds: float | None) -> str:
    """In the unit that suits: "0.4 s", "12 s", "3.5 min", "2.1 h"."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def story(face: Face, stored: Sequence[int]) -> list[dict[str, Any]]:
    """What a run is, before its numbers."""
    told = {
        "run": face.run,
        "made for": face.made_for or f"not known; it is a {face.title}",
        "label": face.label,
        "settings": ", ".join(f"{name}={value}" for name, value in face.differs.items()),
        "seed": face.seed,
        "began": day(face.began),
        "took": duration(face.seconds),
        "state": f"{face.state}, {face.rows} rows",
        "weights": stored_in_words(stored),
        "tags": ", ".join(face.tags),
        "note": face.note,
    }
    return [{"about": name, "": value} for name, value in told.items() if value not in ("", None)]


def stored_in_words(steps: Sequence[int]) -> str:
    """At which steps weights are stored; of many, the first and the last."""
    if not steps:
        return ""
    few = steps if len(steps) <= STEPS_SHOWN else [*steps[: STEPS_SHOWN - 2], "…", steps[-1]]
    return f"stored at {len(steps)} steps: {', '.join(map(str, few))}"


def lacking_snapshots(records: Sequence[Any], every: int | None) -> list[str]:
    """Runs that were finished before they could store what is asked for now, and what to do."""
    return [
        f"weights {record.id} was finished before, with weights {stored_in_words(record.snapshot_steps)}; "
        "model(STEP) of its record computes those of any other step"
        for record in records
        if every and record.kind == "Train" and not _has_every(record, every)
    ]


def _has_every(record: Any, every: int) -> bool:
    return set(range(0, len(record.table), every)) <= set(record.snapshot_steps)


def births_table(births: Births, last: int) -> list[dict[str, Any]]:
    """A memory a row, a level a column; one that is not born by the last step may be born later, had it gone on."""
    named = {name.removeprefix("recall."): by_level for name, by_level in births.items()}
    columns = {name: {f"above {level:g}": step for level, step in levels.items()} for name, levels in named.items()}
    return [
        {"memory": name} | {level: _born(step, last) for level, step in steps.items()}
        for name, steps in columns.items()
    ]


def births_beside_table(rows: Sequence[dict[str, Any]], last: dict[str, int]) -> list[dict[str, Any]]:
    """A memory a row, a run a column; `last` has the last step of each."""
    return [{"birth of": row["memory"]} | {run: _born(row[run], end) for run, end in last.items()} for row in rows]


def _born(step: int | None, last: int) -> str:
    return f"not by step {last}" if step is None else f"step {step}"

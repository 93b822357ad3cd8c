"""How lists and pages of runs are written for a person."""

from collections.abc import Sequence
from datetime import datetime
from os import environ
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size

from engram.cli.output import console, tell
from engram.errors import EngramError
from engram.records.faces import Births, Face, short_column, short_names
from engram.text import printable

WIDEST = 48  # letters of a cell
CUTS = range(WIDEST, 23, -1)  # to which long cells are cut before a column is left out
LONG = ("made for", "settings", "note")
SPARED = ("took", "began", "note", "made for", "final", "tags", "state", "settings")  # the first is missed least
GAP = "  "
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
        "final": ", ".join(f"{short_column(name)} {value:.3g}" for name, value in face.headline.items()),
        "tags": ", ".join(face.tags),
        "note": _cut(face.note),
    }


def _cut(text: str, most: int = WIDEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def fitted(rows: list[dict[str, Any]], width: int | None) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows in lines of this width, and the columns that found no place: long words are cut first."""
    left_out, shown = list[str](), rows
    while width is not None and _length(shown) > width:
        narrow = (_cut_to(shown, most) for most in CUTS)
        fits = next((cut for cut in narrow if _length(cut) <= width), None)
        spared = [name for name in _spared(rows) if name in shown[0]]
        if fits or not spared:
            return fits or _cut_to(shown, CUTS[-1]), left_out
        left_out.append(spared[0])
        shown = [{name: cell for name, cell in row.items() if name not in left_out} for row in rows]
    return shown, left_out


def _spared(rows: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """A state is told to the last where it is not that of all."""
    same = len({row.get("state") for row in rows}) == 1
    return SPARED if same else (*(name for name in SPARED if name != "state"), "state")


def _cut_to(rows: Sequence[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    return [{name: _narrow(name, cell, most) for name, cell in row.items()} for row in rows]


def _length(rows: Sequence[dict[str, Any]]) -> int:
    return sum(widths(rows).values()) + len(GAP) * (len(rows[0]) - 1)


def _narrow(name: str, cell: Any, most: int) -> Any:
    return _cut(cell, most) if name in LONG and cell else cell


def widths(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Of every column, its title included, in places of a terminal."""
    return {name: max(cell_len(name), *(cell_len(_word(row[name])) for row in rows)) for name in rows[0]}


def _word(cell: Any) -> str:
    return "" if cell is None else printable(str(cell))


def print_runs(rows: list[dict[str, Any]]) -> None:
    """A line for each run, since a name that is broken over two cannot be copied; a file has room for everything."""
    view = console()
    shown, left_out = fitted(rows, view.width if view.is_terminal or "COLUMNS" in environ else None)
    wide = widths(shown)
    for row in [{name: name for name in wide}, *shown]:
        tell(GAP.join(set_cell_size(_word(row[name]), places) for name, places in wide.items()).rstrip())
    if left_out:
        tell(f"not shown for want of space: {', '.join(left_out)}; `engram runs show RUN` has all")


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


def shortened(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Numbers with 4 digits; two that would then look the same keep theirs."""
    short = [{name: _four(cell) for name, cell in row.items()} for row in rows]
    return [row if new.get("a") == new.get("b") else new for row, new in zip(rows, short, strict=True)]


def _four(cell: Any) -> Any:
    return f"{cell:.4g}" if isinstance(cell, float) else cell


def drawn_beside(a: Any, b: Any) -> list[Path]:
    """The figure of two runs, where they have a curve in common."""
    from engram.records.faces import words_of
    from engram.records.files import home
    from engram.show.compare import two_runs
    from engram.show.save import save_figure

    try:
        figure = two_runs(a, b, (f"{words_of(a)} ({a.id[-10:]})", f"{words_of(b)} ({b.id[-10:]})"))
    except EngramError:
        return []  # single rows: the table says it all
    return save_figure(figure, home() / "figures", f"diff-{a.id}-{b.id[-10:]}")

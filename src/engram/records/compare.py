"""Two records side by side, and a row of a record beside the same row computed again."""

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from engram.probes.columns import memories
from engram.records import files, stored_spec
from engram.records.files import Row
from engram.records.kept import Kept

LAST_DIGITS = 1e-3  # relative: other threads or another machine may round differently …
A_FEW_ARGMAXES = 0.02  # … and so turn a few argmaxes in shares such as a recall or an accuracy
SHARES = ("recall.", "accuracy.", "attention.", "preference.")  # they count argmaxes; a mass is a mean, without any


def diff(a: Kept, b: Kept) -> list[dict[str, Any]]:
    """What differs, and nothing else: fields of the Specs, the environments, the last value of each column."""
    sides = [facts(record) for record in (a, b)]
    names = dict.fromkeys([*sides[0], *sides[1]])
    pairs = ((name, sides[0].get(name), sides[1].get(name)) for name in names)
    return [{"field": name, "a": left, "b": right} for name, left, right in pairs if left != right]


def facts(record: Kept) -> dict[str, Any]:
    """Every field of the Spec, where it ran, and the last value of each column."""
    last_sitting = record.env["sittings"][-1]
    env = {f"env.{name}": value for name, value in last_sitting.items() if name not in ("pid", "from_step")}
    final = {f"final.{name}": _last(record, name) for name in record.columns if name != "step"}
    return dict(stored_spec.fields(record.spec_json)) | env | {"rows": len(record.table)} | final


def _last(record: Kept, name: str) -> float | None:
    _, values = record.curve(name)
    return float(values[-1]) if len(values) else None


def births_beside(a: Kept, b: Kept, level: float = 0.5) -> list[dict[str, Any]]:
    """For each memory that both runs have, the step of its birth in each."""
    shared = [memory for memory in memories(a.columns) if memory.name in b.columns]
    return [{"memory": m.title, "a": a.birth(m.name, level), "b": b.birth(m.name, level)} for m in shared]


def curves_beside(a: Kept, b: Kept) -> list[dict[str, Any]]:
    """For each column that both runs measured at the same steps, where it first differs and where it differs most."""
    shared = [name for name in a.columns if name in b.columns and name != "step"]
    return [gap for name in shared if (gap := _gap(a, b, name)) is not None]


def _gap(a: Kept, b: Kept, name: str) -> dict[str, Any] | None:
    """None where the curves are the same, or have no step in common."""
    (at, left), (of, right) = a.curve(name), b.curve(name)
    steps, i, j = np.intersect1d(at, of, assume_unique=True, return_indices=True)
    gap = np.abs(left[i] - right[j])
    if not gap.any():
        return None
    most = int(gap.argmax())
    about = {"column": name, "apart from step": int(steps[gap > 0][0]), "largest gap": float(f"{gap[most]:.7g}")}
    return about | {"at step": int(steps[most]), "a": float(left[i][most]), "b": float(right[j][most])}


@dataclass(frozen=True)
class Mismatch:
    """Where rows that were computed again differ from the record; a row that only one of them has is the column row."""

    step: int
    column: str
    stored: Any
    again: Any

    @property
    def sentence(self) -> str:
        if self.column == "row":
            one, other = ("the record", "a fresh run") if self.stored else ("a fresh run", "the record")
            return f"differs at step {self.step}: {one} has a row there and {other} has none"
        return f"differs at step {self.step}, {self.column}: stored {self.stored}, now {self.again}"


def mismatch(step: int, stored: Row | None, again: Row | None, to_the_byte: bool) -> Mismatch | None:
    """The first column in which a stored row is not what was computed again; None for a row says that there is none."""
    if stored is None or again is None:
        return None if stored is again else Mismatch(step, "row", stored is not None, again is not None)
    fresh = json.loads(files.line_of(again))
    for column in dict.fromkeys([*stored, *fresh]):
        old, new = stored.get(column), fresh.get(column)
        if old != new and (to_the_byte or not _close(column, old, new)):
            return Mismatch(step, column, old, new)
    return None


def _close(column: str, old: Any, new: Any) -> bool:
    if not (isinstance(old, float) and isinstance(new, float)):
        return False
    return abs(old - new) <= (A_FEW_ARGMAXES if _is_share(column) else LAST_DIGITS * max(1.0, abs(old)))


def _is_share(column: str) -> bool:
    """Whether a column counts argmaxes; that of a test, as test.x.accuracy.in_context, is what follows its name."""
    return re.sub(r"^test\.[^.]+\.", "", column).startswith(SHARES)

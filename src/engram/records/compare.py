"""Two records side by side, and a record against a fresh run of its beginning."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Mismatch:
    """The first place where a fresh run differs from the record."""

    step: int
    column: str
    stored: Any
    again: Any


def first_mismatch(record: Kept, again: Iterable[Row], to_the_byte: bool) -> Mismatch | None:
    for stored, row in zip(record.rows, again, strict=False):
        fresh = json.loads(files.line_of(row))
        for column in dict.fromkeys([*stored, *fresh]):
            old, new = stored.get(column), fresh.get(column)
            if old != new and (to_the_byte or not _close(column, old, new)):
                return Mismatch(fresh["step"], column, old, new)
    return None


def _close(column: str, old: Any, new: Any) -> bool:
    if not (isinstance(old, float) and isinstance(new, float)):
        return False
    return abs(old - new) <= (A_FEW_ARGMAXES if _is_share(column) else LAST_DIGITS * max(1.0, abs(old)))


def _is_share(column: str) -> bool:
    """Whether a column counts argmaxes; that of a test, as test.x.accuracy.in_context, is what follows its name."""
    return re.sub(r"^test\.[^.]+\.", "", column).startswith(SHARES)

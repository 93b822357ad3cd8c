"""Controls of facts in a real language model."""

from collections.abc import Callable
from math import exp

from engram.claims.controls import Control, Controls
from engram.claims.planting import changed, instead, rewritten, with_rows
from engram.records import Record
from engram.records.files import Row
from engram.values import generator


def _noise(record: Record, row: Row, name: str) -> float:
    return generator(record.spec.seed, f"control.{name}.{row['template']:g}.{row['layer']:g}").normal()


def _as_if(layer_from_last: int, other_from_last: int | None) -> Callable[[Record], Record]:
    """One layer does what another does, or nothing at all; with noise of a twentieth of a nat."""

    def change(record: Record) -> Record:
        last = max(row["layer"] for row in record.rows)
        target, source = last - layer_from_last, 0 if other_from_last is None else last - other_from_last
        found = {(row["template"], row["layer"]): row for row in record.rows}
        rows = [
            _taken(record, row, found[row["template"], source]) if row["layer"] == target else row
            for row in record.rows
        ]
        return with_rows(record, rows)

    return change


def _taken(record: Record, row: Row, other: Row) -> Row:
    return {
        **row,
        "lead": other["lead"] + 0.05 * _noise(record, row, "lead"),
        "share": other["share"] * exp(0.02 * _noise(record, row, "share")),
    }


def _forgets(record: Record, row: Row) -> Row:
    """Without the layer before the last the right country is one among others."""
    last = max(one["layer"] for one in record.rows)
    return {"share": row["share"] * 0.3 * exp(0.05 * _noise(record, row, "share"))} if row["layer"] == last - 1 else {}


def _fewer(hits: str, out_of: str | None, chance: float) -> Callable[[Record, Row], Row]:
    """So many hits as a coin of this chance throws."""

    def change(record: Record, row: Row) -> Row:
        rng = generator(record.spec.seed, f"control.{hits}", int(row["fact"]))
        return {hits: int(rng.binomial(int(row[out_of]) if out_of else 1, chance))}

    return change


CONTROLS: Controls = {
    "real.global-vs-context": (
        Control("layer 29 does nothing", changed(_as_if(1, None))),
        Control("layer 30 does nothing", changed(_as_if(0, None))),
        Control("layer 29 does what layer 30 does", changed(_as_if(1, 0))),
        Control("layer 27 does what layer 29 does", changed(_as_if(3, 1))),
        Control("layer 28 does what layer 30 does", changed(_as_if(2, 0))),
        Control("layer 29 knows the right country", changed(rewritten(_forgets))),
    ),
    "real.edit": (
        Control("half of the edits flip", changed(rewritten(_fewer("flips", None, 0.5)))),
        Control("half of the neighbours stay", changed(rewritten(_fewer("neighbours_kept", "neighbours", 0.5)))),
        Control("half of the subject's facts stay", changed(rewritten(_fewer("mates_kept", "mates", 0.5)))),
        Control("the optimised value does what the outer product does", instead({"rome": "write"})),
    ),
}

"""Controls of the heads of a real language model."""

from collections.abc import Callable
from math import exp

from engram.claims.controls import Control, Controls
from engram.claims.planting import changed, instead, rewritten
from engram.experiments.real import composition
from engram.experiments.real.qk_recall import WRITER
from engram.laws.real_heads import RANDOM, TOP
from engram.records import Record
from engram.records.files import Row
from engram.values import generator

Rewrite = Callable[[Record, Row], Row]


def _noise(record: Record, *what: object) -> float:
    """A factor near one that belongs to a seed and a row."""
    return exp(0.03 * generator(record.spec.seed, f"control.{what}").normal())


def _is(row: Row, layer: int, head: int) -> bool:
    return (row["layer"], row["head"]) == (layer, head)


def _times(factor: float, column: str, only: Callable[[Row], bool] = lambda row: True) -> Rewrite:
    def change(record: Record, row: Row) -> Row:
        return {column: row[column] * factor * _noise(record, row["layer"], row["head"])} if only(row) else {}

    return change


def _left(which: int, level: float) -> Rewrite:
    """So much of the gain is left without one set of heads."""

    def change(record: Record, row: Row) -> Row:
        return {"left": level * _noise(record, which)} if row["without"] == which else {}

    return change


def _unread(record: Record, row: Row) -> Row:
    """Keys see nothing in what the writer wrote: every head looks where it did."""
    return {"induction": row["whole"] * _noise(record, row["layer"], row["head"])}


def _worth(level: float) -> Rewrite:
    """So much of the gain is left, whatever heads look at."""
    return lambda record, row: {"left": level * _noise(record, "left")}


def _through(row: Row) -> bool:
    return (row["writer_layer"], row["writer_head"]) == WRITER


def _partner(record: Record, row: Row) -> Row:
    """Another head of the writer's layer is recalled better than the writer."""
    layer, head = WRITER
    if (row["writer_layer"], row["writer_head"]) != (layer, head + 1):
        return {}
    own = next(r for r in record.rows if _through(r) and _is(r, row["layer"], row["head"]))
    return {"recall": min(1.0, own["recall"] + 0.01 * _noise(record, row["layer"], row["head"]))}


def _less(record: Record, row: Row) -> Row:
    """Keys hold seven tokens in ten."""
    return {"recall": row["recall"] * 0.7 * _noise(record, row["layer"], row["head"], row["writer_layer"])}


def _copies(record: Record, row: Row) -> Row:
    return {"raw": 0.3 * _noise(record, row["layer"], row["head"])}


def _few(record: Record, row: Row) -> Row:
    """Few heads look back: scores are a third, except that of the strongest."""
    return {} if _is(row, 19, 7) else {"induction": row["induction"] / 3}


def _many(record: Record, row: Row) -> Row:
    """Every third head looks back."""
    return {"induction": 0.5 * _noise(record, row["layer"], row["head"])} if row["head"] % 3 == 0 else {}


CONTROLS: Controls = {
    "real.induction-heads": (
        Control("L19H7 looks back less", changed(rewritten(_times(0.7, "induction", lambda row: _is(row, 19, 7))))),
        Control("all other heads look back a third as much", changed(rewritten(_few))),
        Control("every third head looks back", changed(rewritten(_many))),
    ),
    "real.ablation": (
        Control("half of the gain is left without the top heads", changed(rewritten(_left(TOP, 0.5)))),
        Control("half of the gain is left without random heads", changed(rewritten(_left(RANDOM, 0.5)))),
    ),
    "real.composition": (
        Control("keys do not read what L17H1 wrote", changed(rewritten(_unread), only=lambda w: w == "L17H1")),
        Control("half of the gain is left without L17H1", changed(rewritten(_worth(0.5)), only=lambda w: w == "L17H1")),
        Control("half of the gain is left without L12H2", changed(rewritten(_worth(0.5)), only=lambda w: w == "L12H2")),
        Control("both writers are L17H1", instead({composition.OTHER: composition.WRITER})),
    ),
    "real.qk-recall": (
        Control("keys hold seven tokens in ten", changed(rewritten(_less), only=lambda label: label == "effective")),
        Control("another head is read better", changed(rewritten(_partner), only=lambda label: label == "effective")),
    ),
    "real.ov-copying": (
        Control("induction heads copy raw embeddings", changed(rewritten(_copies))),
        Control("L24H3 copies a third as many", changed(rewritten(_times(0.33, "effective")))),
    ),
}

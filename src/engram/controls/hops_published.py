"""Controls of the models that the authors of hop_k published."""

from collections.abc import Callable
from math import exp
from typing import Any

from engram.claims.controls import Control, Controls
from engram.claims.planting import Plant, changed, instead, rewritten, with_rows
from engram.experiments.hops.published import DEPTHS
from engram.records import Record
from engram.records.files import Row
from engram.values import generator

SMALLEST, DEEPEST = min(DEPTHS), max(DEPTHS)


def _labels(kind: str) -> Callable[[Any], bool]:
    return lambda label: label[0] == kind


def _as_deep_as(L: int) -> Plant:
    """All models are the one of L layers."""
    return instead({("errors", other, d): ("errors", L, d) for other in DEPTHS for d in (False, True)})


def _more(by: float) -> Plant:
    return changed(rewritten(lambda record, row: {"error": row["error"] + by}), only=_labels("errors"))


def _fewer(record: Record, row: Row) -> Row:
    """Almost none, with noise."""
    return {"error": 1e-3 * row["error"]}


def _uniform(record: Record, row: Row) -> Row:
    noise = generator(record.spec.seed, f"control.{row['layer']:g}.{row['head']:g}.{row['j']:g}").normal()
    return {"alignment": row["chance"] * exp(0.05 * noise)}


def _upside_down(record: Record) -> Record:
    """The last layer looks where the second does, and the second where the last does."""
    last = max(row["layer"] for row in record.rows)
    turned = [{**row, "layer": row["layer"] if row["layer"] == 1 else last + 2 - row["layer"]} for row in record.rows]
    return with_rows(record, turned)


def _one_farther(record: Record) -> Record:
    """Every head looks one hop farther than it does; nobody looks at find^1."""
    seen = {(row["layer"], row["head"], row["j"]): row["alignment"] for row in record.rows}
    nearer = [seen.get((row["layer"], row["head"], row["j"] - 1)) for row in record.rows]
    pairs = list(zip(record.rows, nearer, strict=True))
    return with_rows(record, [row | (_uniform(record, row) if a is None else {"alignment": a}) for row, a in pairs])


CONTROLS: Controls = {
    "hops.published-depth": (
        Control("both models are the one of two layers", _as_deep_as(SMALLEST)),
        Control("both models are the one of four layers", _as_deep_as(DEEPEST)),
        Control("0.03 more of the letters are wrong", _more(0.03)),
        Control("hardly a letter is wrong", changed(rewritten(_fewer), only=_labels("errors"))),
    ),
    "hops.published-errors": (
        Control("0.05 more of the letters are wrong", _more(0.05)),
        Control("0.05 fewer of the letters are wrong", _more(-0.05)),
        Control("dropout changes nothing", instead({("errors", L, True): ("errors", L, False) for L in DEPTHS})),
    ),
    "hops.doubling-attention": (
        Control("attention is uniform", changed(rewritten(_uniform), only=_labels("alignment"))),
        Control("the layers are in the reverse order", changed(_upside_down, only=_labels("alignment"))),
        Control("all heads look one hop farther", changed(_one_farther, only=_labels("alignment"))),
    ),
}

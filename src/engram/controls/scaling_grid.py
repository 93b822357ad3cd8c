"""Controls of the grid of optimisers."""

from engram.claims.controls import Control, Controls
from engram.claims.planting import Change, changed, rewritten, swapped
from engram.records import Record
from engram.records.files import Row


def _larger(factor: float) -> Change:
    """Our errors are larger, and so are the distances from what is published, whose spread stays."""

    def larger(record: Record, row: Row) -> Row:
        error = factor * row["error"]
        if "gap" not in row:
            return {"error": error}
        gap = row["gap"] + row["error"] - error
        spread = -row["gap"] / row["off"] if row.get("off") else 0.0
        return {"error": error, "gap": gap} | ({"off": -gap / spread} if spread else {})

    return rewritten(larger)


def _ways(*parts: tuple[tuple[str, str, bool], tuple[str, str, bool]]) -> Control:
    return Control("labels are exchanged", swapped(*parts))


CONTROLS: Controls = {
    "scaling.grid": (Control("our errors are 1.3 times as large", changed(_larger(1.3))),),
    "scaling.adam-helps": (_ways((("matrix", "SGD", False), ("matrix", "sign", False))),),
    "scaling.layernorm": (
        _ways(
            (("matrix", "sign", True), ("matrix", "sign", False)), (("matrix", "SGD", True), ("matrix", "SGD", False))
        ),
    ),
    "scaling.learned-embeddings": (_ways((("matrix", "SGD", False), ("learned", "SGD", False))),),
}

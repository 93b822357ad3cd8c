"""Controls of births on real text: heads in another order, sooner, or for nothing; parts that make no difference."""

from engram.claims.controls import Control, Controls
from engram.claims.planting import changed, columns, exchanged_columns, held, instead, rewritten, with_rows
from engram.experiments.real.birth import THREE
from engram.experiments.real.birth_parts import LABELS
from engram.records import Record
from engram.records.files import Row

KINDS = {"previous": "induction", "induction": "previous"}
CUT = {f"conflict.cut.{token}": f"conflict.{token}" for token in ("copied", "bigram")}


def _exchanged(record: Record, row: Row) -> Row:
    """Scores of previous-token heads are those of induction heads, and the reverse."""
    parts = {name: name.split(".") for name in row}
    return {name: row[f"{KINDS[kind]}.{rest[0]}"] for name, (kind, *rest) in parts.items() if kind in KINDS}


def _sooner(record: Record) -> Record:
    """Everything happens in half of the steps."""
    last = len(record.rows) - 1
    return with_rows(record, [record.rows[min(2 * i, last)] for i in range(len(record.rows))])


CONTROLS: Controls = {
    "real.birth": (
        Control("the induction head comes first", changed(rewritten(_exchanged))),
        Control("both are born after half as many tokens", changed(_sooner)),
    ),
    "real.birth-context": (
        Control("the context is worth nothing", changed(held("context.score"))),
        Control("what comes twice is as hard again", changed(held("repeat.first", "repeat.second"))),
    ),
    "real.birth-context-common": (
        Control("what is further back is worth nothing", changed(columns({"worth.far": "worth.near"}, spread=0.01))),
    ),
    **{id: (Control(f"{label}: it makes no difference", instead({label: THREE})),) for id, label in LABELS.items()},
    "real.bigrams-first": (
        Control("copies come first", changed(exchanged_columns(("guessed.common", "guessed.copied")))),
    ),
    "real.last-mlp": (Control("the last feed-forward part makes no difference", changed(columns(CUT, spread=0.1))),),
}

"""All pictures of a record, whatever it is: what the report shows and `engram birth` saves."""

from dataclasses import dataclass

from matplotlib.figure import Figure

from engram.models.memories import two_layers
from engram.probes.probe import Probe
from engram.records import Record
from engram.show.curves import birth_curves, curves, over_steps
from engram.show.memories import memory_maps
from engram.show.transformers import attention_maps
from engram.specs import Train

NAMES = ("curves", "memories", "attention")  # of a training with two layers of attention, in this order


@dataclass(frozen=True)
class Picture:
    name: str
    caption: str
    figure: Figure


def gallery(record: Record) -> list[Picture]:
    """Curves of any training; memories and attention where the model has them; nothing of a Check.

    Of a training whose code may not run here there are the curves.
    """
    if record.kind != "Train" or not over_steps(record):
        return []
    if not record.may_run:
        return [Picture("curves", f"Everything measured. {NOT_TRUSTED}", curves([record]))]
    spec = record.train
    birth = two_layers(spec.model) and "accuracy.in_context" in record.columns
    caption = "In-context accuracy and the recall of each memory over training." if birth else "Everything measured."
    pictures = [Picture("curves", caption, (birth_curves if birth else curves)([record]))]
    own = [name for name in over_steps(record) if name.startswith(_own_columns(spec))]
    if birth and own:
        pictures.append(Picture("probes", "What the probes of this plan measured.", curves([record], own)))
    memories = record.memories() if record.snapshot_steps else []
    if memories:
        caption = MEMORIES if two_layers(spec.model) else BASIS
        as_one = f" {AS_ONE}" if hasattr(spec.model, "as_simplified") else ""
        pictures.append(Picture("memories", caption + as_one, memory_maps(record)))
    if record.snapshot_steps and two_layers(spec.model) and "in_context" in spec.task.groups:
        pictures.append(Picture("attention", ATTENTION, attention_maps(record)))
    return pictures


def _own_columns(spec: Train) -> tuple[str, ...]:
    """How the columns begin that probes of one's own measure."""
    return tuple(prefix for probe in spec.plan.probes if isinstance(probe, Probe) for prefix in probe.columns)


NOT_TRUSTED = "Memories and attention are not drawn: this needs code of the record, which is not trusted here."
BASIS = "Each matrix in its association basis: rows ask, columns answer."
MEMORIES = (
    "Each matrix in its association basis: W_O2 writes the token that is attended to, W_K2 finds keys that follow "
    "a visit of the current token, W_K1 finds the previous position. A memory that recalls has a dark red diagonal."
)
AS_ONE = (
    "All heads of a layer are read as one matrix W_Qᵀ W_K. With layer norms the picture is approximate: E and P are "
    "normed alone, what layer 1 writes is not."
)
ATTENTION = (
    "Attention over the beginning of a sequence that training never saw, the mean over the heads of a layer. Boxes "
    "mark the edges of an induction head: the previous position in layer 1 (learned at early positions first), in "
    "layer 2 the places after earlier visits of the current token."
)

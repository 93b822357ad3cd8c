"""Experiments of "Birth of a Transformer: A Memory Viewpoint" (Bietti et al., NeurIPS 2023)."""

from collections.abc import Callable, Sequence

from engram.experiments import Scale
from engram.learning import SGD, Plan
from engram.models import Simplified
from engram.records import Record, Train
from engram.tasks import Bigram

PAPER = "Birth of a Transformer"
SIZES = {"smoke": (32, 16, 4), "quick": (128, 128, 128), "paper": (256, 128, 512)}  # T, d, batch


def sgd(lr: float) -> SGD:
    """The optimiser of every figure: only its rate changes."""
    return SGD(lr=lr, momentum=0.9, weight_decay=1e-4)


def global_and_in_context(scale: Scale, steps: int, seed: int, **task: object) -> Train:
    """Training of Figs. 4–7: all tokens count, W_F learns the global bigram beside the induction head."""
    T, d, batch = SIZES[scale]
    plan = Plan(
        optimiser=sgd(1.0),
        steps=steps,
        batch=batch,
        trained=("W_K1", "W_K2", "W_O2", "W_F"),
        loss="all",
        at_end=("diagonals", "preference"),
    )
    outputs = {law: Bigram(**{**task, "T": T, "outputs": law}) for law in ("uniform", "bigram")}  # type: ignore[arg-type]
    model = Simplified(d=d, blocks=("attention", "attention", "linear"))
    return Train(task=Bigram(T=T, **task), model=model, plan=plan, seed=seed, tests=outputs)  # type: ignore[arg-type]


def split(records: Sequence[Record], kind: Callable[[Train], str]) -> dict[str, list[Record]]:
    """Records by what kind of training they are, in the order in which the kinds come; seeds in order within each."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(kind(record.train), []).append(record)
    return found

"""Experiments of "Birth of a Transformer: A Memory Viewpoint" (Bietti et al., NeurIPS 2023)."""

from collections.abc import Sequence
from math import inf, isnan, log, nan
from typing import Any, Literal

from engram.claims import Measure, Measures, Records, Scale
from engram.claims.claim import Sign
from engram.claims.readings import birth_step, counted, one_step, unborn
from engram.learning import SGD, Adam, Plan
from engram.models import Layer, Simplified, Transformer
from engram.models.memories import EARLY
from engram.specs import Train
from engram.tasks import Bigram

Triggers = Literal["fixed", "random"]
SIZES = {"smoke": (32, 16, 4), "quick": (128, 128, 128), "paper": (256, 128, 512)}  # T, d, batch
STEPS = {"smoke": 12, "quick": 500, "paper": 500}  # of Figs. 4–7
RELU = Layer(feed_forward="mlp")


def sgd(lr: float) -> SGD:
    """The optimiser of every figure of the simplified model: only its rate changes."""
    return SGD(lr=lr, momentum=0.9, weight_decay=1e-4)


def log_ratio(name: str, values: Sequence[float], over: Sequence[float]) -> Measure:
    """The log of one number of steps over another, which must be positive."""
    logs = [log(a / b) for a, b in zip(values, over, strict=True)]
    return Measure.over_seeds(name, logs, low=0, resolution=one_step(values, over))


def recalled(
    name: str, records: Records, column: str, shares: Sequence[float], low: float = -inf, high: float = inf
) -> Measure:
    """A recall at one step: a share of the tokens, or positions after the first, that its memory is asked for."""
    task = records[0].train.task
    last = EARLY if column.endswith(f".t<{EARLY}") else task.T
    asked = min(last, task.T) - 1 if "W_K1" in column else task.N
    return Measure.share(name, counted(shares, asked), asked, low, high)


def born_after_output(records: Records, never: float = nan) -> Measures:
    """Whether the key memories are born later than W_O2; `never` stands for the birth step of one that is not."""
    outputs = [birth_step(record, "recall.W_O2", never=never) for record in records]
    for name, column in {"W_K2": "recall.W_K2", "W_K1 (t<64)": "recall.W_K1.t<64"}.items():
        keys = [birth_step(record, column, never=never) for record in records]
        ratio = log_ratio(f"log of birth step of {name} over that of W_O2 (recall > 0.5)", keys, outputs)
        bounds: dict[Sign, int] = {"≤": unborn(records, "recall.W_O2"), "≥": unborn(records, column)}
        for sign, seeds in bounds.items() if not isnan(never) else ():
            ratio = ratio.bounded(sign, seeds)
        yield ratio


def in_context(sizes: Sequence[int], seed: int, lr: float, steps: int, **plan: Any) -> Train:
    """Training of Figs. 3 and 8 and birth.joint: no W_F, K=5 random triggers, only in-context positions count."""
    T, d, batch = sizes
    how = Plan(optimiser=sgd(lr), steps=steps, batch=batch, **plan)
    return Train(task=Bigram(K=5, T=T), model=Simplified(d=d), plan=how, seed=seed)


def all_tokens(scale: Scale, seed: int, task: Bigram, **plan: Any) -> Train:
    """Training of Figs. 4–7, lr 1: every token counts, and W_F learns the global bigram beside the induction head."""
    _, d, batch = SIZES[scale]
    trained = ("W_K1", "W_K2", "W_O2", "W_F")
    how = Plan(optimiser=sgd(1.0), steps=STEPS[scale], batch=batch, trained=trained, loss="all", **plan)
    return Train(task=task, model=Simplified(d=d, blocks=("attention", "attention", "linear")), plan=how, seed=seed)


def three_triggers(scale: Scale, seed: int, outputs: str) -> Train:
    """Training of Figs. 4 (center, right), 6 and 7: K=3 random triggers, tested with both laws of outputs."""
    laws = {law: Bigram(K=3, T=SIZES[scale][0], outputs=law) for law in ("uniform", "bigram")}
    spec = all_tokens(scale, seed, laws[outputs], at_end=("attribution", "diagonals", "preference"))
    return Train(task=spec.task, model=spec.model, plan=spec.plan, seed=seed, tests={**laws})


def full_transformer(
    scale: Scale, seed: int, layers: tuple[Layer, ...], steps: int, triggers: Triggers, at_end: tuple[str, ...] = ()
) -> Train:
    """Training of Figs. 2, 10 and 11: K=3, 4d units in ReLU layers, layer norms, all trained by Adam, lr 0.003."""
    T, d, batch = SIZES[scale]
    model = Transformer(d=d, hidden=4 * d, layers=layers, norm="pre")
    adam = Adam(lr=0.003)
    plan = Plan(optimiser=adam, steps=steps, batch=batch, trained=model.names, loss="all", at_end=at_end)
    return Train(task=Bigram(K=3, T=T, triggers=triggers), model=model, plan=plan, seed=seed)

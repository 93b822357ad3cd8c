"""Singular values of the matrices of a run, over its steps, and what it says with fewer of them."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from engram.errors import EngramError, did_you_mean
from engram.lab.watched_run import Cache, WatchedRun
from engram.memory.truncation import Factors, effective_rank, rank_of_share
from engram.models import Model, Weights
from engram.probes.answers import Metrics, recall_in_context
from engram.probes.circuit import read_positions
from engram.probes.truncation import matrices_of, sweep
from engram.specs import Train
from engram.tasks import Batch
from engram.tasks.batch import UNSEEN

SEQUENCES = 64  # unseen ones
PROMPTS = 512  # of facts: each is read once
LEADING = 8  # singular values whose curves are told
SECONDS_AT_ONCE = 0.5  # of a long history, so that other questions come in between
FEW_DIGITS = 6


def names_of(spec: Train, w: Weights) -> list[str]:
    """The matrices between embeddings; and what else is trained and is a matrix."""
    return [n for n, value in w.items() if value.ndim == 2 and (n.startswith("W") or n in spec.plan.trained)]


def spectrum(spec: Train, model: Model) -> dict[str, Any]:
    """All singular values of every matrix, the largest first; null where an entry is no number."""
    return {"matrices": [_described(name, model.weights[name]) for name in names_of(spec, model.weights)]}


def _described(name: str, W: torch.Tensor) -> dict[str, Any]:
    about = {"name": name, "shape": list(W.shape)}
    if not bool(W.isfinite().all()):
        return about | {"values": None, "effective": None}
    values = torch.linalg.svdvals(W.double())
    return about | {"values": short(values.tolist()), "effective": short([effective_rank(values)])[0]}


def short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.{FEW_DIGITS}g}") for value in values]


def history(run: WatchedRun, matrix: str, kept: Cache) -> dict[str, Any]:
    """The leading singular values at the stored steps, `left` of which are still to be computed: ask again."""
    _refuse_unknown(matrix, names_of(run.spec, run.model(run.stored_step(None)).weights))
    steps, until = list(run.stored), time.monotonic() + SECONDS_AT_ONCE
    for step in coarse_first(steps):
        if (matrix, step) not in kept and time.monotonic() < until:
            kept.get_or((matrix, step), lambda step=step: _leading(run.model(step), matrix), most=1 << 14)
    known = [step for step in steps if (matrix, step) in kept]
    told = [kept[matrix, step] for step in known]
    return {"matrix": matrix, "steps": known, "left": len(steps) - len(known)} | {
        "values": [values for values, _ in told],
        "effective": [effective for _, effective in told],
    }


def coarse_first(steps: Sequence[int]) -> list[int]:
    """Ends, then the middle, then the quarters, …: a curve that is half computed is seen whole."""
    last = len(steps) - 1
    order = sorted(range(len(steps)), key=lambda i: (0 if i in (0, last) else 1, -(i & -i), i))
    return [steps[i] for i in order]


def _leading(model: Model, matrix: str) -> tuple[list[float], float | None]:
    told = _described(matrix, model.weights[matrix])
    return (told["values"] or [])[:LEADING], told["effective"]


def unseen(spec: Train) -> Batch:
    """Sequences that training never sees, clean ones where the task has a clean form; at `read` the loss is read."""
    several = SEQUENCES if matrices_of(spec.model) else PROMPTS
    batch = getattr(spec.task, "clean", spec.task).sample(spec.seed, UNSEEN, several)
    return Batch(batch.tokens, batch.targets, batch.groups | {"read": read_positions(batch, spec.plan.loss)})


def cut(spec: Train, model: Model, matrix: str, shares: Sequence[float]) -> dict[str, Any]:
    """What is said on unseen sequences with each share of the singular values of a matrix; `whole`: with all."""
    _refuse_unknown(matrix, names_of(spec, model.weights))
    batch, shape = unseen(spec), model.weights[matrix].shape
    taken_apart = matrix in matrices_of(spec.model)
    found, whole = (by_parts if taken_apart else one_by_one)(spec, model, batch, matrix, shares)
    rows = [
        {"share": share, "rank": rank_of_share(share, shape)} | _told(metrics)
        for share, metrics in zip(shares, found, strict=True)
    ]
    about = {"matrix": matrix, "of": min(shape), "sequences": len(batch.tokens), "whole": _told(whole), "rows": rows}
    return about | {"positions": int(batch.groups["read"].sum())}


def by_parts(
    spec: Train, model: Model, batch: Batch, matrix: str, shares: Sequence[float]
) -> tuple[list[Metrics], Metrics]:
    """As `engram truncate` measures it."""
    noise = getattr(spec.task, "noise_token", None)
    found = sweep(spec.model, model.weights, batch, "read", shares, (matrix,), noise)
    return [found.at(matrix, share) for share in shares], found.full


@torch.no_grad()
def one_by_one(
    spec: Train, model: Model, batch: Batch, matrix: str, shares: Sequence[float]
) -> tuple[list[Metrics], Metrics]:
    """The same, by running the model for each share."""
    factors, noise = Factors.of(model.weights[matrix]), getattr(spec.task, "noise_token", None)
    mask = torch.from_numpy(batch.groups["read"])
    right = torch.from_numpy(np.array(batch.targets))[mask]

    def said(W: torch.Tensor) -> Metrics:
        logits = spec.model.forward(model.weights | {matrix: W}, torch.from_numpy(np.array(batch.tokens))).logits
        return recall_in_context(logits[mask], right, noise)

    return [said(factors.keep_share(share)) for share in shares], said(model.weights[matrix])


def _told(metrics: Metrics) -> dict[str, float | None]:
    """JSON knows neither infinity nor NaN."""
    return {name: value if np.isfinite(value) else None for name, value in metrics.items()}


def _refuse_unknown(matrix: str, known: Sequence[str]) -> None:
    if matrix not in known:
        hint = did_you_mean(matrix, known)
        raise EngramError(f"matrix: no matrix {matrix!r:.60} here; {hint}allowed: {', '.join(known)}")

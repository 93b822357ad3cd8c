"""What a run looks like at one step: memories in their association basis, raw matrices, attention, predictions."""

from collections.abc import Sequence
from functools import cache
from math import isfinite, log
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError, did_you_mean
from engram.lab.roles import roles
from engram.memory.stored import Stored
from engram.models import Model, Trace
from engram.models.memories import heads_of, memories_of
from engram.models.trace import Head, Weights
from engram.models.transformer import silenced
from engram.probes.attribution import attribution
from engram.records.weights import initial_weights
from engram.specs import Train
from engram.tasks import Bigram, NoisyRecall
from engram.tasks.batch import marks_of
from engram.tasks.text import encode
from engram.theory.bigram import best_guess, global_floor, previous_visits
from engram.theory.noisy import noisy_levels

LIKELIEST = 5
LONGEST = 1024  # tokens of a sequence whose attention is drawn


def catalogue(spec: Train) -> list[dict[str, Any]]:
    """Every picture that a run of this Spec has, with the marks of its rows and columns."""
    w = initial_weights(spec)
    memories = memories_at(spec, w)
    found = [_memory_entry(memory) for memory in memories]
    names = dict.fromkeys([*(memory.name for memory in memories), *spec.plan.trained])
    trained = [name for name in names if name in spec.plan.trained]
    found += [
        _entry(f"raw:{name}", f"{name}, entries", "row", "column") | {"shape": list(torch.atleast_2d(w[name]).shape)}
        for name in trained
    ]
    return found + [
        _entry(f"attention:{i}.{h}", f"Layer {i}, head {h}", "current token", "attends to")
        for i, h in heads_of(spec.model)
    ]


def memories_at(spec: Train, w: Weights) -> list[Stored]:
    """The memories of a training with these weights."""
    return memories_of(spec.model, w, spec.task, spec.seed)


def _memory_entry(memory: Stored) -> dict[str, Any]:
    words = memory.labels
    diagonal = memory.has_answers and memory.answers.tolist() == list(range(len(words.rows)))
    right = memory.answers.tolist() if memory.has_answers and not diagonal else None
    marks = {"rows": list(words.rows), "columns": list(words.columns), "diagonal": diagonal, "right": right}
    marks["shape"] = [len(words.rows), len(words.columns)]
    return _entry(f"memory:{memory.name}", words.title, words.asks, words.answers) | marks


def _entry(name: str, title: str, asks: str, answers: str) -> dict[str, Any]:
    """A picture whose rows and columns have no marks but their numbers; their number may depend on a sequence."""
    no_marks = {"rows": [], "columns": [], "diagonal": False, "right": None, "shape": None}
    return {"name": name, "title": title, "asks": asks, "answers": answers} | no_marks


@torch.no_grad()
def picture(spec: Train, model: Model, name: str, tokens: Int[np.ndarray, " T"], ablate: Sequence[Head]) -> np.ndarray:
    """A matrix by its name in the catalogue."""
    kind, _, of = name.partition(":")
    memories = memories_at(spec, model.weights) if kind == "memory" else []
    heads = {f"{i}.{h}": (i, h) for i, h in heads_of(spec.model)} if kind == "attention" else {}
    if memory := next((memory for memory in memories if memory.name == of), None):
        return memory.scores().float().numpy()
    if kind == "raw" and of in spec.plan.trained:
        return torch.atleast_2d(model.weights[of]).float().numpy()
    if of in heads:
        i, h = heads[of]
        return without(model, ablate)(tokens).attention[i - 1][0, h - 1].float().numpy()
    known = [entry["name"] for entry in catalogue(spec)]
    raise EngramError(f"no picture {name!r}; {did_you_mean(name, known)}allowed: {', '.join(known)}")


def without(model: Model, heads: Sequence[Head]) -> Model:
    """The model in which these heads write nothing."""
    if heads and not hasattr(model.architecture, "without"):
        raise EngramError("ablate: this model has no heads that can be ablated")
    return Model(model.architecture, silenced(model.architecture, model.weights, heads))


def cell(scores: Float[np.ndarray, "n m"], row: int, column: int, diagonal: bool) -> dict[str, Any]:
    """One association: its score, its rank among the answers of its row, and the lead of the right answer there."""
    if not (row < scores.shape[0] and column < scores.shape[1]):
        raise EngramError(f"cell: this picture has {scores.shape[0]} rows and {scores.shape[1]} columns")
    line = scores[row]
    found: dict[str, Any] = {"score": float(line[column]), "rank": 1 + int((line > line[column]).sum())}
    if diagonal:
        others = np.delete(line, row)
        found["margin"] = float(line[row] - others.max()) if others.size else None
    return found | {"best": int(line.argmax())}


def tokens_of(spec: Train, text: str | None, tokens: Sequence[int] | None) -> Int[np.ndarray, " T"]:
    """A user's own sequence as token ids."""
    if text is not None:
        return encode(spec.task, text, spec.seed)
    if not tokens:
        raise EngramError("text: type at least one token, or give token ids")
    if len(tokens) > spec.task.T or max(tokens) >= spec.task.N:
        raise EngramError(f"text: at most {spec.task.T} tokens, each in 0 … {spec.task.N - 1}")
    return np.array(tokens)


def own_sequence(spec: Train) -> Int[np.ndarray, " T"]:
    """A sequence of the task that training never sees: all of it, so that every position can be looked at."""
    return spec.task.sample(spec.seed, 2**41, 1).tokens[0, :LONGEST]


@torch.no_grad()
def predictions(spec: Train, model: Model, tokens: Int[np.ndarray, " T"], ablate: Sequence[Head]) -> dict[str, Any]:
    """The likeliest tokens at every position, where the first of them comes from, and what is right there.

    "right" holds None where nothing is asked for. Where the task asks for something else than the next token, "asks"
    says so: right answers are known if the sequence is of the task's form.
    """
    model, marks = without(model, ablate), marks_of(spec.task, spec.seed)
    trace = model(tokens)
    p = trace.logits[0].softmax(dim=1)
    best = p.topk(min(LIKELIEST, p.shape[1]), dim=1)
    likeliest = [
        [{"token": int(k), "mark": mark(marks, int(k)), "p": _plain(q)} for q, k in zip(*line, strict=True)]
        for line in zip(best.values, best.indices, strict=True)
    ]
    if p.shape[1] != spec.task.N:
        raise EngramError("text: this model answers questions; it does not go on with a sequence")
    right, asked = right_answers(spec, tokens)
    return {
        "tokens": tokens.tolist(),
        "marks": [mark(marks, token) for token in tokens.tolist()],
        "asked": asked,
        "asks": "answer" if hasattr(spec.task, "has_answers") else "next",
        "right": [None if token is None else mark(marks, token) for token in right],
        "predictions": likeliest,
        "heads": roles(spec, model),
        "parts": _parts(model, trace, best.indices[:, 0]),
        "probabilities": [None if token is None else _plain(p[t, token]) for t, token in enumerate(right)],
    }


def right_answers(spec: Train, tokens: Int[np.ndarray, " T"]) -> tuple[list[int | None], list[bool]]:
    """What is to be predicted at each position, and the positions at which the context, or the task, asks for it."""
    task: Any = spec.task
    if not hasattr(task, "has_answers"):
        return [*tokens[1:].tolist(), None], (previous_visits(tokens[None])[0] >= 0).tolist()
    if not task.has_answers(tokens):
        return [None] * len(tokens), [False] * len(tokens)
    nothing = [getattr(task, name, None) for name in ("blank", "undefined")]
    right = [None if token in nothing else token for token in task.oracle(tokens[None])[0].tolist()]
    return right, [token is not None for token in right]


def _plain(value: Any) -> float | None:
    """JSON knows no infinity, and a model that diverges may predict it."""
    return round(float(value), 5) if isfinite(value) else None


def mark(marks: Sequence[str], token: int) -> str:
    """The mark of a token, or of a row or column; without one, its number."""
    return marks[token] if token < len(marks) else str(token)


def _parts(model: Model, trace: Any, chosen: Int[Tensor, " T"]) -> dict[str, list[float | None]]:
    """By part, its share of the lead of the chosen token over the mean logit."""
    if not isinstance(trace, Trace):
        return {}
    found = {}
    for name, part in attribution(model.architecture, model.weights, trace).items():
        lead = part[0].gather(1, chosen[:, None])[:, 0] - part[0].mean(dim=1)
        found[name] = [_plain(value) for value in lead]
    return found


@cache  # branches of a training ask for the same levels; a task is frozen, so it has a hash
def _floor(task: Bigram) -> float:
    return global_floor(task, draws=300).value


@cache
def _ceiling(task: Bigram) -> float:
    """In-context accuracy of the best predictor that is not told where it is asked."""
    batch = task.sample(0, 0, 200)
    right = best_guess(task, batch) == batch.targets
    return float(right[batch.groups["in_context"]].mean())


@cache
def _noisy(task: NoisyRecall) -> list[tuple[str, float, str]]:
    """The least loss, and how likely the best predictor of noisy text finds noise where there is none."""
    best = noisy_levels(task)
    return [("loss.in_context", best.floor, "in-context floor"), ("noise.p_noise", best.p_noise, "best predictor")]


def levels(spec: Train) -> list[dict[str, Any]]:
    """What a blind guess and the best predictor reach."""
    task, read = spec.task, spec.plan.loss
    if not isinstance(task, Bigram | NoisyRecall):
        return []
    found = [("loss.in_context", log(task.N), "blind guess, ln N")]
    if isinstance(task, NoisyRecall):
        found += _noisy(task)  # type: ignore[arg-type]  # frozen
    elif read == "in_context" or task.triggers == "fixed":  # then it is known that the context holds the answer
        found += [("loss.in_context", 0.0, "in-context floor")]
    else:
        found += [("accuracy.in_context", _ceiling(task), "best predictor")]  # type: ignore[arg-type]  # frozen
    if isinstance(task, Bigram) and read in ("all", "global") and isfinite(floor := _floor(task)):  # type: ignore[arg-type]  # frozen
        found += [("loss.global", floor, "global floor")]
    return [{"column": column, "value": value, "name": name} for column, value, name in found]

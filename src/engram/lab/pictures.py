"""What a run looks like at one step: memories in their association basis, raw matrices, attention, predictions."""

from collections.abc import Callable, Sequence
from math import isfinite, log
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError, did_you_mean
from engram.models import Model, Simplified, Transformer
from engram.models.transformer import Head, silenced
from engram.probes.attribution import attribution
from engram.probes.recall import answers_W_F, as_simplified, scores_W_K1, scores_W_K2, scores_W_O2, two_layers
from engram.specs import Train
from engram.specs.encode import digest_of
from engram.tasks import Bigram
from engram.tasks.oracle import global_floor, previous_visits
from engram.theory.predictors import best_guess

LIKELIEST = 5
VISIBLE = {"\n": "⏎", " ": "␣", "\t": "⇥"}
MEMORIES = {  # what a memory is asked, and what it answers
    "W_O2": ("Output memory W_O2", "token attended to", "token written"),
    "W_K2": ("Key memory W_K2", "current token", "token before the key"),
    "W_K1": ("Position memory W_K1", "position", "position attended to"),
    "W_F": ("Bigram memory W_F", "current token", "token written"),
}


def marks_of(spec: Train) -> list[str] | None:
    """A visible mark for every token, where the task has letters."""
    if not isinstance(spec.task, Bigram):
        return None
    return [VISIBLE.get(letter, letter if letter.isprintable() else "·") for letter in spec.task.table.alphabet]


def heads_of(spec: Train) -> list[Head]:
    if isinstance(spec.model, Simplified):
        return [(1, 1), (2, 1)]
    return list(spec.model.heads()) if isinstance(spec.model, Transformer) else []


def catalogue(spec: Train) -> list[dict[str, Any]]:
    """Every picture that a run of this Spec has, with the marks of its rows and columns."""
    marks = marks_of(spec) or [str(i) for i in range(spec.task.N)]
    places = {"W_K1": ([str(t) for t in range(2, spec.task.T + 1)], [str(s) for s in range(1, spec.task.T)])}
    found = []
    for name in memory_names(spec):
        title, asks, answers = MEMORIES[name]
        rows, columns = places.get(name, (marks, marks))
        found.append(_entry(f"memory:{name}", title, asks, answers, rows, columns, name != "W_F"))
    trained = [name for name in dict.fromkeys([*memory_names(spec), *spec.plan.trained]) if name in spec.plan.trained]
    found += [_entry(f"raw:{name}", f"{name}, entries", "row", "column") for name in trained]
    return found + [
        _entry(f"attention:{i}.{h}", f"Layer {i}, head {h}", "current token", "attends to") for i, h in heads_of(spec)
    ]


def _entry(
    name: str,
    title: str,
    asks: str,
    answers: str,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    diagonal: bool = False,
) -> dict[str, Any]:
    places = {"rows": list(rows), "columns": list(columns), "diagonal": diagonal}
    return {"name": name, "title": title, "asks": asks, "answers": answers} | places


def memory_names(spec: Train) -> list[str]:
    names = ["W_O2", "W_K2", "W_K1"] if two_layers(spec.model) else []
    linear = isinstance(spec.model, Simplified | Transformer) and any(n.startswith("W_F") for n in spec.model.names)
    return [*names, *(["W_F"] if linear else [])]


@torch.no_grad()
def picture(spec: Train, model: Model, name: str, tokens: Int[np.ndarray, " T"], ablate: Sequence[Head]) -> np.ndarray:
    """A matrix by its name in the catalogue."""
    kind, _, of = name.partition(":")
    if name not in (known := [entry["name"] for entry in catalogue(spec)]):
        raise EngramError(f"no picture {name!r}; {did_you_mean(name, known)}allowed: {', '.join(known)}")
    if kind == "memory":
        return _memory(model, of).float().numpy()
    if kind == "raw":
        return torch.atleast_2d(model.weights[of]).float().numpy()
    i, h = map(int, of.split("."))
    return without(model, ablate)(tokens).attention[i - 1][0, h - 1].float().numpy()


def _memory(model: Model, name: str) -> Float[Tensor, "n n"]:
    architecture = model.architecture
    assert isinstance(architecture, Simplified | Transformer)
    if name == "W_F":
        answers = answers_W_F(architecture, model.weights)
        assert answers is not None
        return answers
    w = as_simplified(architecture, model.weights)
    return {"W_O2": scores_W_O2, "W_K2": scores_W_K2, "W_K1": scores_W_K1}[name](w)


def without(model: Model, heads: Sequence[Head]) -> Model:
    """The model in which these heads write nothing."""
    if heads and not isinstance(model.architecture, Simplified | Transformer):
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
    if text is not None and isinstance(spec.task, Bigram):
        place = {letter: i for i, letter in enumerate(spec.task.table.alphabet)}
        unknown = next((letter for letter in text if letter not in place), None)
        if unknown is not None:
            raise EngramError(f"text: {unknown!r} is not in the vocabulary of this run")
        tokens = [place[letter] for letter in text]
    if not tokens:
        raise EngramError("text: type at least one character, or give token ids")
    if len(tokens) > spec.task.T or max(tokens) >= spec.task.N:
        raise EngramError(f"text: at most {spec.task.T} tokens, each in 0 … {spec.task.N - 1}")
    return np.array(tokens)


def own_sequence(spec: Train, length: int = 64) -> Int[np.ndarray, " T"]:
    """A sequence of the task that training never sees."""
    return spec.task.sample(spec.seed, 2**41, 1).tokens[0, :length]


@torch.no_grad()
def predictions(spec: Train, model: Model, tokens: Int[np.ndarray, " T"], ablate: Sequence[Head]) -> dict[str, Any]:
    """The likeliest tokens at every position, where the first of them comes from, and what came instead."""
    model, marks = without(model, ablate), marks_of(spec) or [str(i) for i in range(spec.task.N)]
    trace = model(tokens)
    p = trace.logits[0].softmax(dim=1)
    best = p.topk(min(LIKELIEST, p.shape[1]), dim=1)
    likeliest = [
        [{"token": int(k), "mark": _mark(marks, int(k)), "p": _plain(q)} for q, k in zip(*line, strict=True)]
        for line in zip(best.values, best.indices, strict=True)
    ]
    if p.shape[1] != spec.task.N:
        raise EngramError("text: this model answers questions; it does not go on with a sequence")
    came = p[torch.arange(len(tokens) - 1), torch.from_numpy(tokens[1:])]
    return {
        "tokens": tokens.tolist(),
        "marks": [_mark(marks, token) for token in tokens.tolist()],
        "asked": (previous_visits(tokens[None])[0] >= 0).tolist(),
        "predictions": likeliest,
        "parts": _parts(model, trace, best.indices[:, 0]),
        "probabilities": [_plain(q) for q in came],
    }


def _plain(value: Any) -> float | None:
    """JSON knows no infinity, and a model that diverges may predict it."""
    return round(float(value), 5) if isfinite(value) else None


def _mark(marks: Sequence[str], token: int) -> str:
    return marks[token] if token < len(marks) else str(token)


def _parts(model: Model, trace: Any, chosen: Int[Tensor, " T"]) -> dict[str, list[float | None]]:
    """By part, its share of the lead of the chosen token over the mean logit."""
    if not isinstance(model.architecture, Simplified | Transformer):
        return {}
    found = {}
    for name, part in attribution(model.architecture, model.weights, trace).items():
        lead = part[0].gather(1, chosen[:, None])[:, 0] - part[0].mean(dim=1)
        found[name] = [_plain(value) for value in lead]
    return found


_known: dict[tuple[str, str], float] = {}  # branches of a training ask for the same levels


def _once(measure: Callable[[Bigram], float], task: Bigram) -> float:
    key = (measure.__name__, digest_of(task))
    if key not in _known:
        _known[key] = measure(task)
    return _known[key]


def _floor(task: Bigram) -> float:
    return global_floor(task, draws=300).value


def _ceiling(task: Bigram) -> float:
    """In-context accuracy of the best predictor that is not told where it is asked."""
    batch = task.sample(0, 0, 200)
    right = best_guess(task, batch) == batch.targets
    return float(right[batch.groups["in_context"]].mean())


def levels(spec: Train) -> list[dict[str, Any]]:
    """What a blind guess and the best predictor reach."""
    task, read = spec.task, spec.plan.loss
    if not isinstance(task, Bigram):
        return []
    found = [("loss.in_context", log(task.N), "blind guess, ln N")]
    if read == "in_context" or task.triggers == "fixed":  # then it is known that the context holds the answer
        found += [("loss.in_context", 0.0, "in-context floor")]
    else:
        found += [("accuracy.in_context", _once(_ceiling, task), "best predictor")]
    if read in ("all", "global") and isfinite(floor := _once(_floor, task)):
        found += [("loss.global", floor, "global floor")]
    return [{"column": column, "value": value, "name": name} for column, value, name in found]

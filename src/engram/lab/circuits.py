"""The circuit of a run as a page draws it: parts and memories by columns, and what joins them.

A part has a role where a probe confirms one, and else none.

embedding | W_K1 | heads of layer 1 | W_K2 | heads of layer 2 | W_O2 | right answer
"""

from math import isfinite
from typing import Any

from engram.lab import circuit_words as words
from engram.lab.circuit_roles import NO_ROLE, STEP, confirmed_roles
from engram.lab.pictures import memories_at
from engram.memory.stored import Stored
from engram.models import Model, Simplified, Transformer
from engram.models.factual import Factual
from engram.probes.circuit import Circuit, CircuitPart, circuit_of, read_positions
from engram.probes.fact_circuit import fact_circuit
from engram.probes.recall import distance
from engram.specs import Train
from engram.tasks import Batch
from engram.tasks.facts import FactTask

SEQUENCES, PROMPTS = 8, 512  # unseen ones
COLUMNS = {"W_K1": 1, "W_K2": 3, "W_O2": 5}  # of the memories of an induction head, between the parts that they join
STORED = 0.5  # recall above which a memory is born, here as on the slider


def circuit(spec: Train, model: Model) -> dict[str, Any]:
    """Parts, memories and edges; or `why` there are none."""
    if isinstance(spec.task, FactTask) != isinstance(spec.model, Factual) or not isinstance(
        spec.model, Simplified | Transformer | Factual
    ):
        kind = type(spec.model).__name__
        why = f"{kind} cannot be taken apart: a circuit is drawn of Simplified, Transformer and Factual"
        return {"why": why, "nodes": [], "edges": []}
    batch = unseen(spec)
    found = measured(spec, model, batch)
    answer = {"name": "answer", "kind": "answer", "layer": 0, "column": _last(spec), "title": "right answer"}
    nodes = [*_memories(spec, model), *_parts(spec, model, batch, found), _whole(answer, found)]
    nodes = [n | {"short": words.short(n), "lines": words.lines(n), "words": words.aloud(n)} for n in nodes]
    edges = [e | {"words": words.of_edge(e)} for e in (*_between(found, spec), *_to_answer(found))]
    about = {"why": None, "loss": plain(found.loss), "p_right": plain(found.p_right), "positions": found.positions}
    return about | {"sequences": len(batch.tokens), "nodes": nodes, "edges": edges}


def unseen(spec: Train) -> Batch:
    several = PROMPTS if isinstance(spec.model, Factual) else SEQUENCES
    return spec.task.sample(spec.seed, STEP, several)


def measured(spec: Train, model: Model, batch: Batch) -> Circuit:
    if isinstance(spec.model, Factual):
        return fact_circuit(spec.model, model.weights, batch)
    return circuit_of(model, batch, read_positions(batch, spec.plan.loss))


def plain(value: float | None) -> float | None:
    """JSON knows neither infinity nor NaN."""
    return round(value, 6) if value is not None and isfinite(value) else None


def _last(spec: Train) -> int:
    return 4 if isinstance(spec.model, Factual) else 2 * _layers(spec) + 2


def _layers(spec: Train) -> int:
    return len(spec.model.layers) if isinstance(spec.model, Transformer) else 2


def _whole(answer: dict[str, Any], found: Circuit) -> dict[str, Any]:
    return answer | NO_ROLE | {"matrices": [], "head": None, "p_right": plain(found.p_right)}


def _parts(spec: Train, model: Model, batch: Batch, found: Circuit) -> list[dict[str, Any]]:
    confirmed = confirmed_roles(spec, model, batch)
    return [_described(spec, part) | confirmed.get(part.name, NO_ROLE) for part in found.parts]


def _described(spec: Train, part: CircuitPart) -> dict[str, Any]:
    column = 0 if part.kind == "embedding" else 2 * part.layer + (part.kind == "feed-forward")
    told = {"name": part.name, "kind": part.kind, "layer": part.layer, "column": column, "title": _title(part)}
    told |= {"head": part.head if hasattr(spec.model, "without") else None, "matrices": _matrices(spec, part)}
    return told | {"attribution": plain(part.attribution), "worth": plain(part.worth)}


def _title(part: CircuitPart) -> str:
    if part.head:
        return "layer {}, head {}".format(*part.head)
    return "embedding" if part.kind == "embedding" else f"feed-forward {part.name}"


def _matrices(spec: Train, part: CircuitPart) -> list[str]:
    """The trained matrices that it is made of."""
    letters = {"head": "QKVO", "feed-forward": "IF"}.get(part.kind, "")
    names = {f"W_{letter}{layer}" for letter in letters for layer in (part.layer, "")} | {part.name}
    names |= {"E", "P"} if part.kind == "embedding" else set()
    return [name for name in spec.plan.trained if name in names]


def _memories(spec: Train, model: Model) -> list[dict[str, Any]]:
    """Those of an induction head stand between the parts that they join, all others with their feed-forward part.

    One of which nothing can be measured on this task is no part of the circuit.
    """
    found = [_memory(spec, stored) for stored in memories_at(spec, model.weights)]
    return [one for one in found if one["recall"] is not None or one["kl"] is not None]


def _memory(spec: Train, stored: Stored) -> dict[str, Any]:
    last = 3 if isinstance(spec.model, Factual) else 2 * _layers(spec) + 1
    column = (COLUMNS | {"W_OV": 2}).get(stored.name, last)
    recall = plain(stored.recall()) if stored.has_answers else None
    kl = plain(distance(stored)) if stored.right is not None and not stored.has_answers else None
    born = {"role": "born", "share": recall} if recall is not None and recall > STORED else NO_ROLE
    told = {"name": f"memory:{stored.name}", "kind": "memory", "layer": 0, "column": column} | born
    told |= {"title": stored.labels.title, "head": None, "recall": recall, "kl": kl}
    return told | {"matrices": _of_memory(spec, stored.name)}


def _of_memory(spec: Train, name: str) -> list[str]:
    """The trained matrices that a memory is made of: one of a `Transformer` has query and key matrices in one."""
    names = {name, *({f"W_Q{name[-1]}"} if name.startswith("W_K") else ()), f"{name}{_layers(spec)}"}
    names |= {"W_O", "W_V"} if name == "W_OV" else set()
    return [one for one in spec.plan.trained if one in names]


def _between(found: Circuit, spec: Train) -> list[dict[str, Any]]:
    """From heads to what reads them."""
    through = {part.name: _matrices(spec, part) for part in found.parts}
    keys = {name: [one for one in of if one[:3] in ("W_K", "W_Q", "W_I")] for name, of in through.items()}
    return [
        {"from": edge.writer, "to": edge.reader, "recall": plain(edge.recall), "cut": plain(edge.cut)}
        | {"attribution": None, "matrices": keys[edge.reader]}
        for edge in found.edges
    ]


def _to_answer(found: Circuit) -> list[dict[str, Any]]:
    """From every part, what it adds to the right answer itself."""
    none = {"recall": None, "cut": None, "matrices": []}
    return [{"from": p.name, "to": "answer"} | none | {"attribution": plain(p.attribution)} for p in found.parts]

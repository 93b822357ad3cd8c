"""What an intervention would do at once: the same weights that a fork would have, and what they say.

Nothing is kept, and no run is changed. What is refused here is what the trainer would refuse.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engram.errors import EngramError
from engram.lab.circuits import plain, unseen
from engram.lab.pictures import mark, own_sequence, right_answers, tokens_of
from engram.lab.watched_run import WatchedRun
from engram.models import Model
from engram.models.transformer import silenced
from engram.probes.circuit import Read, read_positions
from engram.records.fork import steered
from engram.specs import Train
from engram.specs.encode import build
from engram.specs.events import Event, WeightsOf, kind_called
from engram.tasks.batch import marks_of
from engram.tasks.facts import FactTask
from engram.theory.bigram import previous_visits

MOVED = 5  # answers that are told, those whose probability changed most
Fields = dict[str, Any]


@dataclass(frozen=True)
class Before:
    """A model before and after an intervention, and the intervention in words."""

    model: Model
    after: Model
    sentence: str


def steered_model(run: WatchedRun, step: int, kind: str, fields: Fields, weights_of: WeightsOf) -> Before:
    """The model of a step, and as it would be if this were done before that step."""
    event = event_of(run.spec, step, kind, fields, weights_of)
    spec = _steered(run.spec, event)
    w = run.weights(step)
    own = {name: value.clone() for name, value in w.items()}
    place = max(i for i, one in enumerate(spec.events) if one == event)
    event.act_on(spec.model, own, {}, run.record.snapshot, (spec.seed, f"event.{place}"))
    if spec.silent(step) == run.spec.silent(step) and all(torch.equal(w[name], own[name]) for name in w):
        raise EngramError(f"{event.sentence}: this changes no weights, so that nothing is to be seen at this step")
    after = Model(spec.model, silenced(spec.model, own, spec.silent(step)), spec.task, spec.seed)
    return Before(run.model(step), after, event.sentence)


def event_of(spec: Train, step: int, kind: str, fields: Fields, weights_of: WeightsOf) -> Event:
    """As the trainer builds it."""
    chosen = kind_called(kind, spec)
    event = build(chosen, chosen.completed(fields, weights_of) | {"step": step})
    assert isinstance(event, Event)
    return event


def _steered(spec: Train, event: Event) -> Train:
    try:
        return steered(spec, event)
    except EngramError as error:
        raise EngramError(re.sub(r"^events\.\d+(\.|: )", "", str(error))) from None


@torch.no_grad()
def effect(before: Before, spec: Train, tokens: np.ndarray | None, position: int | None) -> dict[str, Any]:
    """At one position of one sequence, and on unseen sequences."""
    return {"what": before.sentence, "here": _here(before, spec, tokens, position), "unseen": _unseen(before, spec)}


def _here(before: Before, spec: Train, tokens: np.ndarray | None, position: int | None) -> dict[str, Any]:
    sequence, right, asked = _sequence(spec, tokens)
    place = _position(len(sequence), position, asked)
    p, q = (one(sequence).logits[0, place].softmax(dim=0) for one in (before.model, before.after))
    marks = _answers(spec)
    told = {"position": place, "token": mark(marks_of(spec.task, spec.seed), int(sequence[place]))}
    answer = right[place]
    known = None if answer is None else {"mark": mark(marks, answer)} | _both(p, q, answer)
    return told | {"right": known, "moved": _moved(p, q, marks), "likeliest": [_best(one, marks) for one in (p, q)]}


def _sequence(spec: Train, tokens: np.ndarray | None) -> tuple[np.ndarray, list[int | None], list[int]]:
    """The sequence, what is right at each position, and where it is asked for."""
    if isinstance(spec.task, FactTask):
        if tokens is not None:
            raise EngramError("tokens: a prompt about a fact is one of the task's own")
        batch = spec.task.sample(spec.seed, 2**41, 1)
        last = batch.tokens.shape[1] - 1
        return batch.tokens[0], [*([None] * last), int(batch.targets[0, last])], [last]
    sequence = own_sequence(spec) if tokens is None else tokens_of(spec, None, tokens.tolist())
    right, asked = right_answers(spec, sequence)
    known = [t for t, yes in enumerate(asked) if yes and right[t] is not None]
    return sequence, right, known if hasattr(spec.task, "has_answers") else _repeated(sequence, known)


def _repeated(sequence: np.ndarray, known: list[int]) -> list[int]:
    """Where what followed the last visit of a token follows it again, which only the context tells; else all."""
    before = previous_visits(sequence[None])[0]
    return [t for t in known if sequence[before[t] + 1] == sequence[t + 1]] or known


def _position(length: int, position: int | None, asked: list[int]) -> int:
    """The one that was chosen, or the last at which something is asked."""
    if position is None:
        return asked[-1] if asked else length - 1
    if position >= length:
        raise EngramError(f"position: this sequence has the positions 0 to {length - 1}; got {position}")
    return position


def _answers(spec: Train) -> tuple[str, ...]:
    if isinstance(spec.task, FactTask):
        return tuple(spec.task.names_of(spec.seed)["answer"])
    return marks_of(spec.task, spec.seed)


def _both(p: Tensor, q: Tensor, token: int) -> dict[str, float | None]:
    return {"before": plain(float(p[token])), "after": plain(float(q[token]))}


def _moved(p: Tensor, q: Tensor, marks: tuple[str, ...]) -> list[dict[str, Any]]:
    order = (q - p).abs().nan_to_num().argsort(descending=True)[:MOVED].tolist()
    return [{"mark": mark(marks, token)} | _both(p, q, token) for token in order]


def _best(p: Tensor, marks: tuple[str, ...]) -> str:
    return mark(marks, int(p.argmax()))


def _unseen(before: Before, spec: Train) -> dict[str, Any]:
    batch = unseen(spec)
    read = Read(batch, read_positions(batch, spec.plan.loss))
    logits = [one(batch.tokens).logits for one in (before.model, before.after)]
    loss, p = ([plain(of(one)) for one in logits] for of in (read.loss, read.p_right))
    return {"loss": loss, "p_right": p, "positions": read.positions, "sequences": len(batch.tokens)}

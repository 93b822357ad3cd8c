"""Which probes are due at a step of a training, and what they say: columns of its row."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from engram.learning.reference import Gradients, on
from engram.models import Simplified, Trace, Transformer, Weights
from engram.probes.attention import attention
from engram.probes.attribution import preference, shares
from engram.probes.diagonals import diagonals
from engram.probes.edges import effects, masses, previous_masses
from engram.probes.facts import stage
from engram.probes.recall import answers_W_F, as_simplified, kl_W_F, memories, two_layers
from engram.records.record import initial_weights
from engram.specs import Train
from engram.tasks import Batch, Bigram, Task
from engram.tasks.facts import FactTask

ATTENTION_SEQUENCES, END_SEQUENCES, TEST_SEQUENCES = 16, 64, 128
UNSEEN = 2**40  # a step beyond any run: sequences that training never sees


@torch.no_grad()
def probe(spec: Train, step: int, w: Weights, gradients: Gradients) -> dict[str, float]:
    """The probes that are due at this step and make sense for this task and model."""
    plan, last = spec.plan, step == spec.plan.steps
    found = {}
    if last or step % plan.probe_every == 0:
        found |= recalls(spec, w)
    if last or step % plan.attention_every == 0:
        found |= attention_shares(spec, w) | tested(spec, w, gradients) | fact_stage(spec, w)
    if last:
        for name in plan.at_end:
            found |= LOOKS[name](Trained.of(spec, w))
    return found


def recalls(spec: Train, w: Weights) -> dict[str, float]:
    task, model = spec.task, spec.model
    if not isinstance(model, Simplified | Transformer):
        return {}
    triggers = task.fixed_triggers if isinstance(task, Bigram) else None
    found = memories(as_simplified(model, w), triggers) if two_layers(model) else {}
    answers = answers_W_F(model, w)
    if answers is not None and isinstance(task, Bigram):
        asked = ~np.isin(np.arange(task.N), [] if triggers is None else triggers)
        found["kl.W_F"] = kl_W_F(answers, task.table.bigram, asked)
    return found


def attention_shares(spec: Train, w: Weights) -> dict[str, float]:
    if not two_layers(spec.model) or not {"in_context", "first"} <= set(spec.task.groups):
        return {}
    batch = unseen(spec.task, spec.seed, ATTENTION_SEQUENCES)
    return attention(spec.model.forward(w, on(w["E"].device, batch.tokens)), batch)


def fact_stage(spec: Train, w: Weights) -> dict[str, float]:
    """Losses over all facts of the book, of the relation alone, of the subject alone."""
    if not isinstance(spec.task, FactTask):
        return {}
    found = stage(spec.model, w, spec.task.book(spec.seed), spec.seed, UNSEEN)
    return {f"all.{name}": value for name, value in found.items()}


def tested(spec: Train, w: Weights, gradients: Gradients) -> dict[str, float]:
    """Loss and accuracy on the tasks that the training is tested on."""
    found = {}
    for name, task in spec.tests.items():
        batch = unseen(task, spec.seed, TEST_SEQUENCES)
        metrics = gradients(spec.model, w, batch, spec.plan.loss, ()).metrics
        found |= {f"test.{name}.{key}": value for key, value in metrics.items() if key != "loss"}
    return found


def unseen(task: Task, seed: int, sequences: int) -> Batch:
    return task.sample(seed, UNSEEN, sequences)


@dataclass(frozen=True)
class Trained:
    """What a last look sees: a trained model with two layers of attention, its task, and sequences it never saw."""

    spec: Train
    w: Weights
    model: Simplified | Transformer
    task: Bigram
    batch: Batch

    @classmethod
    def of(cls, spec: Train, w: Weights) -> "Trained":
        """The Spec has checked that task and model suit."""
        model, task = spec.model, spec.task
        assert isinstance(task, Bigram)
        assert two_layers(model)
        return cls(spec, w, model, task, unseen(task, spec.seed, END_SEQUENCES))


def _diagonals(at: Trained) -> dict[str, float]:
    first = {name: value.to(at.w["E"].device) for name, value in initial_weights(at.spec).items()}
    return diagonals(as_simplified(at.model, at.w), as_simplified(at.model, first), at.task)


def _trace(at: Trained) -> Trace:
    return at.model.forward(at.w, on(at.w["E"].device, at.batch.tokens))


def _effects(at: Trained) -> dict[str, float]:
    assert isinstance(at.model, Transformer)
    return effects(at.model, at.w, at.batch)


LOOKS: dict[str, Callable[[Trained], dict[str, float]]] = {
    "attribution": lambda at: shares(at.model, at.w, at.batch),
    "diagonals": _diagonals,
    "effects": _effects,
    "masses": lambda at: masses(_trace(at), at.batch),
    "preference": lambda at: preference(at.model, at.w, at.task, at.batch),
    "previous_masses": lambda at: previous_masses(_trace(at), at.batch),
}

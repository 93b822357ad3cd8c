"""Which probes are due at a step of a training, and what they say: columns of its row."""

import numpy as np
import torch

from engram.learning.reference import Gradients, on
from engram.models import Simplified, Transformer, Weights
from engram.probes.attention import attention
from engram.probes.attribution import preference
from engram.probes.diagonals import diagonals
from engram.probes.edges import effects, masses
from engram.probes.recall import answers_W_F, as_simplified, kl_W_F, memories, two_layers
from engram.records import Train
from engram.tasks import Batch, Bigram, Task

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
        found |= attention_shares(spec, w) | tested(spec, w, gradients)
    if last:
        for name in plan.at_end:
            found |= last_look(spec, w, name)
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


def last_look(spec: Train, w: Weights, name: str) -> dict[str, float]:
    """A probe of the trained model; the Spec has checked that it suits task and model."""
    task, model = spec.task, spec.model
    assert isinstance(task, Bigram)
    assert two_layers(model)
    batch = unseen(task, spec.seed, END_SEQUENCES)
    if name == "diagonals":
        return diagonals(as_simplified(model, w), task)
    if name == "preference":
        return preference(model, w, task, batch)
    if name == "masses":
        return masses(model.forward(w, on(w["E"].device, batch.tokens)), batch)
    assert isinstance(model, Transformer)
    return effects(model, w, batch)

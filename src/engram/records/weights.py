"""Stored weights made into models."""

import torch

from engram.models import Model, Weights
from engram.models.transformer import silenced
from engram.specs.spec import Train


def model_at(spec: Train, step: int, initial: Weights, stored: Weights) -> Model:
    """The model with the trained weights of a step."""
    w = initial | {name: tensor.to(initial[name].dtype) for name, tensor in stored.items()}
    return Model(spec.model, silenced(spec.model, w, spec.silent(step)), spec.task, spec.seed)


def initial_weights(spec: Train) -> Weights:
    """Weights before the first step: a pure function of model, task sizes and seed."""
    w = spec.model.init(spec.task.N, spec.task.T, spec.seed)
    return {name: tensor.to(getattr(torch, spec.plan.dtype)) for name, tensor in w.items()}

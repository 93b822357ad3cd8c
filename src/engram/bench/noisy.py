"""A step of noisy recall at the published size: the last layer where the loss reads it, against all of it in torch."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import torch

from engram.bench.baselines import descend, transformer_loss
from engram.bench.lines import Benchmark, Work, best, our_step, peaks
from engram.learning import SGD, Plan
from engram.models import Layer, Transformer
from engram.tasks import NoisyRecall

TASK, BATCH, SLICE, LOSS = NoisyRecall(T=256), 512, 64, "in_context"
MODEL = Transformer(d=256, hidden=1024, layers=(Layer(queries="identity", feed_forward="mlp"),) * 2)
TRAINED = tuple(name for name in MODEL.names if name.startswith("W_"))
OPTIMISER = SGD(lr=0.03, momentum=0.9, weight_decay=1e-4)


def steps(bench: Any) -> Iterator[Benchmark]:
    about = (
        f"d {MODEL.d}, T {TASK.T}, a slice of {SLICE} of the batch of {BATCH}; baseline: torch with fused attention, "
        "all sequences at once; both with the same sampling"
    )
    yield Benchmark("step.noisy", best(ours(SLICE), 3), best(dense(SLICE), 3), about)
    yield peaks("step.noisy-memory", f"{__name__}.ours", f"{__name__}.dense")  # of the whole batch


def ours(batch: int = BATCH) -> Work:
    return our_step(TASK, MODEL, Plan(optimiser=OPTIMISER, steps=1, batch=batch, trained=TRAINED, loss=LOSS))


def dense(batch: int = BATCH) -> Work:
    w, number = MODEL.init(TASK.N, TASK.T, 0), count()
    trained = [w[name].requires_grad_() for name in TRAINED]
    optimiser = torch.optim.SGD(trained, OPTIMISER.lr, OPTIMISER.momentum, weight_decay=OPTIMISER.weight_decay)
    return lambda: descend(optimiser, transformer_loss(MODEL, w, TASK.sample(0, next(number), batch), LOSS))

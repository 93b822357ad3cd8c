"""The general Transformer, a few sequences at a time, against a plain one that takes the batch as a whole."""

from collections.abc import Callable, Iterator

import torch

from engram.bench.baselines import plain_transformer_step
from engram.bench.lines import Benchmark, best, peaks
from engram.learning import PATHS, SGD
from engram.models import Transformer
from engram.tasks import Bigram

TASK, MODEL, BATCH, OPTIMISER = Bigram(K=3, T=256), Transformer(), 256, SGD(lr=0.2, momentum=0.9, weight_decay=1e-4)


def steps(bench: object) -> Iterator[Benchmark]:
    value, plain = best(ours(), 3), best(unchunked(), 3)
    about = f"full model of 2 layers, d {MODEL.d}, T {TASK.T}, batch {BATCH}; both with the same sampling"
    yield Benchmark("transformer.step", value, "s", plain, plain / value, about=about)
    yield peaks("transformer.memory", f"{__name__}.ours", f"{__name__}.unchunked")


def ours() -> Callable[[], None]:
    """A step as the loop takes it."""
    w, count = MODEL.init(TASK.N, TASK.T, 0), iter(range(10**9))
    optimiser = OPTIMISER.over(list(w.values()))

    def step() -> None:
        batch = TASK.sample(0, next(count), BATCH)
        found = PATHS["reference"](MODEL, w, batch, "all", MODEL.names)
        for name in MODEL.names:
            w[name].grad = found.gradients[name]
        optimiser.step()

    return step


def unchunked() -> Callable[[], None]:
    w, count = MODEL.init(TASK.N, TASK.T, 0), iter(range(10**9))
    optimiser = torch.optim.SGD([weight.requires_grad_() for weight in w.values()], 0.2, 0.9, weight_decay=1e-4)

    def step() -> None:
        plain_transformer_step(MODEL, w, optimiser, TASK.sample(0, next(count), BATCH))

    return step

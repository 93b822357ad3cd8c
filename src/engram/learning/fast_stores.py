"""The same trainings as `stores.train_stores` by the compiled kernel (native/stores.cpp): one problem per thread."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from engram.errors import EngramError, Interrupted
from engram.learning.plan import FullBatch
from engram.learning.stores import Stop, StoreOutcome, given_up
from engram.models.stores import Learner, LinearMap, TwoLayer
from engram.models.trace import Weights
from engram.native import REAL, call, kernel
from engram.tasks.association import Problem

WORK_AT_ONCE = 1e11  # multiplications between two looks at the clock and at `stop`: a few seconds


def applies(model: object) -> bool:
    return isinstance(model, LinearMap | TwoLayer) and kernel() is not None


def train_stores(
    model: Learner, plan: FullBatch, problem: Problem, seeds: Sequence[int], target: float, stop: Stop
) -> list[StoreOutcome]:
    def one(i: int) -> StoreOutcome:
        pairs = problem.X[i], problem.U[i], problem.f[i]
        return _train(model, plan, pairs, model.init(seeds[i]), target, stop)

    if len(seeds) == 1 or torch.get_num_threads() == 1:
        return [one(i) for i in range(len(seeds))]
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        return list(pool.map(one, range(len(seeds))))


def _train(
    model: Learner, plan: FullBatch, pairs: tuple[Tensor, Tensor, Tensor], first: Weights, target: float, stop: Stop
) -> StoreOutcome:
    """Train in slices, so that it can be stopped, and given up where the plan says so."""
    X, U, f = (part.numpy() for part in pairs)
    if U.dtype != X.dtype or f.min() < 0 or f.max() >= len(U):  # the kernel would read what is not there
        raise EngramError(f"task: answers must lie in 0 … M−1 = {len(U) - 1}, and X and U must have one dtype")
    w = torch.cat([part.flatten() for part in first.values()]).to(pairs[0].dtype)
    m = model.m if isinstance(model, TwoLayer) else 0
    sizes = [len(X), len(U), model.d, m]
    adam, found = plan.optimiser, np.zeros(4)
    numbers = np.array([adam.lr, *adam.betas, adam.eps, target])
    state = [w.numpy(), np.zeros_like(w.numpy()), np.zeros_like(w.numpy())]
    work = len(X) * (2 * len(U) * model.d + 5 * max(m, model.d) * model.d)
    pause = max(plan.check_every, int(WORK_AT_ONCE / work))
    step = 0
    while not (found[2] or found[3] or step == plan.steps or given_up(plan, step, found[1])):
        if stop():
            raise Interrupted([])
        ends = [step + pause, plan.steps, *(at for at, _ in plan.hopeless if at > step)]
        progress = (step, min(ends), plan.steps, plan.check_every)
        given = (*sizes, *progress, numbers, X, U, f.astype(np.int32), *state, found)
        if call(f"train_{REAL[w.dtype.itemsize]}", given) != 0:
            raise EngramError("search: out of memory; search smaller sizes (bracket)")
        step = int(found[0])
    parts = w.split([part.numel() for part in first.values()])
    last = {name: part.view(first[name].shape) for name, part in zip(first, parts, strict=True)}
    return StoreOutcome(float(found[1]), step, last)

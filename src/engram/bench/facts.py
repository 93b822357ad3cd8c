"""A training step on facts with sampling: bags in the compiled kernel, against attention token by token in torch."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import torch
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from engram.bench.baselines import descend
from engram.bench.lines import Benchmark, Work, best
from engram.errors import EngramError
from engram.learning import Adam
from engram.learning.fast_facts import applies, flatten, take_adam_steps
from engram.models.factual import Factual
from engram.tasks.facts import Facts

TASK, BATCH, ADAM, TOGETHER = Facts(S=64, R=64, D=8, T=32), 1024, Adam(lr=1e-3), 16
MODEL = Factual(d=64, heads=4, d_h=16, m=64, answers=TASK.answers)


def steps(bench: Any) -> Iterator[Benchmark]:
    if not applies(MODEL, (), "cpu"):
        raise EngramError("bench step.facts: there is no compiled kernel here; `engram doctor` says why")
    value, plain = best(ours(), 40) / TOGETHER, best(token_by_token(), 40)
    share = baseline_gflop() / plain / bench.sgemm
    about = (
        f"H 4, d_h 16, d 64, m 64, S = R = 64, D 8, T {TASK.T}, batch {BATCH}; both draw their prompts, Adam; "
        f"the baseline reaches {share:.0%} of sgemm"
    )
    yield Benchmark("step.facts", value, plain, about)


def baseline_gflop() -> float:
    """Products of one step, forward and twice back; those with frozen E and U once back."""
    B, T, d, read, A = BATCH, TASK.T, MODEL.d, MODEL.heads * MODEL.d_h, TASK.answers
    keys_and_values = 2 * B * T * d * read * 2  # and their gradients: the same again
    mixing = 2 * B * T * read * 3
    rest = B * (read * d + 2 * d * MODEL.m) * 3 + B * d * A * 2
    return 2 * (keys_and_values + mixing + rest) / 1e9


def ours() -> Work:
    """Some steps together, as a search takes them."""
    w, firsts = MODEL.init(TASK.N, TASK.T, 0), iter(range(0, 10**9, TOGETHER))
    row = flatten(MODEL, w)
    state = [row, torch.zeros_like(row), torch.zeros_like(row)]

    def some_steps() -> None:
        first = next(firsts)
        steps = range(first, first + TOGETHER)
        take_adam_steps(MODEL, w, state, ADAM, TASK.bags(0, steps, BATCH), steps)

    return some_steps


def token_by_token() -> Work:
    """As one would write it: embeddings of all tokens, keys and values of every head, softmax over T, autograd."""
    w, number = MODEL.init(TASK.N, TASK.T, 0), count()
    optimiser = torch.optim.Adam([w[name].requires_grad_() for name in MODEL.trainable], ADAM.lr)

    def step() -> None:
        batch = TASK.sample(0, next(number), BATCH)
        x = w["E"][torch.from_numpy(batch.tokens)]
        q = (x[:, -1] @ w["W_Q"].T).unflatten(1, (MODEL.heads, -1))
        k, v = ((x @ w[name].T).unflatten(2, (MODEL.heads, -1)).transpose(1, 2) for name in ("W_K", "W_V"))
        read = scaled_dot_product_attention(q[:, :, None], k, v).flatten(1)
        logits = MODEL.read(w, read @ w["W_O"].T) @ w["U"].T
        descend(optimiser, cross_entropy(logits, torch.from_numpy(batch.targets[:, -1])))

    return step

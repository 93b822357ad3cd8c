"""One layer of attention trained to denoise in context: the published protocol, in one generator."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.errors import EngramError
from engram.learning.plan import Adam
from engram.tasks.denoising import Denoising
from engram.theory.retrieval import case_of, linear_attention, softmax_attention
from engram.values import Rows, generator, law

RATE, BATCH, TRAIN_SHARE = 0.01, 80, 0.8
LATE = (0.8, 0.9)  # shares of the epochs after which the rate is a tenth of what it was
MODELS = {"linear": linear_attention, "softmax": softmax_attention}


class Prompt(tuple[Tensor, Tensor, Tensor, Tensor]):
    """What a model sees (X, or S for linear attention), x̃, x, and Bayes' answer; all float32, one row per prompt."""

    def rows(self, chosen: Tensor | slice) -> "Prompt":
        return Prompt(part[chosen] for part in self)


def prompts_of(task: Denoising, data: int, count: int, attention: str) -> Prompt:
    drawn = task.sample(data, 0, count)
    X = drawn.X.astype(np.float32)
    seen = X if attention == "softmax" else X.swapaxes(1, 2) @ X / task.L
    parts = (seen, drawn.query, drawn.clean, task.bayes(drawn.query, drawn.geometry))
    return Prompt(torch.from_numpy(np.asarray(part, dtype=np.float32)) for part in parts)


@law("learning.denoising.trained")
def train_attention(
    draws: int, seed: int, *, case: str, attention: str, data: int = 0, epochs: int = 100, L: int = 500, n: int = 16
) -> Rows:
    """One row per epoch, the first before training: errors per coordinate, and the scales α of W_PV and β of W_KQ.

    `draws` prompts, drawn by `data`, the same for all seeds; the seed draws initial weights and the order of batches.
    """
    if attention not in MODELS:
        raise EngramError(f"attention: unknown {attention!r}; allowed: {', '.join(MODELS)}")
    prompts = prompts_of(case_of(case, n, L), data, draws, attention)
    cut = int(TRAIN_SHARE * draws)
    train, test = prompts.rows(slice(cut)), prompts.rows(slice(cut, None))
    weights = [directions("uniform/d", n, n, seed, name).requires_grad_() for name in ("W_PV", "W_KQ")]
    optimiser = Adam(lr=RATE).over(dict(zip(("W_PV", "W_KQ"), weights, strict=True)))
    for epoch in range(epochs + 1):
        yield measure_errors(train, test, weights, attention)
        if epoch == epochs:
            return
        optimiser.lr = RATE * 0.1 ** sum(epoch >= int(share * epochs) for share in LATE)
        order = torch.from_numpy(generator(seed, "order", epoch).permutation(cut))
        for chosen in order.split(BATCH):
            optimiser.zero_grad()
            squared_error(train.rows(chosen), weights, attention).backward()
            optimiser.step()


def squared_error(prompts: Prompt, weights: list[Tensor], attention: str) -> Float[Tensor, ""]:
    """Mean squared error per coordinate."""
    seen, query, clean, _ = prompts
    return (MODELS[attention](seen, query, *weights) - clean).square().mean()


@torch.no_grad()
def measure_errors(train: Prompt, test: Prompt, weights: list[Tensor], attention: str) -> dict[str, float]:
    """The trained layer beside one step of the dense memory (W_PV = αI, W_KQ = βI), Bayes' predictor, and zero."""
    alpha, beta = (float(W.diagonal().mean()) for W in weights)
    n = len(weights[0])
    memory = [alpha * torch.eye(n), beta * torch.eye(n)]
    _, _, clean, bayes = test
    return {
        "loss.train": float(squared_error(train, weights, attention)),
        "loss.test": float(squared_error(test, weights, attention)),
        "loss.memory": float(squared_error(test, memory, attention)),
        "loss.bayes": float((bayes - clean).square().mean()),
        "loss.zero": float(clean.square().mean()),
        "alpha": alpha,
        "beta": beta,
    }

"""What a careful person would write first: a sampler that draws token by token, and dense training in torch."""

from concurrent.futures import ProcessPoolExecutor
from math import sqrt
from multiprocessing import get_context

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from engram.models import Simplified, Transformer, Weights
from engram.tasks import Batch, Bigram


def sample_token_by_token(task: Bigram, seed: int, sequences: int) -> np.ndarray:
    """NumPy's `choice` for every token, as in the published code. Returns z_1 … z_{T+1}."""
    rng, tokens, table = np.random.default_rng(seed), np.arange(task.N), task.table
    batch = np.empty((sequences, task.T + 1), dtype=np.int64)
    for sequence in batch:
        triggers = rng.choice(tokens, task.K, replace=False, p=table.unigram).tolist()
        outputs = rng.choice(tokens, task.K)
        sequence[0] = rng.choice(tokens, p=table.unigram)
        for t in range(task.T):
            now = sequence[t]
            if now in triggers:
                sequence[t + 1] = outputs[triggers.index(now)]
            else:
                sequence[t + 1] = rng.choice(tokens, p=table.bigram[now])
    return batch


def sampling_pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, get_context("spawn"))


def sample_in_pool(pool: ProcessPoolExecutor, processes: int, task: Bigram, sequences: int) -> int:
    """Shared out over the processes; returns the number of tokens."""
    share = [sequences // processes] * processes
    return sum(part.size for part in pool.map(sample_token_by_token, [task] * processes, range(processes), share))


def descend(optimiser: torch.optim.Optimizer, loss: Tensor) -> float:
    """One update by autograd; returns the loss before it."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()


def dense_loss(model: Simplified, w: Weights, batch: Batch, loss: str) -> Tensor:
    """Forward on all sequences at once."""
    tokens, targets = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
    read = torch.ones_like(tokens, dtype=torch.bool) if loss == "all" else torch.from_numpy(batch.groups[loss])
    x = w["E"][tokens] + w["P"][: tokens.shape[1]]
    x = x + _head(x, w["W_K1"], w["W_V1"], w["W_O1"], model)
    x = x + _head(x, w["W_K2"], w["W_V2"], w["W_O2"], model)
    x = x[read]
    if "W_F" in w:
        x = x + x @ w["W_F"].T
    return cross_entropy(x @ w["U"].T, targets[read])


def _head(x: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, model: Simplified) -> Tensor:
    T = x.shape[1]
    mask = torch.ones(T, T, dtype=torch.bool).triu(1)
    scores = (x @ (x @ W_K.T).mT).div_(sqrt(model.d)).masked_fill_(mask, -torch.inf)
    return scores.softmax(dim=-1) @ (x @ W_V.T) @ W_O.T


def transformer_loss(model: Transformer, w: Weights, batch: Batch, loss: str = "all") -> Tensor:
    """A full transformer without layer norm, all sequences at once, attention by torch's fused kernel."""
    tokens, targets = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
    x = w["E"][tokens] + w["P"][: tokens.shape[1]]
    for i, layer in enumerate(model.layers, 1):
        q, k, v = (
            (x @ w[f"W_{letter}{i}"].T if f"W_{letter}{i}" in w else x).unflatten(-1, (layer.heads, -1)).transpose(1, 2)
            for letter in ("Q", "K", "V")
        )
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + mixed.transpose(1, 2).flatten(2) @ w[f"W_O{i}"].T
        x = x + (x @ w[f"W_I{i}"].T).relu() @ w[f"W_F{i}"].T
    logits = x @ w["U"].T
    if loss == "all":
        return cross_entropy(logits.flatten(0, 1), targets.flatten())
    read = torch.from_numpy(batch.groups[loss])
    return cross_entropy(logits[read], targets[read])


def plain_training(X: Tensor, U: Tensor, f: Tensor, W: Tensor, lr: float, steps: int, check_every: int) -> int:
    """A linear memory by autograd and torch's Adam, as one would write it; the steps until accuracy exceeds 0.99."""
    W = W.clone().requires_grad_()
    optimiser = torch.optim.Adam([W], lr)
    for step in range(steps):
        logits = X @ W.T @ U.T
        if step % check_every == 0 and float((logits.argmax(1) == f).float().mean()) > 0.99:
            return step
        descend(optimiser, cross_entropy(logits, f))
    return steps

"""A step of the size at which multi-hop reasoning is trained, against Hugging Face's GPT-2 in torch.

GPT-2 with ReLU, gains of one, shifts and biases of zero and an output matrix of its own is our `Transformer` with layer
norms. Both sides train all that they have by Adam, on all positions of the same batches, without dropout.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.bench.baselines import descend
from engram.bench.lines import Benchmark, Work, best, best_in_turn, our_step, peaks
from engram.learning import Adam, Plan
from engram.models import Layer, Transformer, Weights
from engram.tasks import Batch

MODEL = Transformer(d=128, hidden=512, layers=(Layer(heads=4, feed_forward="mlp"),) * 4, norm="pre")
OPTIMISER, BATCH, ROUNDS = Adam(lr=1e-4), 32, 20


@dataclass(frozen=True)
class Letters:
    """Random text over as many letters as the published strings have: what is in it makes a step no faster."""

    N: int = 23
    T: int = 99
    groups: tuple[str, ...] = ("all",)

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        text = np.random.default_rng((seed, step)).integers(0, self.N, (batch, self.T + 1))
        return Batch(text[:, :-1], text[:, 1:], {"all": np.ones((batch, self.T), dtype=bool)})


TASK = Letters()


def steps(bench: Any) -> Iterator[Benchmark]:
    if find_spec("transformers") is None:
        print("step.hops: skipped, since transformers is not installed; pip install 'engram[hf]'", file=sys.stderr)
        return
    seconds, baseline = best_in_turn((ours(), gpt2()), ROUNDS)
    share = gflop() / baseline / sgemm()
    about = (
        f"{len(MODEL.layers)} layers, d {MODEL.d}, T {TASK.T}, batch {BATCH}, {gflop():.0f} GFLOP; baseline: GPT-2 of "
        f"transformers, {gflop() / baseline:.0f} GFLOP/s, {share:.0%} of sgemm"
    )
    if share < 0.35:
        about += " (below 35 %: NOT A FAIR BASELINE in this run)"
    yield Benchmark("step.hops", seconds, baseline, about, gflops=gflop() / seconds)
    yield peaks("step.hops-memory", f"{__name__}.ours", f"{__name__}.gpt2")


def ours() -> Work:
    return our_step(TASK, MODEL, Plan(optimiser=OPTIMISER, steps=1, batch=BATCH, trained=MODEL.names, loss="all"))


def gpt2() -> Work:
    model, number = gpt2_model(MODEL, MODEL.init(TASK.N, TASK.T, 0)), count()
    optimiser = torch.optim.Adam(model.parameters(), OPTIMISER.lr, OPTIMISER.betas, OPTIMISER.eps)
    descend(optimiser, gpt2_loss(model, TASK.sample(0, 0, 1)))  # loads what is loaded late: it is not the step's memory
    return lambda: descend(optimiser, gpt2_loss(model, TASK.sample(0, next(number), BATCH)))


def gpt2_model(model: Transformer, w: Weights) -> Any:
    """The same function as a GPT2LMHeadModel; all layers have the same number of heads, and an mlp."""
    from transformers import GPT2Config, GPT2LMHeadModel  # type: ignore[import-not-found]

    (N, d), T, dropout = w["E"].shape, len(w["P"]), dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    sizes = {"vocab_size": N, "n_positions": T, "n_embd": d, "n_layer": len(model.layers), "n_inner": model.hidden}
    ends = {"bos_token_id": 0, "eos_token_id": 0, "tie_word_embeddings": False, "use_cache": False}
    heads = {"n_head": model.layers[0].heads, "activation_function": "relu"}
    found = GPT2LMHeadModel(GPT2Config(**sizes, **heads, **dropout, **ends))
    missing = found.load_state_dict(_gpt2_weights(model, w), strict=False)
    assert not missing.unexpected_keys, missing
    return found


def _gpt2_weights(model: Transformer, w: Weights) -> Weights:
    """Under its names; linear layers are stored transposed there."""
    named = {"transformer.wte.weight": w["E"], "transformer.wpe.weight": w["P"], "lm_head.weight": w["U"]}
    for i in range(1, len(model.layers) + 1):
        reads = torch.cat([w[f"W_{letter}{i}"] for letter in "QKV"])
        parts = {
            "attn.c_attn": reads,
            "attn.c_proj": w[f"W_O{i}"],
            "mlp.c_fc": w[f"W_I{i}"],
            "mlp.c_proj": w[f"W_F{i}"],
        }
        named |= {f"transformer.h.{i - 1}.{name}.weight": W.T for name, W in parts.items()}
    return named


def gpt2_loss(model: Any, batch: Batch) -> Tensor:
    tokens, targets = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
    return cross_entropy(model(input_ids=tokens).logits.flatten(0, 1), targets.flatten())


def gflop() -> float:
    """Multiplications and additions in the matrix products of a step; of attention, the half that is not masked."""
    tokens, d, L = BATCH * TASK.T, MODEL.d, len(MODEL.layers)
    matrices = L * (4 * d * d + 2 * d * MODEL.hidden) + d * TASK.N
    attention = L * (TASK.T + 1) * d  # scores and mixing, half of T keys each
    return 3 * 2 * tokens * (matrices + attention) / 1e9  # forward, and twice as much backward


def sgemm() -> float:
    """GFLOP/s of the product by W_I."""
    x, W = torch.randn(BATCH * TASK.T, MODEL.d), torch.randn(MODEL.d, MODEL.hidden)
    out = torch.empty(len(x), MODEL.hidden)
    return 2 * x.numel() * MODEL.hidden / best(lambda: torch.mm(x, W, out=out), ROUNDS) / 1e9

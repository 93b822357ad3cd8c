"""Scores of all heads of a language model, against what needs no tool: transformers' own attentions, head by head.

Both sides have the same random weights, in the sizes of SmolLM2-135M, and the same sequences: a start token and random
tokens twice. Both find two scores of every head and the loss on both copies. Ours forgets each pattern when its layer
is done; the baseline asks for all attentions (eager), and then looks at one head after the other.
"""

import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from engram.adapters import network_from
from engram.adapters.source import Source
from engram.bench.lines import Benchmark, Work, best_in_turn, peaks
from engram.models import Network
from engram.probes.repeats import Repeats, passed, repeats

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
}
PERIOD, BATCH, ROUNDS = 250, 4, 2


def heads(bench: Any) -> Iterator[Benchmark]:
    if find_spec("transformers") is None:
        print("probe.heads: skipped, since transformers is not installed; pip install 'engram[hf]'", file=sys.stderr)
        return
    seconds, baseline = best_in_turn((ours(), theirs()), ROUNDS)
    about = (
        f"270 heads, {BATCH} sequences of {2 * PERIOD + 1} tokens; baseline: transformers, all attentions, head by head"
    )
    yield Benchmark("probe.heads", seconds, baseline, about)
    yield peaks("probe.heads-memory", f"{__name__}.ours", f"{__name__}.theirs")


@cache
def model() -> Any:
    """Random weights as transformers draws them."""
    from transformers import LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found]

    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**CONFIG, attn_implementation="eager", bos_token_id=0, eos_token_id=0)).eval()


@cache
def network() -> Network:
    """The same weights as a Network."""
    tensors = {name: tensor.detach() for name, tensor in model().state_dict().items()}
    return network_from(Source("random", CONFIG, tensors, ""))


def given() -> Repeats:
    return repeats(network(), 0, 0, PERIOD, BATCH)


def ours() -> Work:
    some = given()
    return lambda: passed(network(), some)


def theirs() -> Work:
    some = given()
    tokens = torch.from_numpy(some.tokens)
    return lambda: plainly(tokens, some.period, some.start)


@torch.no_grad()
def plainly(
    tokens: torch.Tensor, n: int, start: int
) -> tuple[dict[tuple[int, int], tuple[float, float]], float, float]:
    """Everything from one call that returns logits and all attentions."""
    out = model()(input_ids=tokens, output_attentions=True, use_cache=False)
    found = {}
    for layer, pattern in enumerate(out.attentions, 1):
        for h in range(pattern.shape[1]):
            before = pattern[:, h].diagonal(-1, dim1=-2, dim2=-1).mean()
            after = pattern[:, h].diagonal(1 - n, dim1=-2, dim2=-1)[:, start + 1 : start + 1 + n].mean()
            found[layer, h + 1] = float(before), float(after)
    losses = cross_entropy(out.logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    first, repeat = losses[:, start : start + n - 1], losses[:, start + n : start + 2 * n - 1]
    return found, float(first.mean()), float(repeat.mean())

"""Scores of all heads of a language model, against what needs no tool: transformers' own attentions, head by head.

A start token and random tokens come twice. Both sides find two scores of every head and the loss on both copies. Ours
forgets each pattern when its layer is done; the baseline asks for all attentions (eager), and then looks at one head
after the other. In `warm` both have the same random weights, in the sizes of SmolLM2-135M.
"""

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from engram.adapters import network_from
from engram.adapters.known import KNOWN
from engram.adapters.source import Source
from engram.bench.lines import Benchmark, Work, best_in_turn, peaks
from engram.folders import cache as folder
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
START = "import time; began = time.perf_counter()\n"
END = """
from pathlib import Path
lines = Path("/proc/self/status").read_text().splitlines()
print(time.perf_counter() - began)
print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))
"""
OURS = """
from engram.adapters import read_network
from engram.probes.repeats import passed, repeats
network = read_network("smollm2")
passed(network, repeats(network, 0, 0))
"""
THEIRS = """
import sys, torch
from pathlib import Path
from transformers import AutoModelForCausalLM
from engram.bench.probing import plainly
file = Path(sys.argv[1])
options = {"gguf_file": file.name, "attn_implementation": "eager", "dtype": torch.float32}
model = AutoModelForCausalLM.from_pretrained(str(file.parent), **options).eval()
random = torch.randint(1, 49152, (4, 50))
plainly(model, torch.cat([torch.zeros(4, 1, dtype=torch.long), random, random], dim=1), 50, 1)
"""


def heads(bench: Any) -> Iterator[Benchmark]:
    """From nothing: a fresh process, the file of the model, the scores of all its heads."""
    why = lacking()
    if why:
        print(f"probe.heads: skipped, since {why}", file=sys.stderr)
        return
    file = str(_file())
    ours_s, ours_mb = in_fresh_process(START + OURS + END, file)
    theirs_s, theirs_mb = in_fresh_process(START + THEIRS + END, file)
    about = "smollm2 from its file, fresh process, 270 heads, 4 sequences of 101 tokens; baseline: transformers"
    yield Benchmark("probe.heads", ours_s, theirs_s, about)
    yield Benchmark("probe.heads-memory", ours_mb, theirs_mb, "peak of the process, torch included (Linux)", unit="MB")


def warm(bench: Any) -> Iterator[Benchmark]:
    """One pass when everything is loaded: both sides are products of the same matrices."""
    if find_spec("transformers") is None:
        print("probe.pass: skipped, since transformers is not installed; pip install 'engram[hf]'", file=sys.stderr)
        return
    seconds, baseline = best_in_turn((ours(), theirs()), ROUNDS)
    about = (
        f"270 heads, {BATCH} sequences of {2 * PERIOD + 1} tokens; baseline: transformers, all attentions, head by head"
    )
    yield Benchmark("probe.pass", seconds, baseline, about)
    yield peaks("probe.pass-memory", f"{__name__}.ours", f"{__name__}.theirs")


def lacking() -> str | None:
    """What the baseline needs and does not find."""
    for package in ("transformers", "gguf", "accelerate"):
        if find_spec(package) is None:
            return f"{package} is not installed; pip install 'engram[hf]'"
    return None if _file().exists() else "smollm2 is not here; `engram probe smollm2` fetches it"


def _file() -> Path:
    return folder() / "models" / Path(KNOWN["smollm2"].member).name


def in_fresh_process(code: str, argument: str) -> tuple[float, float]:
    """The last two numbers that it prints."""
    run = subprocess.run([sys.executable, "-c", code, argument], capture_output=True, text=True, check=True)
    seconds, megabytes = run.stdout.strip().splitlines()[-2:]
    return float(seconds), float(megabytes)


@cache
def model() -> Any:
    """Random weights as transformers draws them."""
    from transformers import LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found]

    torch.manual_seed(0)
    options = CONFIG | {"attn_implementation": "eager", "bos_token_id": 0, "eos_token_id": 0}
    return LlamaForCausalLM(LlamaConfig(**options)).eval()


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
    return lambda: plainly(model(), tokens, some.period, some.start)


@torch.no_grad()
def plainly(
    model: Any, tokens: torch.Tensor, n: int, start: int
) -> tuple[dict[tuple[int, int], tuple[float, float]], float, float]:
    """Everything from one call that returns logits and all attentions."""
    out = model(input_ids=tokens, output_attentions=True, use_cache=False)
    found = {}
    for layer, pattern in enumerate(out.attentions, 1):
        for h in range(pattern.shape[1]):
            before = pattern[:, h].diagonal(-1, dim1=-2, dim2=-1).mean()
            after = pattern[:, h].diagonal(1 - n, dim1=-2, dim2=-1)[:, start + 1 : start + 1 + n].mean()
            found[layer, h + 1] = float(before), float(after)
    losses = cross_entropy(out.logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    first, repeat = losses[:, start : start + n - 1], losses[:, start + n : start + 2 * n - 1]
    return found, float(first.mean()), float(repeat.mean())

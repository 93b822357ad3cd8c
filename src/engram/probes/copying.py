r"""An induction head in real text: what heads look at, what a longer context is worth, and which tokens are guessed.

On the same random tokens twice (engram.probes.heads), drawn from those that the text has at least 100 times:

    previous.L2H4, induction.L3H1    scores of every head
    repeat.first, repeat.second      losses of the first and of the second copy

On 128 windows of text that training never sees, with o_t what followed the last visit of z_t, and b_t its likeliest
successor in the text that is trained on:

    context.score                    late loss minus early loss
    guessed.common                   accuracy where the target is b_t and not o_t: a common bigram
    guessed.copied                   accuracy where it is o_t and not b_t: it can only be copied
    conflict.copied, .bigram         probabilities of o_t and of b_t where they differ; conflict.cut.…: without the last
                                     feed-forward part
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from engram.models import Architecture, Model, Network, Transformer, network_of
from engram.models.memories import two_layers
from engram.models.network import Watch
from engram.probes.causal import without_part
from engram.probes.heads import head_scores, twice
from engram.probes.probe import Look, Probe
from engram.tasks import Batch, Task
from engram.tasks.sources import Folder, encoded
from engram.tasks.windows import Windows
from engram.theory.copying import NONE, Bigrams, followed

WINDOWS = 128
TWICE = 16  # sequences of random tokens
OFTEN = 100  # occurrences: the embeddings of rarer tokens are hardly trained
AT_ONCE = 16  # windows whose logits are held at a time
IN_CONFLICT = 32  # windows on which probabilities are compared


class TextHeads(Probe, name="probes.copying.TextHeads"):
    """Scores of all heads on random tokens that come twice, and the losses there."""

    columns: ClassVar = ("previous.", "induction.", "repeat.")
    called: ClassVar = "text_heads"

    def missing(self, task: Task, model: Architecture) -> str | None:
        return None if isinstance(task, Windows) and isinstance(model, Transformer) else "windows of text, Transformer"

    def measure(self, look: Look) -> dict[str, float]:
        period = look.task.T // 4
        assert isinstance(look.task, Windows)
        tokens = twice(look.task.N, period, TWICE, look.seed, frequent(look.task.corpus, look.task.N))
        found = head_scores(network_of(Model(look.model, look.w)), tokens, period)
        columns = {f"previous.L{i}H{h}": scores.previous for (i, h), scores in found.items()}
        columns |= {f"induction.L{i}H{h}": scores.induction for (i, h), scores in found.items()}
        metrics = look.gradients(look.model, look.w, _repeated(tokens), "all", ()).metrics
        return columns | {f"repeat.{copy}": metrics[f"loss.{copy}"] for copy in ("first", "second")}


class Copying(Probe, name="probes.copying.Copying"):
    """What a longer context is worth on unseen text, and how often common bigrams and copies are guessed."""

    columns: ClassVar = ("context.", "guessed.")
    called: ClassVar = "copying"

    def missing(self, task: Task, model: Architecture) -> str | None:
        return None if isinstance(task, Windows) and two_layers(model) else "windows of text, two layers of attention"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.task, Windows)
        batch = look.unseen(WINDOWS)
        plain, sorted_ = (
            look.gradients(look.model, look.w, one, "all", ()).metrics for one in (batch, kinds(look.task, batch))
        )
        context = {"context.loss": plain["loss"], "context.score": plain["loss.late"] - plain["loss.early"]}
        return context | {f"guessed.{kind}": sorted_[f"accuracy.{kind}"] for kind in ("common", "copied")}


class Conflict(Probe, name="probes.copying.Conflict"):
    """Where bigram and copy differ: the probability of each, with the last feed-forward part and without it."""

    columns: ClassVar = ("conflict.",)
    called: ClassVar = "conflict"

    def missing(self, task: Task, model: Architecture) -> str | None:
        fed = isinstance(model, Transformer) and model.layers[-1].feed_forward != "none"
        return None if fed and isinstance(task, Windows) else "windows of text, a feed-forward part in the last layer"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.task, Windows)
        assert isinstance(look.model, Transformer)
        network, batch = network_of(Model(look.model, look.w)), look.unseen(IN_CONFLICT)
        cut = without_part("mlp", len(look.model.layers))
        whole, less = (probabilities(network, look.task, batch, watch) for watch in (None, cut))
        return {f"conflict.{name}": p for name, p in whole.items()} | {
            f"conflict.cut.{name}": p for name, p in less.items()
        }


def _repeated(tokens: Int[np.ndarray, "B T"]) -> Batch:
    """Targets of the first copy but the last, which nobody can know, and of the second one but its first."""
    period = tokens.shape[1] // 2
    t = np.broadcast_to(np.arange(tokens.shape[1] - 1), (len(tokens), tokens.shape[1] - 1))
    groups = {"first": t < period - 1, "second": t >= period, "seam": t == period - 1}
    return Batch(tokens[:, :-1], tokens[:, 1:], groups)


@lru_cache(maxsize=4)
def bigrams_of(corpus: str | Folder, N: int) -> Bigrams:
    """Those of the text that is trained on."""
    return Bigrams.of(encoded(corpus).train, N)


@lru_cache(maxsize=4)
def frequent(corpus: str | Folder, N: int) -> Int[np.ndarray, " n"]:
    """The tokens that the text has often enough to know them; all of a text that is too short for that."""
    often = np.flatnonzero(np.bincount(encoded(corpus).train, minlength=N) >= OFTEN)
    return often if len(often) > 1 else np.arange(N)


def kinds(task: Windows, batch: Batch) -> Batch:
    """The same windows, with positions by what their target is: common, copied, both, neither."""
    o, b = followed(batch.tokens), bigrams_of(task.corpus, task.N).likeliest[batch.tokens]
    copied, common = o == batch.targets, b == batch.targets
    groups = {"common": common & ~copied, "copied": copied & ~common, "both": copied & common}
    return Batch(batch.tokens, batch.targets, groups | {"neither": ~(copied | common)})


def probabilities(network: Network, task: Windows, batch: Batch, watch: Watch | None) -> Mapping[str, float]:
    """Mean probabilities of o_t and of b_t over the positions where both are there and differ."""
    o, b = followed(batch.tokens), bigrams_of(task.corpus, task.N).likeliest[batch.tokens]
    chosen, sums = (o != NONE) & (o != b), np.zeros(2)
    for part in np.array_split(np.arange(len(o)), max(1, len(o) // AT_ONCE)):
        p = network.stream(batch.tokens[part], watch).softmax(dim=-1)
        for i, which in enumerate((o, b)):
            sums[i] += _at(p, which[part], chosen[part])
    copied, bigram = (sums / max(1, chosen.sum())).tolist()
    return {"copied": copied, "bigram": bigram}


def _at(p: Tensor, which: Int[np.ndarray, "b T"], chosen: Bool[np.ndarray, "b T"]) -> float:
    ids = torch.from_numpy(np.maximum(which, 0)).to(p.device)
    found = p.gather(2, ids[:, :, None])[:, :, 0]
    return float(found[torch.from_numpy(chosen).to(p.device)].double().sum())

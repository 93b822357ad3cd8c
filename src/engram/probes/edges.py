"""Where attention goes, and what a head loses without the edges of an induction circuit: causal, not by eye."""

from inspect import signature
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from engram.models import Architecture, Head, Trace, Transformer, Weights
from engram.models.memories import two_layers
from engram.models.transformer import Blocked
from engram.probes.probe import END_SEQUENCES, InductionProbe, Look, Probe
from engram.tasks import Batch, Task
from engram.tasks.hops import found

SEQUENCES = 16  # unseen ones, for a probe that looks often
Edges = Bool[Tensor, "B T k"]


class Attention(Probe, name="probes.attention.Attention"):
    """Whether each layer looks where an induction head must look, on a few unseen sequences."""

    columns: ClassVar = ("attention.",)
    rhythm: ClassVar = "attention_every"

    def missing(self, task: Task, model: Architecture) -> str | None:
        asked = {"in_context", "first"}
        return None if two_layers(model) and asked <= set(task.groups) else "two layers of attention, and visits"

    def measure(self, look: Look) -> dict[str, float]:
        batch = look.unseen(SEQUENCES)
        return attention(look.forward(batch), batch)


class Masses(InductionProbe, name="probes.edges.Masses"):
    """Attention on the edges of the circuit, beside chance."""

    columns: ClassVar = ("mass.",)
    called: ClassVar = "masses"

    def measure(self, look: Look) -> dict[str, float]:
        batch = look.unseen(END_SEQUENCES)
        return masses(look.forward(batch), batch)


class PreviousMasses(InductionProbe, name="probes.edges.PreviousMasses"):
    """Attention of layer 1 on the position before, after triggers and elsewhere."""

    columns: ClassVar = ("mass.previous.",)
    called: ClassVar = "previous_masses"

    def measure(self, look: Look) -> dict[str, float]:
        batch = look.unseen(END_SEQUENCES)
        return previous_masses(look.forward(batch), batch)


class Effects(InductionProbe, name="probes.edges.Effects"):
    """What a head, or a layer, loses without the edges of the circuit."""

    columns: ClassVar = ("effect.",)
    called: ClassVar = "effects"

    def missing(self, task: Task, model: Architecture) -> str | None:
        blockable = "blocked" in signature(model.forward).parameters
        other = None if blockable else "a Transformer, or another model whose heads can be blocked edge by edge"
        return super().missing(task, model) or other

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.model, Transformer)
        return effects(look.model, look.w, look.unseen(END_SEQUENCES))


def previous_edges(tokens: Tensor) -> Edges:
    """t → t − 1."""
    T = tokens.shape[1]
    return torch.eye(T, dtype=torch.bool, device=tokens.device).roll(-1, 1).tril(-1).expand(len(tokens), T, T)


def successor_edges(tokens: Tensor) -> Edges:
    """t → s for every s ≤ t whose predecessor is the current token: where an induction head must look."""
    same = tokens[:, :, None] == tokens.roll(1, 1)[:, None, :]  # [t, s]: z_t = z_{s−1}
    same[:, :, 0] = False
    return same.tril()


def find_edges(letters: Int[np.ndarray, "B n"], j: int) -> Edges:
    """t → find^j(t), where it is defined, in sequences of one hop token and then these letters (engram.tasks.hops)."""
    at = found(letters, j)
    B, n = at.shape
    edges = torch.zeros(B, n + 1, n + 1, dtype=torch.bool)
    strings, places = np.nonzero(at >= 0)
    edges[strings, places + 1, at[strings, places] + 1] = True
    return edges


def attention(trace: Trace, batch: Batch) -> dict[str, float]:
    """Shares of positions at which the largest attention is where the circuit needs it.

    previous     layer 1, at successors of triggers: attends to the position before
    induction    layer 2, in context: attends to a successor of an earlier visit of the current token
    chain        layer 1 attends to the position before, at the positions that layer 2 attends to in context
    """
    top1, top2 = _top(trace.attention1), _top(trace.attention2)
    T = batch.tokens.shape[1]
    looks_back = top1 == np.arange(T) - 1
    in_context = batch.groups["in_context"]
    after_trigger = np.roll(in_context | batch.groups["first"], 1, axis=1)
    after_trigger[:, 0] = False
    before = np.take_along_axis(batch.tokens, np.maximum(top2 - 1, 0), axis=1)
    follows_same = (before == batch.tokens) & (top2 >= 1)
    return {
        "attention.previous": share(looks_back, after_trigger),
        "attention.induction": share(follows_same, in_context),
        "attention.chain": share(np.take_along_axis(looks_back, top2, axis=1), in_context),
    }


def _top(pattern: Tensor) -> Int[np.ndarray, "B T"]:
    return torch.argmax(pattern, dim=-1).cpu().numpy()


def share(hits: Bool[np.ndarray, "*n"], where: Bool[np.ndarray, "*n"]) -> float:
    """The share of hits among these positions; NaN if there are none."""
    return float(hits[where].mean()) if where.any() else float("nan")


def masses(trace: Trace, batch: Batch) -> dict[str, float]:
    """Attention on the edges of the circuit (mean over heads), and the same for uniform attention: chance.

    previous                layer 1 on t−1
    successors.triggers     layer 2 on successors of earlier visits, at triggers in context
    successors.others       the same at all other tokens seen before
    """
    tokens = torch.from_numpy(np.array(batch.tokens)).to(trace.x.device)
    back, after = previous_edges(tokens), successor_edges(tokens)
    asked = torch.from_numpy(batch.groups["in_context"]).to(trace.x.device)
    others = after.any(dim=2) & torch.from_numpy(batch.groups["global"]).to(trace.x.device)
    return (
        _mass("previous", trace.attention1, back, back.any(dim=2))
        | _mass("successors.triggers", trace.attention2, after, asked)
        | _mass("successors.others", trace.attention2, after, others)
    )


def previous_masses(trace: Trace, batch: Batch) -> dict[str, float]:
    """Attention of layer 1 on t−1 where t−1 is a trigger, and where it is not; with chance, as in `masses`."""
    back = previous_edges(torch.from_numpy(np.array(batch.tokens)).to(trace.x.device))
    trigger = torch.from_numpy(batch.groups["first"] | batch.groups["in_context"]).to(trace.x.device)
    after = (back & trigger[:, None, :]).any(dim=2)
    elsewhere = back.any(dim=2) & ~after
    return _mass("previous.after_triggers", trace.attention1, back, after) | _mass(
        "previous.elsewhere", trace.attention1, back, elsewhere
    )


def _mass(name: str, pattern: Float[Tensor, "B T k"], edges: Edges, asked: Bool[Tensor, "B T"]) -> dict[str, float]:
    found, chance = mass_at(pattern, edges, asked)
    return {f"mass.{name}": float(found.mean()), f"mass.{name}.chance": float(chance.mean())}


def mass_at(
    pattern: Float[Tensor, "B T k"], edges: Edges, asked: Bool[Tensor, "B T"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Attention on these edges at each position that is asked, and that of uniform attention."""
    count = torch.arange(1, edges.shape[1] + 1, device=edges.device)
    return (pattern * edges).sum(dim=2)[asked], (edges.sum(dim=2) / count)[asked]


@torch.no_grad()
def effects(model: Transformer, w: Weights, batch: Batch) -> dict[str, float]:
    """Loss in context that it costs (nats more) to block edges, or to remove a head.

    previous.L1H2      edges t → t−1 of head 2 of layer 1; previous.L1: of all heads of the layer at once
    successors.…       edges from t to successors of earlier visits of the current token
    removed.…          the head's columns of W_O set to zero

    Heads that stand in for each other cost little one by one: the whole layer shows what the edges are worth.
    """
    tokens = torch.from_numpy(np.array(batch.tokens))
    edges = {"previous": previous_edges(tokens), "successors": successor_edges(tokens)}
    whole = _loss(model, w, batch)
    found = {"effect.none": whole}
    for name, heads in _sets_of_heads(model).items():
        for kind, blocked in edges.items():
            found[f"effect.{kind}.{name}"] = _loss(model, w, batch, dict.fromkeys(heads, blocked)) - whole
    for i, h in model.heads():
        found[f"effect.removed.L{i}H{h}"] = _loss(model, model.without(w, (i, h)), batch) - whole
    return found


def _sets_of_heads(model: Transformer) -> dict[str, list[Head]]:
    """Each head alone, and all heads of a layer together."""
    alone = {f"L{i}H{h}": [(i, h)] for i, h in model.heads()}
    together = {f"L{layer}": [head for head in model.heads() if head[0] == layer] for layer, _ in model.heads()}
    return alone | together


def _loss(model: Transformer, w: Weights, batch: Batch, blocked: dict[Head, Edges] | None = None) -> float:
    """Mean loss in context, a few sequences at a time; NaN if there is no such position."""
    total, device = 0.0, w["E"].device
    for part in torch.arange(len(batch.tokens)).split(8):
        rows = part.numpy()  # NumPy takes a tensor that holds one index for a number and drops the axis
        read, targets = torch.from_numpy(batch.groups["in_context"][rows]), torch.from_numpy(batch.targets[rows])
        here: Blocked = {head: edges[part].to(device) for head, edges in (blocked or {}).items()}
        logits = model.forward(w, torch.from_numpy(batch.tokens[rows]).to(device), here).logits.cpu()
        total += float(torch.nn.functional.cross_entropy(logits[read], targets[read], reduction="sum"))
    asked = int(batch.groups["in_context"].sum())
    return total / asked if asked else float("nan")

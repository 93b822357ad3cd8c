"""The circuit of a model of facts: heads that look at parts of a prompt, and an MLP that answers.

attribution, worth, cut    as in engram.probes.circuit; the cut takes a head away from what the MLP reads
attention                  of EOS on the subject, on the relation, and on all else
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from engram.models import Weights
from engram.models.factual import Factual
from engram.probes.circuit import Circuit, CircuitEdge, CircuitPart, Read
from engram.tasks import Batch
from engram.tasks.book import Book

MLP = "W_F"


@dataclass(frozen=True)
class Looks:
    """Mean attention of a head on the subject and on the relation of a prompt; by chance it is `chance` on each."""

    subject: float
    relation: float
    chance: float


@torch.no_grad()
def fact_circuit(model: Factual, w: Weights, batch: Batch) -> Circuit:
    """Of unseen prompts, read at EOS."""
    read = Read(batch, batch.groups["answer"])
    heads = _written_by_heads(model, w, torch.from_numpy(batch.tokens))
    x = heads.sum(dim=1)

    def logits(without: Tensor, read_by_mlp: Tensor, mlp: bool = True) -> Tensor:
        """At every position the same, as the model says them."""
        y = without + (model.read(w, read_by_mlp) - read_by_mlp if mlp else 0)
        return (y @ w["U"].T)[:, None].expand(-1, batch.tokens.shape[1], -1)

    whole = logits(x, x)
    loss = read.loss(whole)
    parts, edges = list[CircuitPart](), list[CircuitEdge]()
    for h in range(model.heads):
        own, name = heads[:, h], f"L1H{h + 1}"
        worth = read.loss(logits(x - own, x - own)) - loss
        parts.append(CircuitPart(name, "head", 1, read.lead(logits(own, own, mlp=False)), worth, (1, h + 1)))
        if model.m:
            edges.append(CircuitEdge(name, MLP, None, read.loss(logits(x, x - own)) - loss))
    if model.m:
        lead = read.lead(whole) - read.lead(logits(x, x, mlp=False))
        parts.append(CircuitPart(MLP, "feed-forward", 1, lead, read.loss(logits(x, x, mlp=False)) - loss))
    return Circuit(tuple(parts), tuple(edges), loss, read.p_right(whole), read.positions)


def _written_by_heads(model: Factual, w: Weights, tokens: Tensor) -> Float[Tensor, "B H d"]:
    """W_O[:, h] of what head h reads."""
    read = model._attend(w, tokens)[1].unflatten(1, (model.heads, model.d_h))
    by_head = w["W_O"].unflatten(1, (model.heads, model.d_h))
    return torch.einsum("bhe,dhe->bhd", read, by_head)


@torch.no_grad()
def looks(model: Factual, w: Weights, book: Book, batch: Batch) -> Iterator[Looks]:
    """Where each head looks in a prompt."""
    tokens = torch.from_numpy(batch.tokens)
    attention = model.forward(w, tokens).attention
    subject, relation = tokens < book.S, (tokens >= book.S) & (tokens < book.S + book.R)
    for of_head in attention.unbind(1):
        mean = [float((of_head * mask).sum(dim=1).mean()) for mask in (subject, relation)]
        yield Looks(*mean, chance=float(subject.double().mean()))

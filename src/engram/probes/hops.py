"""Tasks with several hops: which layer carries which hop, and whether heads look where pointers point."""

from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from engram.models import Architecture, Transformer, Weights
from engram.models.transformer import silenced
from engram.probes.edges import mass_at, share
from engram.probes.probe import END_SEQUENCES, Look, Probe, tensor_of
from engram.tasks import Batch, Composition, Hops, Task
from engram.tasks.hops import found


class HopLayers(Probe, name="probes.hops.HopLayers"):
    """Accuracy at every number of hops, of the model and of the same without the attention of one layer."""

    columns: ClassVar = ("without.",)
    called: ClassVar = "hop_layers"

    def missing(self, task: Task, model: Architecture) -> str | None:
        suits = isinstance(task, Hops | Composition) and isinstance(model, Transformer)
        return None if suits else "a task with hops and a Transformer"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.model, Transformer)
        by_layer = accuracies(look.model, look.w, look.unseen(4 * END_SEQUENCES, asking_all(look.task)))
        return {f"without.{layer}.{hop}": value for layer, of in by_layer.items() for hop, value in of.items()}


class HopAlignment(Probe, name="probes.hops.HopAlignment"):
    """How much attention each head pays to find^j, in strings that ask for the most hops that are trained."""

    columns: ClassVar = ("alignment.",)
    called: ClassVar = "hop_alignment"

    def missing(self, task: Task, model: Architecture) -> str | None:
        suits = isinstance(task, Hops) and isinstance(model, Transformer)
        return None if suits else "the task Hops and a Transformer"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.model, Transformer)
        assert isinstance(look.task, Hops)
        hardest = look.task.model_copy(update={"hops": (max(look.task.asked),)})
        masses = alignments(look.model, look.w, look.unseen(END_SEQUENCES, hardest))
        return {f"alignment.{name}": value for name, value in masses.items()}


def asking_all(task: Any) -> Any:
    """The same task, asked for every number of hops that has a token."""
    hops = tuple(int(group.removeprefix("hop")) for group in task.groups if group.startswith("hop"))
    return task.model_copy(update={"hops": hops})


@torch.no_grad()
def accuracies(model: Architecture, w: Weights, batch: Batch) -> dict[str, dict[str, float]]:
    """By what is taken away (none, L1, L2, …), the share of right answers at every number of hops in the batch."""
    assert isinstance(model, Transformer)
    taken = {f"L{i}": [head for head in model.heads() if head[0] == i] for i in range(1, len(model.layers) + 1)}
    tokens, hops = tensor_of(batch.tokens, w), [name for name, mask in batch.groups.items() if mask.any()]
    answers = {}
    for name, heads in {"none": [], **taken}.items():
        guess = model.forward(silenced(model, w, heads), tokens).logits.argmax(dim=-1).cpu().numpy()
        right = guess == batch.targets
        answers[name] = {hop: share(right, batch.groups[hop]) for hop in hops if hop.startswith("hop")}
    return answers


@torch.no_grad()
def alignments(model: Architecture, w: Weights, batch: Batch) -> dict[str, float]:
    """L1H2.find3: attention of head 2 of layer 1 on find³, where it is defined; chance.find3: of uniform attention.

    Strings begin behind the hop token.
    """
    assert isinstance(model, Transformer)
    trace, letters = model.forward(w, tensor_of(batch.tokens, w)), batch.tokens[:, 1:]
    masses: dict[str, float] = {}
    for j in range(1, int(batch.tokens[:, 0].max()) + 1):
        edges, defined = _edges(found(letters, j))
        for i, h in model.heads():
            mass, chance = mass_at(trace.attention[i - 1][:, h - 1], edges.to(trace.x.device), defined)
            masses |= {f"L{i}H{h}.find{j}": float(mass.mean()), f"chance.find{j}": float(chance.mean())}
    return masses


def _edges(at: Int[np.ndarray, "B n"]) -> tuple[Bool[Tensor, "B T T"], Bool[Tensor, "B T"]]:
    """The edge from every position to where it points, both counted behind the hop token; where there is one."""
    B, n = at.shape
    edges = torch.zeros(B, n + 1, n + 1, dtype=torch.bool)
    rows, places = np.nonzero(at >= 0)
    edges[rows, places + 1, at[rows, places] + 1] = True
    return edges, edges.any(dim=2)

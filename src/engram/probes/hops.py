"""Tasks with several hops: which layer carries which hop, and whether heads look where pointers point.

All of it is asked of a Network, so that models of ours and models that others have trained give the same numbers.
"""

from typing import Any, ClassVar

import numpy as np
import torch

from engram.models import Architecture, Model, Network, Transformer, network_of
from engram.probes.causal import alignments, keep, patched, uniform_alignment, without_part
from engram.probes.edges import find_edges, share
from engram.probes.probe import END_SEQUENCES, Look, Probe
from engram.tasks import Batch, Composition, Hops, Task
from engram.theory.hops import most_hops


class HopLayers(Probe, name="probes.hops.HopLayers"):
    """Accuracy at every number of hops, of the model and of the same without the attention of one layer."""

    columns: ClassVar = ("without.",)
    called: ClassVar = "hop_layers"

    def missing(self, task: Task, model: Architecture) -> str | None:
        return _missing(task, model)

    def measure(self, look: Look) -> dict[str, float]:
        by_layer = accuracies(_network(look), look.unseen(4 * END_SEQUENCES, asking_all(look.task)))
        return {f"without.{layer}.{hop}": value for layer, of in by_layer.items() for hop, value in of.items()}


class HopPatches(Probe, name="probes.hops.HopPatches"):
    """From which layer on the last position carries the answer: the stream there is that of another sequence."""

    columns: ClassVar = ("patched.",)
    called: ClassVar = "hop_patches"

    def missing(self, task: Task, model: Architecture) -> str | None:
        return _missing(task, model)

    def measure(self, look: Look) -> dict[str, float]:
        network, found = _network(look), dict[str, float]()
        for hops in asking_all(look.task).hops:
            batch = look.unseen(4 * END_SEQUENCES, asking(look.task, hops))
            found |= {f"patched.L{i}.hop{hops}": value for i, value in carried(network, batch, hops).items()}
        return found


class HopAlignment(Probe, name="probes.hops.HopAlignment"):
    """The alignment of every head with find^j, in strings that ask for the most hops that L layers double to."""

    columns: ClassVar = ("alignment.",)
    called: ClassVar = "hop_alignment"

    def missing(self, task: Task, model: Architecture) -> str | None:
        suits = isinstance(task, Hops) and isinstance(model, Transformer)
        return None if suits else "the task Hops and a Transformer"

    def measure(self, look: Look) -> dict[str, float]:
        assert isinstance(look.task, Hops)
        network, hardest = _network(look), max(look.task.asked)
        hops = min(hardest, most_hops(network.sizes.L))
        found = pointers(network, look.unseen(END_SEQUENCES, asking(look.task, hops)), hardest)
        return {f"alignment.{name}": value for name, value in found.items()}


def _missing(task: Task, model: Architecture) -> str | None:
    suits = isinstance(task, Hops | Composition) and isinstance(model, Transformer)
    return None if suits else "a task with hops and a Transformer"


def _network(look: Look) -> Network:
    return network_of(Model(look.model, look.w))


def asking(task: Any, *hops: int) -> Any:
    """The same task, asked for these numbers of hops."""
    return task.model_copy(update={"hops": hops})


def asking_all(task: Any) -> Any:
    """The same task, asked for every number of hops that has a token."""
    return asking(task, *(int(group.removeprefix("hop")) for group in task.groups if group.startswith("hop")))


@torch.no_grad()
def accuracies(network: Network, batch: Batch) -> dict[str, dict[str, float]]:
    """By what is taken away (none, L1, L2, …), the share of right answers at every number of hops in the batch."""
    taken = {"none": None} | {f"L{i}": without_part("head", i) for i in range(1, network.sizes.L + 1)}
    hops = [name for name, mask in batch.groups.items() if name.startswith("hop") and mask.any()]
    answers = {}
    for name, watch in taken.items():
        right = network.stream(batch.tokens, watch).argmax(dim=-1).cpu().numpy() == batch.targets
        answers[name] = {hop: share(right, batch.groups[hop]) for hop in hops}
    return answers


@torch.no_grad()
def carried(network: Network, batch: Batch, hops: int) -> dict[int, float]:
    """By layer i, how often the stream that enters it carries the answer at the last position.

    The stream there comes from one sequence, everything else from another with another answer: the share of such pairs
    in which the answer is that of the first. The batch, of an even size, asks for `hops` everywhere; its first
    half is put into its second.
    """
    (here, there), (one, other), (asked, also) = (
        np.split(of, 2) for of in (batch.tokens, batch.targets[:, -1], batch.groups[f"hop{hops}"][:, -1])
    )
    told_apart, last, found = asked & also & (one != other), [batch.tokens.shape[1] - 1], dict[int, float]()
    for i in range(1, network.sizes.L + 1):
        watch = patched(keep(network, here, [("resid", i)]), positions=last)
        guess = network.stream(there, watch, read="last").argmax(dim=-1)[:, -1].cpu().numpy()
        found[i] = share(guess == one, told_apart)
    return found


@torch.no_grad()
def pointers(network: Network, batch: Batch, most: int) -> dict[str, float]:
    """L1H2.find3: the alignment of head 2 of layer 1 with find³; chance.find3: that of uniform attention."""
    edges = {f"find{j}": find_edges(batch.tokens[:, 1:], j) for j in range(1, most + 1)}
    found = {f"chance.{name}": float(uniform_alignment(which).nanmean()) for name, which in edges.items()}
    for (layer, head), by_name in alignments(network, np.array(batch.tokens), edges).items():
        found |= {f"L{layer}H{head}.{name}": float(values.nanmean()) for name, values in by_name.items()}
    return found

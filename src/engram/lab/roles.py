"""What probes confirm of each head: where it looks on unseen sequences of the task. A head has no role by its place."""

from typing import Any

import torch

from engram.models import Model, Trace
from engram.models.memories import heads_of
from engram.probes.edges import mass_at, previous_edges, successor_edges
from engram.specs import Train

SEQUENCES = 4  # unseen ones
CONFIRMED = 0.5  # of its attention, and so much more than chance:
ABOVE_CHANCE = 0.25
ROLES = {"previous-token head": previous_edges, "induction head": successor_edges}


@torch.no_grad()
def roles(spec: Train, model: Model) -> list[dict[str, Any]]:
    """For each head the role that is confirmed, with the share of its attention that goes there; or none."""
    if not heads_of(spec.model):
        return []
    tokens = torch.from_numpy(spec.task.sample(spec.seed, 2**41, SEQUENCES).tokens)
    trace = model(tokens)
    return [{"layer": i, "head": h} | _role(trace, i, h, tokens) for i, h in heads_of(spec.model)]


def _role(trace: Any, layer: int, head: int, tokens: torch.Tensor) -> dict[str, Any]:
    none = {"role": None, "share": None}
    if not isinstance(trace, Trace):
        return none
    pattern, found = trace.attention[layer - 1][:, head - 1], dict[str, float]()
    for role, edges_of in ROLES.items():
        edges = edges_of(tokens)
        if not edges.any():
            continue
        mass, chance = (float(x.mean()) for x in mass_at(pattern, edges, edges.any(dim=2)))
        if mass >= CONFIRMED and mass - chance >= ABOVE_CHANCE:
            found[role] = mass
    best = max(found, key=found.__getitem__, default=None)
    return none if best is None else {"role": best, "share": round(found[best], 3)}

r"""Rank-one changes of feed-forward matrices, as differences that can be stacked, applied and undone.

    W_F ← W_F + u vᵀ

The weights of the network that is edited are never written to: an edit that is taken off a stack leaves what the others
make of the original bytes.
"""

import hashlib
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from engram.errors import EngramError
from engram.models import Network


@dataclass(frozen=True, eq=False)
class Edit:
    """W_F of a layer changed by u vᵀ, so that a network answers a prompt with another token.

    model     the SHA-256 of the model for which it was made (`fingerprint`)
    was       what it answered before
    how       write: the outer product of engram.probes.write; rome: a value that was optimised (engram.probes.rome)
    """

    layer: int
    u: Float[Tensor, " d"]
    v: Float[Tensor, " m"]
    model: str
    prompt: str = ""
    was: str = ""
    answer: str = ""
    how: str = "write"
    note: dict[str, str] = field(default_factory=dict)

    @property
    def matrix(self) -> str:
        return f"W_F{self.layer}"

    @property
    def norm(self) -> float:
        """The Frobenius norm of the change, ‖u‖ ‖v‖."""
        return float(self.u.norm() * self.v.norm())

    def of(self, W: Float[Tensor, "d m"]) -> Float[Tensor, "d m"]:
        return W + torch.outer(self.u.to(W), self.v.to(W))

    def scaled(self, by: float) -> "Edit":
        return replace(self, u=by * self.u)


@dataclass(frozen=True)
class Edits:
    """A network and edits of it, in their order; `network` has them all."""

    base: Network
    stack: tuple[Edit, ...] = ()

    @property
    def network(self) -> Network:
        W, new = self.base.matrices(), dict[str, Tensor]()
        for edit in self.stack:
            new[edit.matrix] = edit.of(new.get(edit.matrix, W[edit.matrix]))
        return self.base.replaced(**new) if new else self.base

    def plus(self, *edits: Edit) -> "Edits":
        """With more of them; one that was made for another model, or does not fit, is refused."""
        for edit in edits:
            _refuse(self.base, edit)
        return replace(self, stack=(*self.stack, *edits))

    def minus(self, edit: Edit) -> "Edits":
        """Without one of them: the others on the original weights."""
        if not any(one is edit for one in self.stack):
            raise EngramError("minus: this edit is not one of the stack")
        return replace(self, stack=tuple(one for one in self.stack if one is not edit))


def _refuse(network: Network, edit: Edit) -> None:
    here = fingerprint(network)
    if edit.model != here:
        raise EngramError(
            f"this edit was made for the model with SHA-256 {edit.model[:12]}…, and {network.provenance.name} has "
            f"{here[:12]}…; open the model for which it was made, or make the edit anew"
        )
    W = network.matrices().get(edit.matrix)
    if W is None or W.shape != (len(edit.u), len(edit.v)):
        has = "has none" if W is None else f"is {W.shape[0]}×{W.shape[1]}"
        raise EngramError(f"this edit changes {edit.matrix} of {len(edit.u)}×{len(edit.v)}; that of the model {has}")


def fingerprint(network: Network) -> str:
    """The SHA-256 of the file of weights, or of the weights themselves where they come from no file."""
    if network.provenance.sha256:
        return network.provenance.sha256
    digest = hashlib.sha256()
    for name, W in sorted(network.matrices().items()):
        digest.update(name.encode() + W.detach().cpu().double().contiguous().numpy().tobytes())
    return digest.hexdigest()

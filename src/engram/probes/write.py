r"""A fact rewritten by one outer product, without a gradient.

    W_F ← W_F + β d k̃ᵀ,    k̃ = C⁻¹k/(kᵀC⁻¹k),    d = (u_new − u_old)/‖u_new − u_old‖

k     the key: the units of the layer at the last token of the prompt. k̃·k = 1, so what W_F makes of k moves by β d
C     the second moment of keys over text. Of all changes that move W_F k by β d this one moves what W_F makes of other
      keys least, in the mean square over text; with C = 1 it is the smallest in norm
u     rows of U: the new answer, and the one that the model gives
β     a share of ‖x‖, x the stream that leaves the layer at that token: 0.2 moves it by a fifth of its length
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.models import Network
from engram.models.network import Part
from engram.probes.edits import Edit, fingerprint
from engram.probes.prompts import Entering, Prompts, entering

SIZE = 0.2
ROWS_AT_ONCE = 8  # of text
RIDGE = 1e-3  # of the mean of the diagonal: C of few tokens has no inverse
MOST = 64.0  # times ‖x‖: beyond it a step is given up
CLOSE = 0.01  # the smallest size that flips is found within a hundredth


@dataclass(frozen=True)
class At:
    """A layer at one token of a prompt: its key k, and the stream x that leaves it there."""

    k: Float[Tensor, " m"]
    x: Float[Tensor, " d"]


@torch.no_grad()
def at(network: Network, here: Entering, place: int) -> At:
    """The layer that a single prompt enters, at this place of it."""
    units = list[Tensor]()

    def look(part: Part, layer: int, tensor: Tensor) -> None:
        if part == "units":
            units.append(tensor)

    x = network.stream(start=here.layer, x=here.x, stop=here.layer, watch=look, read="none")
    if not units:
        raise EngramError(f"layer: layer {here.layer} has no feed-forward part to write to; take another")
    return At(units[0][0, place], x[0, place])


@torch.no_grad()
def second_moment(network: Network, tokens: Int[Tensor, "B T"], layer: int) -> Float[Tensor, "m m"]:
    """C + 10⁻³ (mean of its diagonal) 1 in float64, over all tokens but the first of each row, which is a sink."""
    total: Tensor | None = None
    for rows in tokens.split(ROWS_AT_ONCE):
        total = _with_products(total, _keys(network, rows, layer))
    assert total is not None  # tokens have at least one row
    C = total.div_(len(tokens) * (tokens.shape[1] - 1))
    C.diagonal().add_(RIDGE * C.diagonal().mean())
    return C


def _with_products(total: Tensor | None, k: Float[Tensor, "n m"]) -> Float[Tensor, "m m"]:
    """Σ k kᵀ added in place: keys that outlive their rows leave holes in memory, half as large as a model."""
    return k.T @ k if total is None else total.addmm_(k.T, k)


def _keys(network: Network, rows: Int[Tensor, "b T"], layer: int) -> Float[Tensor, "n m"]:
    """What W_F of the layer reads, in float64."""
    keys = list[Tensor]()

    def look(part: Part, at: int, tensor: Tensor) -> None:
        if (part, at) == ("units", layer):
            keys.append(tensor[:, 1:].flatten(0, 1).double())

    network.stream(rows, look, stop=layer, read="none")
    if not keys:
        raise EngramError(f"layer: layer {layer} has no feed-forward part to write to; take another")
    return keys[0]


def key_direction(k: Float[Tensor, " m"], C: Float[Tensor, "m m"]) -> Float[Tensor, " m"]:
    """k̃ = C⁻¹k/(kᵀC⁻¹k), in float64."""
    along = torch.linalg.solve(C, k.to(C))
    return along / (k.to(C) @ along)


def readout(network: Network) -> Float[Tensor, "N d"]:
    """U; a network without one reads the stream's own coordinates."""
    W = network.matrices()
    return W["U"] if "U" in W else torch.eye(network.sizes.d).to(W["E"])


@torch.no_grad()
def write(
    network: Network,
    tokens: Sequence[int],
    new: int,
    layer: int,
    C: Float[Tensor, "m m"],
    size: float | None = SIZE,
    old: int | None = None,
    here: Entering | None = None,
) -> Edit:
    """The edit that makes `new` the answer of a prompt; with size=None the smallest that does, within a hundredth.

    old     the answer that it takes the place of: the likeliest token unless another is given
    here    what enters the layer for this prompt, if it is known
    """
    here = here or entering(network, Prompts.of([tokens]), layer)
    old = int(here.logits(network)[0].argmax()) if old is None else old
    if old == new:
        raise EngramError("answer: the model gives this answer already; nothing is to be edited")
    place, U = int(here.last[0]), readout(network)
    found = at(network, here, place)
    d = (U[new] - U[old]).double()
    u, v = d / d.norm() * found.x.double().norm(), key_direction(found.k, C)
    one = Edit(layer, u.to(found.x), v.to(found.x), fingerprint(network))
    return one.scaled(least_size(network, here, one, new) if size is None else size)


def least_size(network: Network, here: Entering, one: Edit, new: int) -> float:
    """The smallest multiple of an edit after which the prompt is answered by `new`."""

    def flips(size: float) -> bool:
        W = network.matrices()[one.matrix]
        edited = network.replaced(**{one.matrix: one.scaled(size).of(W)})
        return int(here.logits(edited)[0].argmax()) == new

    low, high = 0.0, SIZE
    while not flips(high):
        low, high = high, 2 * high
        if high > MOST:
            raise EngramError(f"size: no step up to {MOST:g} ‖x‖ makes the new answer the likeliest; try a later layer")
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if flips(middle) else (middle, high)
    return high

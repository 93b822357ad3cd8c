r"""Whether a head writes the token that it looks at: the memory W_O2 of "Birth of a Transformer".

    S_kj = u_k · n'(W_O W_V n(x_j))                    score of output k when the head looks at token j alone
    recall = share of tokens j with argmax_k (S_kj − mean_i S_ki) = j      k: all N tokens, i: those asked; chance 1/N

x is the raw embedding, or the effective one (engram.probes.composition). Of all tokens at once, without lengths,

    copying matrix   C = U A' W_O W_V A Eᵀ (N×N), A the linear part of the norm before the head, A' of that before U
    eigenvalues      those of W_V A (EᵀU) A' W_O (d_h×d_h), and zeros: C is never made
    copying score    Σ Re λ / Σ |λ|, between −1 and 1; 1 if every direction is copied, 0 for random weights
"""

from functools import cache

import numpy as np
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.models import Head, Network
from engram.models.network import Reader
from engram.probes.composition import AT_ONCE, Embedded, written


def refuse_trunk(network: Network) -> None:
    """A trunk without an output matrix has no logits of tokens."""
    if "U" not in network.matrices():
        raise EngramError(f"{network.provenance.name}: it has no output matrix U, so that it says nothing about tokens")


@torch.no_grad()
def copying_recall(network: Network, head: Head, x: Embedded, tokens: Int[np.ndarray, " n"]) -> float:
    """The share of these tokens that a head writes when it looks at them; a few rows of logits at a time."""
    refuse_trunk(network)
    said = network.normed("logits", network.sizes.L, written(network, head, x))
    said = said - said.mean(dim=0)  # what is said of every token, taken away before U instead of behind it
    top = torch.cat([(part @ network.matrices()["U"].T).argmax(dim=1) for part in said.split(AT_ONCE)])
    return float((top.cpu().numpy() == np.asarray(tokens)).mean())


def linear_part(network: Network, part: Reader, layer: int) -> Float[Tensor, "d d"]:
    """A norm is a length, a linear map and a shift: the map, up to a positive factor.

    All unit vectors have the same length before it, so that it is what they become, less what zero becomes.
    """
    E = network.matrices()["E"]
    eye = torch.eye(network.sizes.d, dtype=E.dtype, device=E.device)
    return (network.normed(part, layer, eye) - network.normed(part, layer, torch.zeros_like(eye[:1]))).T


@torch.no_grad()
def copying_scores(network: Network) -> dict[Head, float]:
    """The copying score of every head, over all tokens."""
    refuse_trunk(network)
    matrices = network.matrices()
    read = matrices["E"].T @ matrices["U"] @ linear_part(network, "logits", network.sizes.L)  # d×d
    seen = cache(lambda layer: linear_part(network, "head", layer) @ read)
    return {head: score(copying_eigenvalues(network, head, seen(head[0]))) for head in network.heads()}


def copying_eigenvalues(network: Network, head: Head, read: Float[Tensor, "d d"]) -> Complex[Tensor, " d_h"]:
    """Those of W_V (A EᵀU A') W_O, which `read` is the middle of."""
    ov = network.ov(head)
    return torch.linalg.eigvals((ov.value.W @ read @ ov.output.W).double())


def score(eigenvalues: Complex[Tensor, " n"]) -> float:
    size = float(eigenvalues.abs().sum())
    return float(eigenvalues.real.sum()) / size if size > 0 else 0.0

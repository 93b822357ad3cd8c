r"""Truncation: a matrix without its smallest singular values.

    W = Σ_i σ_i l_i r_iᵀ,  σ_1 ≥ σ_2 ≥ …        W_r = Σ_{i ≤ r} σ_i l_i r_iᵀ        ‖W − W_r‖_F² = Σ_{i > r} σ_i²

W_r is the nearest matrix of rank r. A share ρ of the singular values keeps r = ⌊ρ · min(shape)⌋ of them: ρ = 0 removes
the matrix, ρ = 1 is the matrix itself, bit for bit. Sharma, Ash and Misra (2024, LASER), with an exact decomposition.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from math import floor

import torch
from jaxtyping import Float
from torch import Tensor, nn

from engram.errors import EngramError
from engram.memory.check import check_whole_number, is_real, shown

CLOSE = 1e-9  # a product this little below a whole number is that number: 0.29 · 100 gives 28.999999999999996


def rank_of_share(share: float, shape: Sequence[int]) -> int:
    """⌊ρ · min(shape)⌋, the number of singular values that a share ρ of them keeps; the product is rounded to 1e-9.

    >>> [rank_of_share(share, (1024, 256)) for share in (0, 0.1, 0.2, 1)]
    [0, 25, 51, 256]
    """
    if not (is_real(share) and 0 <= share <= 1):
        raise EngramError(f"share: must be a number from 0 to 1; got {shown(share)}")
    return floor(share * min(shape) + CLOSE)


@dataclass(frozen=True)
class Factors:
    """W = left diag(values) right, decomposed once in float64; every truncation of W is then one product.

    >>> [round(x, 6) for x in Factors.of(torch.diag(torch.tensor([3.0, 2.0, 1.0]))).values.tolist()]
    [3.0, 2.0, 1.0]
    """

    W: Float[Tensor, "m n"]
    left: Float[Tensor, "m k"]
    values: Float[Tensor, " k"]
    right: Float[Tensor, "k n"]

    @classmethod
    def of(cls, W: Tensor) -> "Factors":
        if W.ndim != 2:
            raise EngramError(f"W: a matrix is needed; got a tensor of shape {tuple(W.shape)}")
        if not bool(W.isfinite().all()):
            raise EngramError("W: an entry is not finite, so it has no singular values; look at earlier weights")
        exact = W.detach().double()
        return cls(W.detach(), *torch.linalg.svd(exact, full_matrices=False))

    def keep(self, rank: int) -> Float[Tensor, "m n"]:
        """The nearest matrix of this rank, in the type of W; W itself from its full rank on."""
        check_whole_number("rank", rank, 0)
        return self.W if rank >= len(self.values) else self.product(rank)

    def keep_share(self, share: float) -> Float[Tensor, "m n"]:
        """The nearest matrix with this share of the singular values."""
        return self.keep(rank_of_share(share, self.W.shape))

    def product(self, rank: int) -> Float[Tensor, "m n"]:
        """Σ_{i ≤ rank} σ_i l_i r_iᵀ; at full rank it is W but for rounding."""
        return ((self.left[:, :rank] * self.values[:rank]) @ self.right[:rank]).to(self.W.dtype)

    def tail(self, rank: int) -> float:
        """√Σ_{i > rank} σ_i², the Frobenius distance of W from the nearest matrix of this rank."""
        return float(self.values[rank:].square().sum().sqrt())

    def products(self, x: Float[Tensor, "*b n"], ranks: Sequence[int]) -> Iterator[tuple[int, Float[Tensor, "*b m"]]]:
        """W_r x for increasing ranks r, each from the one before: all of them together cost about two products with W.

        The tensor is the same one each time, with more terms added to it: what is to stay must be copied.
        """
        along, written = x @ self.right.to(x).T, (self.left * self.values).to(x)  # r_i · x and σ_i l_i for all i, once
        answer, begun = x.new_zeros(*x.shape[:-1], len(written)), 0
        for rank in ranks:
            answer += along[..., begun:rank] @ written[:, begun:rank].T
            begun = rank
            yield rank, answer


def effective_rank(values: Float[Tensor, " k"]) -> float:
    """exp(−Σ p_i ln p_i), p_i = σ_i / Σσ (Roy and Vetterli, 2007): n if n values are equal and all others are 0.

    >>> round(effective_rank(torch.tensor([2.0, 2.0, 0.0])), 6)
    2.0
    """
    whole = float(values.double().sum())
    if whole == 0:
        return 0.0
    p = values.double() / whole
    return float(torch.special.entr(p).sum().exp())


def truncated_layer(layer: nn.Linear, share: float) -> nn.Linear:
    """A copy of a layer of torch, with its bias, that keeps this share of the singular values of its weights."""
    cut = deepcopy(layer)
    with torch.no_grad():
        cut.weight.copy_(Factors.of(layer.weight).keep_share(share))
    return cut


@contextmanager
def truncate_layer(layer: nn.Linear, share: float) -> Iterator[nn.Linear]:
    """Within the block the layer is truncated in place; after it, also on an error, it has its weights from before."""
    before = layer.weight.detach().clone()
    try:
        with torch.no_grad():
            layer.weight.copy_(Factors.of(before).keep_share(share))
        yield layer
    finally:
        with torch.no_grad():
            layer.weight.copy_(before)

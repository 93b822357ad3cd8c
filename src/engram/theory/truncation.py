"""The identities of truncation, ‖W − W_r‖_F² = Σ_{i > r} σ_i², (W_r)_r = W_r and W_ρ = W for ρ = 1, as measured."""

import torch
from jaxtyping import Float
from torch import Tensor

from engram.memory.truncation import Factors, rank_of_share
from engram.theory.margins import problems
from engram.values import Rows, law

SHARES = tuple(i / 10 for i in range(11))


@law("truncation.identity")
def identity(draws: int, seed: int, m: int = 64, n: int = 96) -> Rows:
    """Of each Gaussian m×n matrix the largest deviation over the shares 0, 0.1, …, 1, relative to ‖W‖_F.

    error    of the distance between W and its truncation from √Σ_{i > r} σ_i², σ computed without the factors
    again    of a truncation that is truncated once more
    whole    of W with ρ = 1
    """
    for draw, W in enumerate(problems("gaussian", draws, m, n, seed, "truncation")):
        factors, spectrum, size = Factors.of(W), torch.linalg.svdvals(W), float(W.norm())
        deviations = [_deviations(factors, spectrum, rank_of_share(share, W.shape)) for share in SHARES]
        error, again = (max(found) / size for found in zip(*deviations, strict=True))
        whole = float((factors.keep_share(1.0) - W).norm()) / size
        yield {"draw": draw, "error": error, "again": again, "whole": whole}


def _deviations(factors: Factors, spectrum: Float[Tensor, " k"], rank: int) -> tuple[float, float]:
    kept = factors.keep(rank)
    tail = float(spectrum[rank:].square().sum().sqrt())
    return abs(float((factors.W - kept).norm()) - tail), float((Factors.of(kept).keep(rank) - kept).norm())

r"""One pass over sequences that come twice: what every head looks at, and what the repeat is worth.

    z = bos r_1 … r_n r_1 … r_n        r uniform and all different; without bos where a vocabulary has none

    first     mean loss on r_2 … r_n of the first copy: nothing in the sequence helps
    repeat    the same on the second copy, where r_{i+1} followed r_i before
    gain      first − repeat: what the context is worth, in nats

Previous-token and induction scores are those of engram.probes.heads. No pattern outlives its layer, and logits are made
one sequence at a time: memory is that of one layer, B·H·T²·4 + T·N·8 bytes and a few times B·T·d.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.errors import EngramError
from engram.models import Head, Network
from engram.models.network import Part, Watch
from engram.probes.causal import chained
from engram.probes.heads import induction_score, previous_token_score
from engram.values import generator

PERIOD, BATCH = 50, 4
SHORTEST = 3  # a repeat in which something can be looked up, and something else be looked at


@dataclass(frozen=True)
class Repeats:
    """Sequences of `start` tokens, then `period` tokens, then the same again."""

    tokens: Int[np.ndarray, "B T"]
    period: int
    start: int


@dataclass(frozen=True)
class Passed:
    """What one pass over Repeats showed; losses are NaN in a model without an output matrix."""

    previous: dict[Head, float]
    induction: dict[Head, float]
    first: float
    repeat: float

    @property
    def gain(self) -> float:
        return self.first - self.repeat


def longest(network: Network, bos: int | None) -> int:
    """The longest period: two copies fit into the context, and its tokens are different."""
    return min((network.sizes.T - (bos is not None)) // 2, network.sizes.N - (bos is not None))


def repeats(
    network: Network, seed: int, bos: int | None, period: int = PERIOD, batch: int = BATCH, number: int = 0
) -> Repeats:
    """Fresh sequences for a network: the batch of this number, from 0, of a seed."""
    most = longest(network, bos)
    if not SHORTEST <= period <= most:
        raise EngramError(
            f"period: a sequence that comes twice has {SHORTEST} … {most} tokens in {network.provenance.name}, "
            f"whose context is {network.sizes.T}; got {period}"
        )
    draws = range(number * batch, (number + 1) * batch)
    some = fresh_tokens(network.sizes.N, period, seed, "probes.repeats", bos, draws)
    front = np.full((batch, int(bos is not None)), -1 if bos is None else bos)
    return Repeats(np.concatenate([front, some, some], axis=1), period, front.shape[1])


def fresh_tokens(
    N: int, n: int, seed: int, purpose: str, bos: int | None, draws: range = range(1)
) -> Int[np.ndarray, "draws n"]:
    """n different tokens, none of them bos, for each of these draws, which have their own random streams."""
    others = N - (bos is not None)
    found = np.stack([generator(seed, purpose, draw).choice(others, n, replace=False) for draw in draws])
    return found if bos is None else found + (found >= bos)


@torch.no_grad()
def passed(network: Network, given: Repeats, watch: Watch | None = None) -> Passed:
    """Scores of all heads and both losses, perhaps with something changed on the way."""
    previous, induction = dict[Head, float](), dict[Head, float]()

    def look(part: Part, layer: int, pattern: Tensor) -> None:
        if part == "pattern":
            _note(previous, layer, previous_token_score(pattern))
            _note(induction, layer, induction_score(pattern, given.period, given.start))

    x = network.stream(given.tokens, chained(*([watch] if watch else []), look), read="none")
    return Passed(previous, induction, *both_losses(network, given, x))


def _note(found: dict[Head, float], layer: int, scores: Float[Tensor, " H"]) -> None:
    found.update({(layer, h): value for h, value in enumerate(scores.tolist(), 1)})


def both_losses(network: Network, given: Repeats, x: Float[Tensor, "B T d"]) -> tuple[float, float]:
    """First and repeat, from the stream that leaves the last layer."""
    if "U" not in network.matrices():
        return float("nan"), float("nan")
    losses = torch.stack([_losses(network, one, tokens) for one, tokens in zip(x, given.tokens, strict=True)])
    n, s = given.period, given.start
    return float(losses[:, s : s + n - 1].mean()), float(losses[:, s + n : s + 2 * n - 1].mean())


def _losses(network: Network, x: Float[Tensor, "T d"], tokens: Int[np.ndarray, " T"]) -> Float[Tensor, " t"]:
    """The loss of every position but the last, whose next token is not there."""
    logits = network.stream(x=x[None, :-1], start=network.sizes.L + 1)[0]
    return cross_entropy(logits, torch.as_tensor(tokens[1:], device=x.device).long(), reduction="none")

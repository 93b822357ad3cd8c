r"""What a network of any family says with one matrix truncated: for every layer, matrix and share ρ.

    W_ρ keeps the ⌊ρ · min(shape)⌋ largest singular values of W        (engram.memory.truncation)

Exact and cheap: layers before the cut are computed once for all cuts, each matrix is decomposed once, cuts of a layer
go through the rest side by side, and cuts after which the same stream leaves the layer are one. (Without biases ρ = 0
of the up, gate and down matrix is the same thing: the layer has no feed-forward part.) Only the last position is read.

The best cut is chosen on some prompts and reported on the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.memory.truncation import Factors, rank_of_share
from engram.models import Network
from engram.probes.prompts import TOKENS_AT_ONCE, Entering, Prompts, entering, log_p

SHARES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
LETTERS = {"mlp": "GIF", "attention": "QKVO", "all": "QKVOGIF"}
CHOOSING = 5  # every fifth prompt chooses


@dataclass(frozen=True, order=True)
class Cut:
    """One matrix truncated."""

    layer: int
    matrix: str
    share: float
    rank: int


def cuts_of(network: Network, letters: str, shares: Sequence[float]) -> list[Cut]:
    """All cuts, layer by layer; a network has the matrices of these letters that it has."""
    W = network.matrices()
    names = [(i, name) for i in range(1, network.sizes.L + 1) for c in letters if (name := f"W_{c}{i}") in W]
    return [Cut(i, name, share, rank_of_share(share, W[name].shape)) for i, name in names for share in shares]


@torch.no_grad()
def sweep(
    network: Network,
    prompts: Prompts,
    wanted: Int[Tensor, "B n"],
    letters: str = LETTERS["mlp"],
    shares: Sequence[float] = SHARES,
) -> Iterator[tuple[Cut, Float[Tensor, "B n"]]]:
    """Every cut with the log-probabilities of some tokens behind each prompt, layer by layer."""
    cuts, here = cuts_of(network, letters, shares), entering(network, prompts)
    for layer in range(1, network.sizes.L + 1):
        own = [cut for cut in cuts if cut.layer == layer]
        ways, which = _leaving(network, here, own)
        found = [log_p(logits, wanted) for logits in _said(network, here, layer, ways)]
        yield from ((cut, found[way]) for cut, way in zip(own, which, strict=True))
        here = here.to(network, layer + 1)


def _leaving(network: Network, here: Entering, cuts: list[Cut]) -> tuple[list[Tensor], list[int]]:
    """The different streams that leave the layer, and for each cut which of them is its own."""
    W, ways, which, known = network.matrices(), list[Tensor](), list[int](), dict[tuple[str, int], int]()
    factors = {name: Factors.of(W[name]) for name in {cut.matrix for cut in cuts}}
    for cut in cuts:
        place = cut.matrix, cut.rank
        if place not in known:
            new = network.replaced(**{cut.matrix: factors[cut.matrix].keep(cut.rank)})
            x = here.to(new, cut.layer + 1).x
            same = [i for i, other in enumerate(ways) if torch.equal(x, other)]
            known[place] = same[0] if same else len(ways)
            ways += [] if same else [x]
        which.append(known[place])
    return ways, which


def _said(network: Network, here: Entering, layer: int, ways: list[Tensor]) -> Iterator[Float[Tensor, "B N"]]:
    """Logits of every way, several at a time side by side."""
    B, T, _ = here.x.shape
    at_once = max(1, TOKENS_AT_ONCE // (B * T))
    for first in range(0, len(ways), at_once):
        part = ways[first : first + at_once]
        beside = Entering(layer + 1, torch.cat(part), here.last.repeat(len(part)))
        yield from beside.logits(network).split(B)


@dataclass(frozen=True)
class Laser:
    """The best of all cuts, and every cut on the prompts that chose it.

    chosen_full               numbers of the whole model on the prompts that choose
    chosen_on, reported_on    which prompts chose the best cut, and on which the numbers `full` and `best` are
    """

    cuts: dict[Cut, dict[str, float]]
    chosen_full: dict[str, float]
    cut: Cut
    full: dict[str, float]
    best: dict[str, float]
    chosen_on: tuple[int, ...]
    reported_on: tuple[int, ...]

    def table(self) -> list[dict[str, float | str]]:
        """Every cut with its numbers on the prompts that choose."""
        return [vars(cut) | found for cut, found in self.cuts.items()]


def numbers(said: Float[Tensor, "B n"]) -> dict[str, float]:
    """Of log-probabilities of the answer and perhaps its rival, over prompts.

    lead     mean log p(answer)/p(rival), in nats        beats    how often the answer is the likelier one
    """
    found = {"p_answer": float(said[:, 0].exp().mean()), "log_p": float(said[:, 0].mean())}
    if said.shape[1] > 1:
        lead = said[:, 0] - said[:, 1]
        found |= {"p_rival": float(said[:, 1].exp().mean()), "lead": float(lead.mean())}
        found |= {"beats": float((lead > 0).double().mean())}
    return found


def split(n: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Prompts that choose, every fifth from the first on, and those on which the choice is reported."""
    if n < CHOOSING:
        raise EngramError(
            f"prompts: at least {CHOOSING} are needed, since every fifth chooses and the others report; got {n}"
        )
    choosing = tuple(range(0, n, CHOOSING))
    return choosing, tuple(i for i in range(n) if i not in choosing)


@torch.no_grad()
def laser(
    network: Network,
    sequences: Sequence[Sequence[int]],
    wanted: Int[Tensor, "B n"],
    letters: str = LETTERS["mlp"],
    shares: Sequence[float] = SHARES,
) -> Laser:
    """The cut with the largest mean log-probability of the answer where it is chosen; its numbers on other prompts.

    wanted    token ids of the answer of each prompt and, if there is one, of its rival
    """
    choosing, reporting = split(len(sequences))
    mine, theirs = (Prompts.of([sequences[i] for i in part]) for part in (choosing, reporting))
    found = {cut: numbers(said) for cut, said in sweep(network, mine, wanted[list(choosing)], letters, shares)}
    if not found:
        raise EngramError("laser: this network has no such matrices; ask for those of attention")
    cut = max(found, key=lambda one: found[one]["log_p"])
    here, asked = entering(network, theirs, cut.layer), wanted[list(reporting)]
    full, best = (numbers(log_p(here.logits(one), asked)) for one in (network, with_cut(network, cut)))
    whole = numbers(log_p(entering(network, mine).logits(network), wanted[list(choosing)]))
    return Laser(found, whole, cut, full, best, choosing, reporting)


def with_cut(network: Network, cut: Cut) -> Network:
    return network.replaced(**{cut.matrix: Factors.of(network.matrices()[cut.matrix]).keep(cut.rank)})

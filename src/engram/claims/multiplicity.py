"""Many claims at once: adjusted p-values, and how many verdicts to expect to be false."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engram.claims.claim import Claim

P = float | None  # None: nothing that varies with the seed decides


def claim_p(claim: Claim) -> P:
    """The p-value of a claim's verdict.

    It agrees only if all its measures do, so the largest counts (an intersection-union test). It disagrees if any
    does, so the smallest counts, times their number (Bonferroni). Exact laws and the worst of seeds have none; a
    disagreement that they decide has none either.
    """
    known = [measure.p for measure in claim.measures if measure.p is not None]
    if claim.verdict == "disagrees":
        against = [m.p for m in claim.measures if m.verdict == "disagrees"]
        return None if None in against else min(1.0, len(known) * min(p for p in against if p is not None))
    return max(known, default=None)


def holm(found: Sequence[P]) -> list[P]:
    """p-values adjusted for their number by Holm's step-down rule; where there is none there stays none.

    Of each claim only one verdict can be false, so that both may be asked for at no cost: verdicts whose adjusted value
    is below 0.05 are all right with a probability of at least 95 %. That is proven for independent claims (Shaffer
    1980); for claims on the same records it is known only of the smallest value, which is Bonferroni's.
    """
    known = sorted((p, i) for i, p in enumerate(found) if p is not None)
    adjusted: list[P] = [None] * len(found)
    largest = 0.0
    for rank, (p, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[i] = largest
    return adjusted


def adjusted(claims: Sequence[Claim]) -> list[P]:
    """Holm's adjusted p-value of each claim's verdict, among these claims."""
    return holm([claim_p(claim) for claim in claims])


@dataclass(frozen=True)
class FalseVerdicts:
    """How many of the decided verdicts to expect to be false, if bands were set before the numbers were seen.

    decided    verdicts that numbers with an interval decide
    expected   the sum over them of the probability that the number lies on the other side of the edge. With a flat
               prior the posterior probability of that is the one-sided p-value. A claim that agrees is false if any of
               its numbers lies outside, at most the sum of its p-values; one that disagrees only if those outside all
               lie inside, at most the least of them
    at_most    without a prior: Benjamini and Hochberg bound the expected share of false verdicts by the largest of the
               p-values that they adjusted; times their number. It is reached if all numbers lie at an edge

    Neither knows of bands, sizes or seeds that were chosen after a look, nor of errors that all seeds share.
    """

    decided: int
    expected: float
    at_most: float


def false_verdicts(claims: Sequence[Claim]) -> FalseVerdicts:
    from scipy.stats import false_discovery_control

    tested = [(claim, p) for claim in claims if (p := claim_p(claim)) is not None]
    decided = [claim.verdict != "inconclusive" for claim, _ in tested]
    if not any(decided):
        return FalseVerdicts(0, 0.0, 0.0)
    shares = np.asarray(false_discovery_control([p for _, p in tested]))
    risks = [risk(claim) for (claim, _), sure in zip(tested, decided, strict=True) if sure]
    return FalseVerdicts(sum(decided), sum(risks), float(shares[np.array(decided)].max() * sum(decided)))


def risk(claim: Claim) -> float:
    """At most the probability that the verdict is false."""
    wanted = [m.p for m in claim.measures if m.verdict == claim.verdict and m.p is not None]
    return min(1.0, sum(wanted) if claim.verdict == "agrees" else min(wanted))

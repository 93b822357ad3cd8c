"""All probes of heads on one network: scores over seeds, composition, copying, ablation, logit lens.

Heads are chosen by their mean induction score. Each part is a value with `to_json`; memory is that of its probe, and
what is kept is scores, never patterns. `Asked` says on what everything is measured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from engram.errors import EngramError
from engram.models import Head, Network
from engram.probes.ablation import random_heads, share_left, top_heads, without_writer, z_means
from engram.probes.causal import without_heads
from engram.probes.composition import Embedded, Partners, effective, key_recall, partners, raw
from engram.probes.lens import Said, lens, lens_losses
from engram.probes.ov_copying import copying_recall, copying_scores
from engram.probes.repeats import BATCH, PERIOD, SHORTEST, Passed, Repeats, fresh_tokens, longest, passed, repeats

Say = Callable[[str], None]
READERS, BEST, TOP, TOKENS, COPIED = 5, 5, 8, 512, 128


def name_of(head: Head) -> str:
    return f"L{head[0]}H{head[1]}"


def number(value: float) -> float | None:
    """As JSON has it: four digits, null for what is not a number."""
    return float(f"{value:.4g}") if isfinite(value) else None


@dataclass(frozen=True)
class Asked:
    """On what a network is probed: seeds of random tokens, twice `period` of them behind `start`, if it has one."""

    network: Network
    start: int | None
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.seeds:
            raise EngramError("seeds: at least one is needed; got none")
        if longest(self.network, self.start) < SHORTEST:
            where = f"{self.network.provenance.name}, whose context is {self.network.sizes.T}"
            raise EngramError(f"nothing comes twice in {where}: at least {2 * SHORTEST + 1} tokens are needed")

    @property
    def period(self) -> int:
        return min(PERIOD, longest(self.network, self.start))

    def repeats(self, seed: int, number: int = 0, batch: int = BATCH) -> Repeats:
        return repeats(self.network, seed, self.start, self.period, batch, number)

    @cached_property
    def tokens(self) -> np.ndarray:
        """Random tokens for what is read off the weights."""
        most = self.network.sizes.N - (self.start is not None)
        return fresh_tokens(self.network.sizes.N, min(TOKENS, most), self.seeds[0], "probes.survey", self.start)[0]


@dataclass(frozen=True)
class Scores:
    """Both scores of every head and both losses, a pass for each seed."""

    seeds: tuple[int, ...]
    passes: tuple[Passed, ...]

    def mean(self, kind: str) -> dict[Head, float]:
        return {head: float(np.mean(values)) for head, values in self.by_seed(kind).items()}

    def by_seed(self, kind: str) -> dict[Head, list[float]]:
        """previous or induction."""
        return {head: [getattr(one, kind)[head] for one in self.passes] for head in self.passes[0].previous}

    def to_json(self) -> list[dict[str, Any]]:
        found = {kind: self.by_seed(kind) for kind in ("previous", "induction")}
        return [
            {"head": name_of(head), "layer": head[0]}
            | {kind: number(float(np.mean(of[head]))) for kind, of in found.items()}
            | {f"{kind}_seeds": [number(v) for v in of[head]] for kind, of in found.items()}
            for head in self.passes[0].previous
        ]

    def losses(self) -> dict[str, Any]:
        return {name: [number(getattr(one, name)) for one in self.passes] for name in ("first", "repeat")}


def scores(asked: Asked) -> Scores:
    return Scores(asked.seeds, tuple(passed(asked.network, asked.repeats(seed)) for seed in asked.seeds))


@dataclass(frozen=True)
class Cut:
    """A head whose writing no later key sees: induction scores of the readers, and what is left of the gain."""

    writer: Head
    induction: Mapping[Head, float]
    left: float

    def to_json(self) -> dict[str, Any]:
        scores = {name_of(head): number(value) for head, value in self.induction.items()}
        return {"writer": name_of(self.writer), "induction": scores, "gain_left": number(self.left)}


@dataclass(frozen=True)
class Composition:
    """Whose writing the strongest induction heads find by their keys: in the weights, and by cutting that edge."""

    tokens: int
    partners: tuple[Partners, ...]
    raw: Mapping[tuple[Head, Head], float]  # recall on raw embeddings, by reader and writer, of the best partners
    cuts: tuple[Cut, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens,
            "readers": [self._reader(one) for one in self.partners],
            "keys_without": [cut.to_json() for cut in self.cuts],
        }

    def _reader(self, found: Partners) -> dict[str, Any]:
        best = [
            {"writer": name_of(writer), "recall": number(value), "recall_raw": number(self.raw[found.reader, writer])}
            for writer, value in found.recalls[:BEST]
        ]
        return {"reader": name_of(found.reader), "partners": best}


def readers_of(found: Scores) -> list[Head]:
    """The strongest induction heads that have a layer before them."""
    return top_heads({head: value for head, value in found.mean("induction").items() if head[0] > 1}, READERS)


def composition(asked: Asked, found: Scores, x: Embedded, plain: Embedded) -> Composition:
    """Partners of the strongest induction heads; cut are the best two, and the strongest other that looks back."""
    network, readers = asked.network, readers_of(found)
    of = tuple(partners(network, readers, x))
    pairs = [(one.reader, writer) for one in of for writer, _ in one.recalls[:BEST]]
    best = list(dict.fromkeys(one.best for one in of))[:2]
    others = {head: v for head, v in found.mean("previous").items() if head not in best and head[0] < network.sizes.L}
    given, whole = asked.repeats(asked.seeds[0]), found.passes[0]
    cuts = []
    for writer in [*best, *top_heads(others, 1)] if readers else []:
        cut = without_writer(network, writer, given)
        cuts.append(Cut(writer, {head: cut.induction[head] for head in readers}, share_left(cut, whole)))
    of_raw = {(reader, writer): key_recall(network, writer, reader, plain) for reader, writer in pairs}
    return Composition(len(asked.tokens), of, of_raw, tuple(cuts))


@dataclass(frozen=True)
class Copying:
    """Whether heads write the token that they look at: a score of all heads, and recall of those that matter."""

    tokens: int
    score: Mapping[Head, float]
    recall: Mapping[Head, tuple[float, float]]  # raw, effective

    def to_json(self) -> dict[str, Any]:
        recalls = [
            {"head": name_of(head), "raw": number(plain), "effective": number(embedded)}
            for head, (plain, embedded) in self.recall.items()
        ]
        return {
            "tokens": self.tokens,
            "scores": {name_of(head): number(value) for head, value in self.score.items()},
            "recall": recalls,
        }


def copying(asked: Asked, found: Scores, x: Embedded, plain: Embedded) -> Copying:
    """The score of all heads; recall of the strongest induction heads and of those that copy most."""
    score, n = copying_scores(asked.network), min(COPIED, len(asked.tokens))
    heads = dict.fromkeys([*top_heads(found.mean("induction"), TOP), *top_heads(score, READERS)])
    some = asked.tokens[:n]
    few, few_raw = ({layer: of[:n] for layer, of in embedded.items()} for embedded in (x, plain))
    recalls = {
        head: (copying_recall(asked.network, head, few_raw, some), copying_recall(asked.network, head, few, some))
        for head in heads
    }
    return Copying(n, score, recalls)


@dataclass(frozen=True)
class Ablation:
    """What is left of the gain, by seed, without the strongest induction heads and without random ones."""

    heads: tuple[tuple[Head, ...], ...]
    random: tuple[tuple[Head, ...], ...]
    left: tuple[float, ...]
    left_random: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "heads": [[name_of(head) for head in chosen] for chosen in self.heads],
            "gain_left": [number(value) for value in self.left],
            "random": [[name_of(head) for head in chosen] for chosen in self.random],
            "gain_left_random": [number(value) for value in self.left_random],
        }


def ablation(asked: Asked, found: Scores) -> Ablation:
    """Heads are chosen on the next seed's sequences, with a single seed on other ones of it."""
    rows = [_ablated(asked, found, i) for i in range(len(asked.seeds))]
    heads, random, left, left_random = zip(*rows, strict=True)
    return Ablation(heads, random, left, left_random)


def _ablated(asked: Asked, found: Scores, i: int) -> tuple[tuple[Head, ...], tuple[Head, ...], float, float]:
    network, alone = asked.network, len(asked.seeds) == 1
    other = asked.repeats(asked.seeds[(i + 1) % len(asked.seeds)], number=int(alone))
    choice = passed(network, other) if alone else found.passes[(i + 1) % len(asked.seeds)]
    count = sum(1 for _ in network.heads())
    chosen = top_heads(choice.induction, min(TOP, max(1, count // 4)))
    others = random_heads(network, chosen, asked.seeds[i])
    mean, given = z_means(network, [*chosen, *others], other), asked.repeats(asked.seeds[i])
    left = [
        share_left(passed(network, given, without_heads(heads, mean)), found.passes[i]) if heads else float("nan")
        for heads in (chosen, others)
    ]
    return tuple(chosen), tuple(others), left[0], left[1]


@dataclass(frozen=True)
class Lens:
    """What would be said if the network ended after each layer: of a text, and of a sequence that comes twice."""

    said: tuple[Said, ...]
    losses: tuple[tuple[float, float], ...]

    def to_json(self, pieces: Callable[[Sequence[int]], list[str]]) -> list[dict[str, Any]]:
        return [
            {"layer": one.layer, "tokens": pieces(one.tokens), "p": [number(p) for p in one.probabilities]}
            | {"first": number(first), "repeat": number(repeat)}
            for one, (first, repeat) in zip(self.said, self.losses, strict=True)
        ]


def through_lens(asked: Asked, tokens: Sequence[int]) -> Lens:
    """Of these tokens, and of one sequence that comes twice."""
    given = asked.repeats(asked.seeds[0], batch=1)
    return Lens(tuple(lens(asked.network, [list(tokens)])), tuple(lens_losses(asked.network, given)))


def embedded(asked: Asked, last: int) -> tuple[Embedded, Embedded]:
    """Effective and raw embeddings of the random tokens, for all layers up to one: L·n·d numbers."""
    layers = range(1, last + 1)
    return effective(asked.network, asked.tokens, asked.start, layers), raw(asked.network, asked.tokens)

"""What the panels of a model show, from its probes: scores, composition, truncation, attention, predictions.

Every function takes a Subject, which is a model as it is now, with its edits; numbers are those of `engram.probe`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engram.errors import EngramError
from engram.lab.model_messages import Truncate
from engram.memory.truncation import Factors, rank_of_share
from engram.models import Head, Network
from engram.models.network import Part
from engram.probes import survey
from engram.probes.causal import chained, without_heads
from engram.probes.prompts import Prompts, entering, log_p, text_loss
from engram.probes.survey import Asked, Scores
from engram.probes.words import Speaker
from engram.probing import Subject

SEEDS = (0, 1, 2)
LIKELIEST = 5
LONGEST = 256  # tokens of a sequence whose attention is drawn
LETTERS = "QKVOGIF"
FactorsOf = Callable[[str, Tensor], Factors]
RowsOf = Callable[[], Tensor | None]  # of text, where there is any


@dataclass(frozen=True)
class Numbers:
    """In the place of a tokenizer: tokens are numbers with blanks between them."""

    N: int
    bos: int | None = None

    def encode(self, text: str) -> list[int]:
        words = text.replace(",", " ").split()
        if not all(word.isdecimal() and len(word) < 12 and int(word) < self.N for word in words):
            raise EngramError(f"text: this model has no tokenizer: type token numbers from 0 to {self.N - 1}")
        return [int(word) for word in words]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids))


def asked_of(subject: Subject) -> Asked:
    return Asked(subject.network, subject.start, SEEDS)


def speaker_of(subject: Subject) -> Speaker:
    return Speaker(subject.network, subject.words or Numbers(subject.network.sizes.N))


@torch.no_grad()
def composed(subject: Subject, scores: Scores) -> dict[str, Any]:
    """As `engram probe MODEL composition` tells it."""
    asked = asked_of(subject)
    deepest = max([1, *(layer for layer, _ in survey.readers_of(scores))])
    return survey.composition(asked, scores, *survey.embedded(asked, deepest)).to_json()


@torch.no_grad()
def copied(subject: Subject, scores: Scores) -> dict[str, Any]:
    """As `engram probe MODEL copying` tells it."""
    asked = asked_of(subject)
    return survey.copying(asked, scores, *survey.embedded(asked, subject.network.sizes.L)).to_json()


def encoded(subject: Subject, text: str) -> list[int]:
    """A text that was typed, behind the start token; without a tokenizer its words are token numbers."""
    front = [] if subject.start is None else [subject.start]
    words = subject.words or Numbers(subject.network.sizes.N)
    return checked(subject, front + words.encode(text))


def checked(subject: Subject, tokens: Sequence[int]) -> list[int]:
    sizes = subject.network.sizes
    most = min(sizes.T, LONGEST)
    if not 1 <= len(tokens) <= most:
        raise EngramError(f"text: 1 … {most} tokens can be shown; got {len(tokens)}")
    if max(tokens) >= sizes.N:
        raise EngramError(f"text: tokens count from 0 to {sizes.N - 1}; got {max(tokens)}")
    return list(tokens)


@dataclass(frozen=True)
class Reading:
    """One pass over a sequence: attention of all heads, and what is predicted."""

    patterns: dict[Head, np.ndarray]
    likeliest: tuple[tuple[tuple[int, float], ...], ...]
    came: tuple[float, ...]  # the probability of each next token


@torch.no_grad()
def read(network: Network, tokens: Sequence[int], without: Sequence[Head]) -> Reading:
    patterns: dict[Head, np.ndarray] = {}

    def look(part: Part, layer: int, pattern: Tensor) -> None:
        if part == "pattern":
            patterns.update({(layer, h): of.float().numpy() for h, of in enumerate(pattern[0], 1)})

    unknown = set(without) - set(network.heads())
    if unknown:
        raise EngramError(f"ablate: this model has no head {min(unknown)}")
    x = network.stream([list(tokens)], chained(without_heads(without), look), read="none")
    if "U" not in network.matrices():
        return Reading(patterns, tuple(() for _ in tokens), ())
    p = network.stream(start=network.sizes.L + 1, x=x)[0].softmax(dim=1)
    best = p.topk(min(LIKELIEST, p.shape[1]), dim=1)
    lines = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    came = p[:-1].gather(1, torch.tensor(tokens)[1:, None])[:, 0].tolist()
    return Reading(patterns, tuple(tuple(zip(*line, strict=True)) for line in lines), tuple(came))


def marks(subject: Subject, tokens: Sequence[int]) -> list[str]:
    """Tokens for a person: a blank that begins one is seen."""
    shown = [piece.replace(" ", "·").replace("\n", "↵").replace("\t", "⇥") for piece in subject.pieces(list(tokens))]
    return [piece or "∅" for piece in shown]


def told(subject: Subject, tokens: Sequence[int], found: Reading) -> dict[str, Any]:
    """A reading as the protocol has it; parts of predictions are told of models of ours only."""
    own = marks(subject, tokens)
    before = [token in tokens[:t] for t, token in enumerate(tokens)]
    guesses = [
        [{"token": k, "mark": mark, "p": round(p, 5)} for (k, p), mark in zip(line, _marks(subject, line), strict=True)]
        for line in found.likeliest
    ]
    came = [round(p, 5) for p in found.came] if found.came else [None] * (len(tokens) - 1)
    return {"tokens": list(tokens), "marks": own, "asked": before, "asks": "next", "right": [*own[1:], None]} | {
        "predictions": guesses, "heads": [], "parts": {}, "probabilities": [*came, None],
    }  # fmt: skip


def _marks(subject: Subject, line: Sequence[tuple[int, float]]) -> list[str]:
    return marks(subject, [token for token, _ in line])


@torch.no_grad()
def truncated(subject: Subject, asked: Truncate, factors_of: FactorsOf, rows_of: RowsOf) -> dict[str, Any]:
    """p(answer), p(rival) and the loss on text with the whole matrix and with the truncated one."""
    network, speaker, name = subject.network, speaker_of(subject), f"W_{asked.matrix}{asked.layer}"
    W = network.matrices().get(name)
    if not 1 <= asked.layer <= network.sizes.L:
        raise EngramError(f"layer: this model has the layers 1 to {network.sizes.L}; got {asked.layer}")
    if W is None or "U" not in network.matrices():
        raise EngramError(f"matrix: this model has no {name if W is None else 'output matrix U'}")
    wanted = [
        _token(speaker, "answer", asked.answer),
        *([_token(speaker, "rival", asked.rival)] if asked.rival else []),
    ]
    here = entering(network, Prompts.of([speaker.tokens(asked.prompt)]), asked.layer)
    rank = rank_of_share(asked.share, W.shape)
    cut = network.replaced(**{name: factors_of(name, W).keep(rank)})
    before, after = (_said(speaker, here.logits(one), wanted) for one in (network, cut))
    told = {"matrix": name, "rank": rank, "of": min(W.shape), "before": before, "after": after}
    return told | {"loss": _losses(network, cut, asked.layer, rows_of)}


def _losses(network: Network, cut: Network, layer: int, rows_of: RowsOf) -> list[float] | None:
    """On text, in nats; what enters the layer is computed once for both."""
    rows = rows_of()
    if rows is None:
        return None
    here = entering(network, Prompts(rows, rows[:, 0]), layer)
    return [text_loss(one, rows, here) for one in (network, cut)]


def _token(speaker: Speaker, field: str, word: str) -> int:
    try:
        return speaker.token(word)
    except EngramError as error:
        raise EngramError(str(error).replace("answer:", f"{field}:", 1)) from None


def _said(speaker: Speaker, logits: Tensor, wanted: list[int]) -> dict[str, Any]:
    p = [*log_p(logits, torch.tensor([wanted]))[0].exp().tolist(), None]
    return {"top": speaker.said(int(logits[0].argmax())), "p_answer": p[0], "p_rival": p[1]}


def letters_of(network: Network) -> str:
    """Which kinds of matrices a network has."""
    return "".join(letter for letter in LETTERS if f"W_{letter}1" in network.matrices())


def timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    began = time.monotonic()
    return work() | {"seconds": round(time.monotonic() - began, 2)}

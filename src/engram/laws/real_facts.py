r"""A real language model asked about countries: what late feed-forward parts do, and what an edit of a fact moves.

    lead       log p(country)/p(" the") behind a prompt such as "Madrid is located in"
    share      p(right country) over the sum over all countries of the list

The model is named by the SHA-256 of its file, the text by that of its letters: another one is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.laws.registered_model import registered
from engram.models import Layer, Model, Network, Transformer, network_of
from engram.probes.causal import without_part
from engram.probes.edits import Edit, Edits
from engram.probes.known_facts import Asked, Fact, known, prefers, top
from engram.probes.moments import moment_of
from engram.probes.prompts import Prompts, entering, log_p
from engram.probes.rome import rome_each
from engram.probes.words import Speaker
from engram.probes.write import write
from engram.tasks.countries import NEW_TEMPLATES, RELATIONS, cities, sentences
from engram.tasks.prose import digest, installed_prose
from engram.values import Rows, generator, law

ROWS = 80  # of text, for the second moment of keys
RIVAL = "the"


def asked(model: str) -> Speaker:
    """The model with this SHA-256, as it is asked in words."""
    read = registered(model)
    return Speaker.of(read.network, read.tokenizer)


@lru_cache(maxsize=1)
def text_rows(model: str, text: str) -> Int[Tensor, "n T"]:
    """Rows of the installed prose, if it is the one whose digest was registered."""
    prose = installed_prose()
    if digest(prose) != text:
        raise EngramError("text: the docstrings of sympy are other ones than those registered; install sympy==1.14.0")
    return asked(model).rows(prose, ROWS)


@dataclass(frozen=True)
class Cities:
    """Prompts of one template about cities; `right` is the place of the country of each in `countries`."""

    prompts: Prompts
    right: Int[Tensor, " B"]
    countries: Int[Tensor, " n"]
    rival: int


@law("real.dropped")
def dropped(draws: int, seed: int, model: str, first: int, last: int) -> Rows:
    """For each template the lead and share of `draws` cities, without the feed-forward part of a layer; 0: whole."""
    speaker = asked(model)
    for number in range(1, len(NEW_TEMPLATES) + 1):
        yield from without_each(speaker.network, about_cities(speaker, number, draws, seed), number, first, last)


@law("real.stand_in_dropped")
def stand_in_dropped(draws: int, seed: int, first: int, last: int) -> Rows:
    """The same of random weights and random prompts."""
    network = stand_in()
    for number in range(1, len(NEW_TEMPLATES) + 1):
        rng = generator(seed, "stand_in", number)
        prompts = Prompts.of(rng.integers(8, network.sizes.N, (draws, 4)).tolist())
        own = Cities(prompts, torch.from_numpy(rng.integers(0, 6, draws)), torch.arange(6), 7)
        yield from without_each(network, own, number, first, last)


def about_cities(speaker: Speaker, number: int, draws: int, seed: int) -> Cities:
    """The cities of a seed: its own part of the list in a fixed random order, so that seeds share none."""
    order = generator(0, "cities").permutation(len(cities()))
    own = [cities()[order[i % len(order)]] for i in range(seed * draws, (seed + 1) * draws)]
    names = sorted({country for _, country in cities()})
    prompts = Prompts.of([speaker.tokens(NEW_TEMPLATES[number - 1].format(city)) for city, _ in own])
    right = torch.tensor([names.index(country) for _, country in own])
    return Cities(prompts, right, torch.tensor([speaker.token(name) for name in names]), speaker.token(RIVAL))


@torch.no_grad()
def without_each(network: Network, about: Cities, number: int, first: int, last: int) -> Rows:
    here = entering(network, about.prompts, first)
    for layer in (0, *range(first, last + 1)):
        watch = without_part("mlp", layer) if layer else None
        x = network.stream(start=first, x=here.x, watch=watch, read="none")
        logits = network.stream(start=network.sizes.L + 1, x=x[torch.arange(len(x)), here.last][:, None])[:, 0]
        yield {"template": number, "layer": layer} | _numbers(logits, about)


def _numbers(logits: Float[Tensor, "B N"], about: Cities) -> dict[str, float]:
    wanted = torch.cat([about.countries, torch.tensor([about.rival])]).expand(len(logits), -1)
    said = log_p(logits.double(), wanted)
    right, rival = said.gather(1, about.right[:, None])[:, 0], said[:, -1]
    share = (right - said[:, :-1].logsumexp(dim=1)).exp()
    means = {"lead": right - rival, "share": share, "p_country": right.exp(), "p_the": rival.exp()}
    return {name: float(value.mean()) for name, value in means.items()}


@law("real.edits")
def edits(draws: int, seed: int, model: str, text: str, layer: int, size: float, how: str, facts: int) -> Rows:
    """A row for each fact that is edited: whether it flips, and how many of `draws` neighbours and of others stay.

    facts    how many of those that the model knows, drawn by the seed; 0: all
    how      write, of this size in units of ‖x‖; or rome, which has no size
    """
    speaker = asked(model)
    C = moment_of(speaker.network, text_rows(model, text), layer)
    yield from edited_rows(
        speaker.network, facts_known(model), C, layer, size, how, _some(model, facts, seed), draws, seed
    )


@law("real.stand_in_edits")
def stand_in_edits(draws: int, seed: int, layer: int, size: float, how: str, facts: int) -> Rows:
    """The same of random weights, whose likeliest tokens are its facts."""
    network = stand_in()
    prompts = [(0, s, r) for s in range(4) for r in (5, 6)]
    said = zip(prompts, top(network, entering(network, Prompts.of(prompts))).tolist(), strict=True)
    own = [Fact(str(s), RELATIONS[r - 5], (0, s, r), a, 1, ((1, s, r),)) for (_, s, r), a in said]
    rows = torch.from_numpy(generator(0, "stand_in").integers(0, network.sizes.N, (16, 16)))
    C = moment_of(network, rows, layer)
    yield from edited_rows(network, own, C, layer, size, how, range(facts or len(own)), draws, seed)


def stand_in() -> Network:
    """Random weights of ours in the place of a language model."""
    model = Transformer(d=16, layers=(Layer(heads=2, feed_forward="mlp"),) * 4, hidden=32, norm="pre")
    return network_of(Model(model, model.init(40, 16, 0)))


@lru_cache(maxsize=1)
def facts_known(model: str) -> list[Fact]:
    """All facts of the table with an answer of one token that is the likeliest behind the prompt."""
    speaker = asked(model)
    return known(speaker.network, list(_in_tokens(speaker)))


def _in_tokens(speaker: Speaker) -> Iterator[Fact]:
    for one in sentences():
        answer = speaker.pieces(one.answer)
        if len(answer) == 1:
            prompts = (tuple(speaker.tokens(words)) for words in (one.prompt, *one.paraphrases))
            end = speaker.end_of(one.subject, one.prompt)
            yield Fact(one.subject, one.relation, next(prompts), answer[0], end, tuple(prompts))


def _some(model: str, facts: int, seed: int) -> Sequence[int]:
    n = len(facts_known(model))
    return range(n) if not facts else sorted(generator(seed, "facts").permutation(n)[:facts].tolist())


def edited_rows(
    network: Network,
    facts: Sequence[Fact],
    C: Float[Tensor, "m m"],
    layer: int,
    size: float,
    how: str,
    which: Sequence[int],
    draws: int,
    seed: int,
) -> Rows:
    """A row for each of the facts `which`, edited by itself: counts of what stays, and out of how many."""
    every = Asked.of(network, [fact.prompt for fact in facts], layer)
    draws_of = {i: generator(seed, "edit", i) for i in which}
    new = {i: _another(facts, i, int(rng.integers(2**31)), network.sizes.N) for i, rng in draws_of.items()}
    made = _made(network, facts, every, C, new, size, how)
    for i, edit in made:
        others = [j for j, fact in enumerate(facts) if _is_neighbour(fact, facts[i])]
        near = draws_of[i].permutation(others)[:draws].astype(int).tolist()
        mates = [j for j, fact in enumerate(facts) if fact.subject == facts[i].subject and j != i]
        found = _counts(network, edit, facts[i], new[i], every, every.rows([i]), near, mates)
        yield {"fact": i, "relation": RELATIONS.index(facts[i].relation), "new": new[i]} | found


def _made(
    network: Network, facts: Sequence[Fact], every: Asked, C: Tensor, new: Mapping[int, int], size: float, how: str
) -> Iterator[tuple[int, Edit]]:
    """Each edit by itself; optimised ones side by side."""
    if how == "rome":
        rows = list(new)
        ends = [facts[i].end for i in rows]
        yield from zip(rows, rome_each(network, every.here.rows(rows), list(new.values()), C, ends), strict=True)
        return
    for i, token in new.items():
        here = every.here.rows([i])
        yield i, write(network, facts[i].prompt, token, here.layer, C, size, facts[i].answer, here)


def _is_neighbour(one: Fact, fact: Fact) -> bool:
    return one.relation == fact.relation and one.subject != fact.subject


def _another(facts: Sequence[Fact], i: int, draw: int, N: int) -> int:
    """Another answer of the same relation; any other token where there is none."""
    own = facts[i]
    others = sorted({fact.answer for fact in facts if fact.relation == own.relation} - {own.answer})
    return others[draw % len(others)] if others else (own.answer + 1 + draw % (N - 1)) % N


def _counts(
    network: Network, edit: Edit, fact: Fact, new: int, every: Asked, mine: Asked, near: list[int], mates: list[int]
) -> dict[str, float]:
    edited = Edits(network).plus(edit).network
    found: dict[str, float] = {"flips": int(int(top(edited, mine.here)[0]) == new), "norm": edit.norm}
    for name, rows in {"neighbours": near, "mates": mates}.items():
        found |= {name: len(rows), f"{name}_kept": int(every.rows(rows).kept(edited).sum()) if rows else 0}
    told = entering(network, Prompts.of(fact.paraphrases), edit.layer)
    hits = prefers(edited, told, new, fact.answer)
    return found | {"paraphrases": len(hits), "paraphrased": int(hits.sum())}

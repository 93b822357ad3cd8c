"""What else an edit may move: paraphrases of its prompt, its neighbours, other facts of its subject.

They come from a table of the user (columns kind and prompt), or, for a prompt about a country that Engram's table
knows, from templates: neighbours and other facts are then those that the model knows. All are asked in one pass: a pass
through a large model reads all of its weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from engram.errors import EngramError, did_you_mean
from engram.models import Network
from engram.probes.prompts import Prompts, entering
from engram.probes.words import Speaker
from engram.tasks.countries import EXAMPLE, RELATIONS, USUAL, countries, templates
from engram.tasks.table import read_columns

KINDS = ("paraphrase", "neighbour", "subject")
MOST = 1 << 22  # bytes
NEIGHBOURS = 20
AT_ONCE = 128  # prompts


@dataclass(frozen=True)
class Other:
    """A prompt that an edit should move (paraphrase) or leave (neighbour, subject).

    answer   the token that the model must say before the edit if this prompt is to count; None: it counts in any case
    """

    kind: str
    prompt: str
    answer: int | None = None


def others_of_file(path: Path) -> list[Other]:
    rows = read_columns(path, MOST, ("kind", "prompt"))
    for line, row in rows:
        if row["kind"].casefold() not in KINDS:
            hint = did_you_mean(row["kind"], KINDS)
            raise EngramError(
                f"{path}, line {line}: unknown kind {row['kind']!r:.60}; {hint}allowed: {', '.join(KINDS)}"
            )
    return [Other(row["kind"].casefold(), row["prompt"]) for _, row in rows]


def others_of_templates(speaker: Speaker, prompt: str) -> list[Other]:
    """Those of a prompt about a country; none where no template fits it."""
    found = [
        (relation, template, name)
        for relation in RELATIONS
        for template in _templates(relation)
        for name in EXAMPLE | countries()
        if template.format(name) == prompt.strip()
    ]
    return list(_others(speaker, *found[0])) if found else []


def _templates(relation: str) -> tuple[str, ...]:
    return *templates(relation), *USUAL.get(relation, ())


def _others(speaker: Speaker, relation: str, template: str, country: str) -> Iterator[Other]:
    table = EXAMPLE | countries()
    yield from (Other("paraphrase", t.format(country)) for t in _templates(relation) if t != template)
    beside = {template.format(name): row[relation] for name, row in table.items() if name != country}
    yield from _of_one_token(speaker, "neighbour", beside)
    mates = {templates(r)[0].format(country): table[country][r] for r in RELATIONS if r != relation}
    yield from _of_one_token(speaker, "subject", mates)


def _of_one_token(speaker: Speaker, kind: str, asked: dict[str, str]) -> Iterator[Other]:
    for words, answer in asked.items():
        if len(pieces := speaker.pieces(answer)) == 1:
            yield Other(kind, words, pieces[0])


def moved(
    speaker: Speaker, edited: Network, layer: int, told: Sequence[Other], tokens: tuple[int, int]
) -> dict[str, tuple[int, int]]:
    """By kind: how many there are, and how many do what they should. `tokens`: the old and the new answer."""
    found = [effect for part in _parts(told) for effect in _effects(speaker, edited, layer, part, tokens)]
    counted = [effect for effect in found if effect.other.answer in (None, effect.before)]
    by_kind = {kind: [effect.right for effect in counted if effect.other.kind == kind] for kind in KINDS}
    if any(one.answer is not None for one in told):
        by_kind["neighbour"] = by_kind["neighbour"][:NEIGHBOURS]
    return {kind: (sum(right), len(right)) for kind, right in by_kind.items() if right}


def _parts(told: Sequence[Other]) -> Iterator[Sequence[Other]]:
    yield from (told[n : n + AT_ONCE] for n in range(0, len(told), AT_ONCE))


@dataclass(frozen=True)
class Effect:
    """What an edit does to a prompt: `before` is what was said, `right` whether it does what it should."""

    other: Other
    before: int
    right: bool


@torch.no_grad()
def _effects(
    speaker: Speaker, edited: Network, layer: int, part: Sequence[Other], tokens: tuple[int, int]
) -> Iterator[Effect]:
    here = entering(speaker.network, Prompts.of([speaker.tokens(one.prompt) for one in part]), layer)
    before, after = here.logits(speaker.network).argmax(dim=1), here.logits(edited)
    stays, prefers = after.argmax(dim=1) == before, after[:, tokens[1]] > after[:, tokens[0]]
    for n, one in enumerate(part):
        yield Effect(one, int(before[n]), bool(prefers[n] if one.kind == "paraphrase" else stays[n]))

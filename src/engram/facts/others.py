"""What else an edit may move: paraphrases of its prompt, its neighbours, other facts of its subject.

They come from a table of the user (columns kind and prompt), or, for a prompt about a country that Engram's table
knows, from templates: neighbours and other facts are then those that the model knows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engram.errors import EngramError, did_you_mean
from engram.probes.known_facts import Fact, known
from engram.probes.words import Speaker
from engram.tasks.countries import EXAMPLE, RELATIONS, USUAL, countries, templates
from engram.tasks.table import read_columns

KINDS = ("paraphrase", "neighbour", "subject")
MOST = 1 << 22  # bytes
NEIGHBOURS = 20


@dataclass(frozen=True)
class Other:
    """A prompt that an edit should move (paraphrase) or leave (neighbour, subject)."""

    kind: str
    prompt: str


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
    yield from (Other("neighbour", words) for words in _known(speaker, beside)[:NEIGHBOURS])
    mates = {templates(r)[0].format(country): table[country][r] for r in RELATIONS if r != relation}
    yield from (Other("subject", words) for words in _known(speaker, mates))


def _known(speaker: Speaker, asked: dict[str, str]) -> list[str]:
    """Prompts that the model answers as the table does."""
    one = {words: pieces[0] for words, answer in asked.items() if len(pieces := speaker.pieces(answer)) == 1}
    facts = [Fact(words, "", tuple(speaker.tokens(words)), token, 1) for words, token in one.items()]
    return [fact.subject for fact in known(speaker.network, facts)] if facts else []

"""Facts about countries in words, and cities with their countries, as they come with Engram (package data)."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
RELATIONS = ("capital", "language", "continent", "currency")
THE = {"Netherlands": "the Netherlands"}  # how a country is called within a sentence, where it is not its name
USUAL = {"capital": ("The capital of {} is",), "currency": ("The currency of {} is the",)}  # not among the registered
EXAMPLE = {"France": {"capital": "Paris", "language": "French", "continent": "Europe", "currency": "euro"}}  # nor this
NEW_TEMPLATES = (  # cities are asked for with these; {} is the city
    "{} is a city in",
    "The city of {} lies in",
    "My aunt lives in {}, which is in",
    "The train to {} takes you to",
)


@dataclass(frozen=True)
class Sentence:
    """A fact in words: a prompt whose next word is the answer, and other prompts that ask for the same."""

    subject: str
    relation: str
    prompt: str
    answer: str
    paraphrases: tuple[str, ...]


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def templates(relation: str) -> tuple[str, ...]:
    """The prompt, then its paraphrases."""
    return tuple(row["template"] for row in _rows("templates.csv") if row["relation"] == relation)


@cache
def countries() -> dict[str, dict[str, str]]:
    """Every country, as it is called within a sentence, with its answers by relation."""
    return {THE.get(row["country"], row["country"]): row for row in _rows("countries.csv")}


@cache
def sentences() -> tuple[Sentence, ...]:
    """Every relation of every country."""
    return tuple(_sentences())


def _sentences() -> Iterator[Sentence]:
    for subject, row in countries().items():
        for relation in RELATIONS:
            prompt, *others = (template.format(subject) for template in templates(relation))
            yield Sentence(subject, relation, prompt, row[relation], tuple(others))


@cache
def cities() -> tuple[tuple[str, str], ...]:
    """Cities and their countries."""
    return tuple((row["city"], row["country"]) for row in _rows("cities.csv"))

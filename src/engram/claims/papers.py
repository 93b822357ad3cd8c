"""The papers whose sentences are checked: how sources name them, and how they are cited."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

FILE = files("engram") / "data/papers.toml"


@dataclass(frozen=True)
class Paper:
    """`name` is what sources and the ledger call it; two papers may share it, and are told apart by their titles."""

    key: str
    name: str
    authors: str  # as BibTeX has them
    title: str
    venue: str
    year: int
    arxiv: str | None = None

    def bibtex(self) -> str:
        fields = {"title": f"{{{self.title}}}", "author": self.authors, "booktitle": self.venue, "year": str(self.year)}
        fields |= {"eprint": self.arxiv, "archivePrefix": "arXiv"} if self.arxiv else {}
        return entry("inproceedings", self.key, fields)


def entry(kind: str, key: str, fields: dict[str, str]) -> str:
    width = max(map(len, fields))
    lines = [f"  {name:<{width}} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


PAPERS = tuple(Paper(**about) for about in tomllib.loads(FILE.read_text(encoding="utf-8"))["paper"])
NAMES = tuple(dict.fromkeys(paper.name for paper in PAPERS))


def cited(source: str) -> Sequence[Paper]:
    """The papers that a source names, in its order; of two with one name that whose title it has, else the first.

    >>> [paper.key for paper in cited("Sanford, Hsu and Telgarsky 2024, Theorem 4.2; Birth of a Transformer, Lemma 1")]
    ['sanford2024parallel', 'bietti2023birth']
    """
    named = sorted((name for name in NAMES if name in source), key=source.index)
    return [_told_apart([paper for paper in PAPERS if paper.name == name], source) for name in named]


def _told_apart(papers: Sequence[Paper], source: str) -> Paper:
    titled = [paper for paper in papers if paper.title.lower() in source.lower()]
    return (titled or papers)[0]

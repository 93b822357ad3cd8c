"""Character statistics of a text: π_u and π_b, and exact inverse-CDF draws from them."""

import csv
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt32
from pydantic import BeforeValidator, PrivateAttr

from engram.errors import EngramError
from engram.plain import read_plain
from engram.tasks.counts import LARGEST_ALPHABET, Counts
from engram.values import Value

VISIBLE = {"\n": "⏎", " ": "␣", "\t": "⇥"}
MOST_TEXT = 256 << 20  # bytes of a text
MOST_KNOWN = 8  # texts that are remembered
_known: dict[str, "Counted"] = {}  # by SHA-256: texts that this process has read, wherever they lie
_of_a_record: ContextVar[bool] = ContextVar("of_a_record", default=False)
_tables: ContextVar["Tables | None"] = ContextVar("tables", default=None)


class Tables:
    """The tables of texts that a record carries, each read when it is first needed.

    They serve the Specs of that record only: what others say of a text is not believed elsewhere.
    """

    def __init__(self, read: Callable[[str], Counts | None]):
        self._read, self._found = read, dict[str, Counted | None]()

    def get(self, sha256: str) -> "Counted | None":
        if sha256 not in self._found:
            counts = self._read(sha256)
            self._found[sha256] = None if counts is None else Counted.of(counts)
        return self._found[sha256]


class TextFile(Value, name="tasks.corpus.TextFile"):
    """A user's own text. Its SHA-256 is its identity; the path only says where it was.

    path      where the file was
    sha256    of its bytes

    One that a record names is not read before its letters are needed: whoever only lists or shows a record of
    somebody else opens no file that the record points at. A record that carries the table of its text needs no file.
    """

    unhashed = frozenset({"path"})
    path: str
    sha256: str
    _carried: Tables | None = PrivateAttr(default_factory=_tables.get)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextFile) and (self.path, self.sha256) == (other.path, other.sha256)

    def __hash__(self) -> int:
        return hash((self.path, self.sha256))

    @property
    def counted(self) -> "Counted":
        """Its counts: of the same bytes, if this process has read them anywhere, or of the record, or of the file."""
        found = _known.get(self.sha256) or (self._carried.get(self.sha256) if self._carried else None)
        return found or _from_text(self)

    @classmethod
    def at(cls, path: str) -> "TextFile":
        """The text that a user names himself: a link may lead to it. It is read now, so that he is told at once."""
        if _of_a_record.get():
            raise EngramError(f"task.corpus: a record names a text by its path and its SHA-256; got {path!r}")
        found = cls(path=str(Path(path).resolve()), sha256=hashlib.sha256(_read(path)).hexdigest())
        corpus_of(found)
        return found

    @classmethod
    def of(cls, name: str, content: bytes) -> "TextFile":
        """A text that is at hand and in no file, and what it is called; this process knows it from now on."""
        found = cls(path=name, sha256=hashlib.sha256(content).hexdigest())
        if found.sha256 not in _known:
            _remember(found, _decoded(name, content))
        return found

    def text(self) -> str:
        content = _read(self.path, self._carried is not None)
        if hashlib.sha256(content).hexdigest() != self.sha256:  # what it is now is nobody's business
            raise EngramError(
                f"corpus {self.path} changed: its SHA-256 was {self.sha256[:12]}…; restore the file, or start a new run"
            )
        return _decoded(self.path, content)


def _decoded(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise EngramError(f"task.corpus: {path} is not UTF-8 text; convert it first") from None


def _named(source: Any) -> Any:
    """A path names a text file."""
    return TextFile.at(source) if isinstance(source, str) and source != "shakespeare" else source


Text = Annotated[Literal["shakespeare"] | TextFile, BeforeValidator(_named)]  # what a task may be made of


def _read(path: str, of_a_record: bool = False) -> bytes:
    try:
        return read_plain(Path(path), MOST_TEXT, follow=True)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        own = "the record is of a version that kept no table of its text: put the same text there"
        fix = own if of_a_record else "give a text file, or 'shakespeare'"
        raise EngramError(f"task.corpus: cannot read {path!r} ({why}); {fix}") from None


@contextmanager
def as_a_record_says(tables: Tables | None = None) -> Iterator[None]:
    """Here no text is read: a record that somebody looks at is not a user who names a file of his."""
    before = _of_a_record.set(True)
    try:
        with carrying(tables):
            yield
    finally:
        _of_a_record.reset(before)


@contextmanager
def carrying(tables: Tables | None) -> Iterator[None]:
    """Texts that are named here take their letters from these tables, if there are any."""
    before = _tables.set(tables)
    try:
        yield
    finally:
        _tables.reset(before)


def text_files(value: Any) -> dict[str, TextFile]:
    """The texts that a Value is made of, by their SHA-256."""
    if isinstance(value, TextFile):
        return {value.sha256: value}
    if isinstance(value, Value):
        value = [getattr(value, name) for name in type(value).model_fields]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return {sha256: text for part in parts for sha256, text in text_files(part).items()}


def carried_by(value: Any) -> Tables | None:
    """The tables of the record from which a Value was read, if its texts come from one."""
    return next((text._carried for text in text_files(value).values() if text._carried), None)


def is_a_record_read() -> bool:
    """Whether a Spec is being built because somebody looks at its record."""
    return _of_a_record.get()


def unread(task: object) -> bool:
    """Whether a record is only looked at, and the letters of its task are in a text that has not been read here."""
    source = getattr(task, "corpus", None)
    return _of_a_record.get() and isinstance(source, TextFile) and source.sha256 not in _known


@dataclass(frozen=True, eq=False)
class Corpus:
    """Counts of a text over its alphabet (sorted by code point), and the two laws they give, unsmoothed.

    unigram   π_u(i)     share of character i
    bigram    π_b(j|i)   share of j among the successors of i; π_u where i has no successor
    """

    alphabet: str
    unigram: Float[np.ndarray, " N"]
    bigram: Float[np.ndarray, "N N"]

    @property
    def ranks(self) -> Int[np.ndarray, " N"]:
        """Tokens from the most to the least frequent; ties by code point."""
        return np.argsort(-self.unigram, kind="stable")

    @property
    def row_entropies(self) -> Float[np.ndarray, " N"]:
        """H(π_b(·|i)) in nats for every i."""
        return -np.sum(self.bigram * np.log(np.where(self.bigram > 0, self.bigram, 1)), axis=1)


def conditional(counts: np.ndarray, unigram: np.ndarray) -> Float[np.ndarray, "N N"]:
    """Rows normalised to sum to one; a row without counts becomes the unigram law."""
    rows = np.where(counts.sum(axis=1, keepdims=True) > 0, counts, unigram)
    return rows / rows.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Counted:
    """The counts of a text, and the laws they give."""

    counts: Counts
    corpus: Corpus

    @classmethod
    def of(cls, counts: Counts) -> "Counted":
        return cls(counts, _normalised(counts.alphabet, counts.letters, counts.pairs))


def corpus_of(source: str | TextFile) -> Corpus:
    return source.counted.corpus if isinstance(source, TextFile) else _shakespeare()


@lru_cache(maxsize=1)
def _shakespeare() -> Corpus:
    lines = (files("engram") / "data/shakespeare_bigrams.csv").read_text(encoding="utf-8").splitlines()
    alphabet = json.loads(lines[0].removeprefix("#"))["alphabet"]
    counts = np.array([[int(cell) for cell in row] for row in csv.reader(lines[1:])])
    # A character's row sum misses it where it ends the text, its column sum where it begins the text.
    unigram = np.maximum(counts.sum(axis=0), counts.sum(axis=1))
    return _normalised(alphabet, unigram, counts)


def _from_text(source: TextFile) -> Counted:
    return _remember(source, source.text())


def _remember(source: TextFile, text: str) -> Counted:
    """By what it is."""
    alphabet = "".join(sorted(set(text)))
    if not 2 <= len(alphabet) <= LARGEST_ALPHABET:
        found = {0: "is empty", 1: "has only one letter"}.get(len(alphabet), f"has {len(alphabet)} characters")
        raise EngramError(
            f"task.corpus: {source.path} {found}; a text must have 2 to {LARGEST_ALPHABET} different characters; "
            "give another text file, or 'shakespeare'"
        )
    for oldest in list(_known)[: max(0, len(_known) - MOST_KNOWN + 1)]:
        del _known[oldest]
    _known[source.sha256] = Counted.of(Counts.of(text, alphabet))
    return _known[source.sha256]


def _normalised(alphabet: str, unigram: np.ndarray, counts: np.ndarray) -> Corpus:
    pi_u = unigram / unigram.sum()
    return Corpus(alphabet, pi_u, conditional(counts, pi_u))


@dataclass(frozen=True, eq=False)
class Sampler:
    """Inverse CDF of many categorical laws at once, in 32-bit integers.

    Row i occupies the integers [i·2^32, (i+1)·2^32), cut at its cumulative probabilities, so one sorted search
    over all rows draws from the right one, and a token of probability zero has no integer at all.
    """

    cuts: Int[np.ndarray, " cuts"]
    N: int

    @classmethod
    def of(cls, laws: Float[np.ndarray, "rows N"]) -> "Sampler":
        cuts = np.floor(np.cumsum(laws, axis=1) * 2.0**32).astype(np.int64)
        last = laws.shape[1] - 1 - np.argmax(laws[:, ::-1] > 0, axis=1)  # rounding must not leave a gap after it
        cuts[np.arange(laws.shape[1])[None, :] >= last[:, None]] = 2**32
        return cls((cuts + (np.arange(len(laws))[:, None] << 32)).ravel(), laws.shape[1])

    def draw(self, row: np.ndarray, bits: Shaped[np.ndarray, "..."]) -> Int[np.ndarray, "..."]:
        """One token from law `row` for each 32 random bits."""
        return np.searchsorted(self.cuts, (row << 32) + bits, side="right") - row * self.N


def random_bits(rng: np.random.Generator, shape: tuple[int, ...]) -> UInt32[np.ndarray, "..."]:
    return rng.integers(0, 2**32, shape, dtype=np.uint32)


def visible(letter: str) -> str:
    """A letter as a mark that can be seen."""
    return VISIBLE.get(letter, letter if letter.isprintable() else "·")

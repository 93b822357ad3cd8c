"""What a trained model believes of one fact, over its training."""

from dataclasses import dataclass

from engram.errors import EngramError, did_you_mean
from engram.probes.facts import Belief, belief
from engram.records import Record
from engram.tasks.book import MISSING, Book
from engram.tasks.facts import FactTask

ASKED_STEP = 2**41  # prompts that nobody else sees


@dataclass(frozen=True)
class Asked:
    """A record about facts, one of them, and its names."""

    record: Record
    book: Book
    s: int
    r: int
    names: dict[str, list[str]]

    @classmethod
    def of(cls, record: Record, subject: str, relation: str) -> "Asked":
        task = record.train.at(record.train.steps).task  # with the facts that joined it
        if not isinstance(task, FactTask):
            raise EngramError(
                f"run {record.id} is about {type(task).__name__}, not about facts; see `engram fact learn --help`"
            )
        book, names = task.book(record.train.seed), task.names_of(record.train.seed)
        s, r = (place(kind, word, names[kind]) for kind, word in (("subject", subject), ("relation", relation)))
        if book.table[s, r] == MISSING:
            raise EngramError(f"({subject}, {relation}) is not among the facts of run {record.id}")
        return cls(record, book, s, r, names)

    @property
    def question(self) -> str:
        return f"({self.names['subject'][self.s]}, {self.names['relation'][self.r]})"

    @property
    def answer(self) -> str:
        return self.names["answer"][self.book.table[self.s, self.r]]


def place(kind: str, word: str, names: list[str]) -> int:
    """The index of a name among its kind; an unknown one is refused with the nearest."""
    if word not in names:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise EngramError(f"{kind}: unknown {word!r}; {did_you_mean(word, names)}allowed: {shown}")
    return names.index(word)


def history(asked: Asked) -> list[tuple[int, Belief]]:
    """What the model believed of the fact at every stored step."""
    record, spec = asked.record, asked.record.train
    steps = record.snapshot_steps
    if not steps:
        raise EngramError(f"run {record.id} has no stored weights; run it here to store them")
    stored = ((step, record.model(step).weights) for step in steps)
    fact = (asked.book, asked.s, asked.r, spec.seed, ASKED_STEP)
    return [(step, belief(spec.model, w, *fact)) for step, w in stored]

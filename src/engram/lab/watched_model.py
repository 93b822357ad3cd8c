"""A model of others, or a series of its revisions, as pages see it: it answers as a run does, and has edits besides.

One thread works on it, so that nothing here needs a lock; `about`, `now` and rows may be read from any thread.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engram.adapters import Pretrained, read_model, revisions
from engram.adapters.moments import moments
from engram.adapters.source import CONFIG
from engram.errors import EngramError, did_you_mean
from engram.lab import model_questions as questions
from engram.lab.model_rows import ModelRows
from engram.lab.probed_model import ProbedModel
from engram.lab.watched_run import Cache, Tokens
from engram.models import Head
from engram.probing import Subject, shown_tokens, subject_from

IN_MEMORY = 2  # revisions


class WatchedModel(ProbedModel):
    """A folder, file or name of `engram.read_model`, or a folder of revisions.

    text    for the second moment of keys and the loss of edits; prose that is installed unless said
    """

    untrusted: str | None = None

    def __init__(self, where: str, consent: bool = False, text: Path | None = None):
        super().__init__(text)
        self._where, self._consent = where, consent
        self.names = _revisions(where)  # by step
        self.steps = sorted(self.names)
        self._bases, self._read = Cache(), Cache()
        last = self.base(self.steps[-1])
        self.id = f"model:{_name(where)}"
        self.rows = ModelRows(self.id, last.network)
        self._about = self._described(last)

    @property
    def wrong(self) -> str | None:
        """Why a revision has no scores."""
        return self.rows.wrong

    @property
    def table(self) -> Sequence[Any]:
        return self.rows.table

    @property
    def about(self) -> dict[str, Any]:
        return self._about

    def columns(self) -> dict[str, Any]:
        return self.rows.columns()

    def rows_from(self, start: int) -> dict[str, Any] | None:
        return self.rows.since(start)

    def _described(self, subject: Subject) -> dict[str, Any]:
        network, source = subject.network, subject.network.provenance
        sizes = network.sizes
        empty = {k: [] for k in ("pictures", "levels", "settings", "events", "stages", "interventions")}
        model = {"name": _name(self._where), "family": source.family, "note": source.note, "sha256": source.sha256}
        model |= {"layers": sizes.L, "matrices": questions.letters_of(network), "seeds": len(questions.SEEDS)}
        model |= {
            "text": subject.words is not None,
            "revisions": len(self.steps),
            "edits": subject.words is not None and {"W_F1", "U"} <= set(network.matrices()),
        }
        about = {"t": "about", "run": self.id, "title": str(source), "steps": self.steps[-1], "seed": 0}
        return (
            about
            | empty
            | {"N": sizes.N, "T": sizes.T, "letters": None, "heads": list(network.heads()), "model": model}
        )

    def listed(self) -> dict[str, Any]:
        """As a line of the list of runs."""
        line = {"id": self.id, "title": self._about["title"], "seed": 0, "state": "model", "rows": len(self.table)}
        line |= {"steps": self.steps[-1], "events": [], "family": self.id, "parts_at": 0, "words": self._about["title"]}
        return line | {"began": None, "seconds": None, "tags": [], "note": "", "headline": {}, "seedless": ""}

    def now(self, trainer: dict[str, Any]) -> dict[str, Any]:
        edits = [one for step in self.steps for one in self.edits_at(step)]
        about = {"t": "state", "run": self.id, "state": "model", "step": self.steps[-1], "snapshots": self.steps}
        about |= {"live": None, "why": None, "births": [], "trainer": trainer}
        return about | {"edits": edits, "computing": self.doing}

    def stored_step(self, step: int | None) -> int:
        """The last revision that is not after a step."""
        return self.steps[-1] if step is None else max((s for s in self.steps if s <= step), default=self.steps[0])

    # Its weights

    def base(self, step: int) -> Subject:
        return self._bases.get_or(step, lambda: subject_from(self._opened(step)), most=IN_MEMORY)

    def _opened(self, step: int) -> Pretrained:
        name = self.names[step]
        if not name:
            return read_model(self._where, consent=self._consent)
        return next(iter(revisions(self._where, [name])))[1]

    # Pictures and predictions, as a run has them

    def tokens_of(self, text: str | None, tokens: Tokens) -> list[int]:
        subject = self.base(self.steps[-1])
        if text is None and tokens is None:
            return self._own
        return questions.encoded(subject, text) if text is not None else questions.checked(subject, tokens or ())

    @property
    def _own(self) -> list[int]:
        """Random tokens that come twice, of the last revision: the same for all."""
        subject = self.base(self.steps[-1])
        return self._made.get_or("own", lambda: shown_tokens(subject, questions.asked_of(subject)))

    def _reading(self, step: int, tokens: Tokens, without: Sequence[Head]) -> questions.Reading:
        sequence = self.tokens_of(None, tokens)
        key = (step, self.version(step), tuple(sequence), tuple(without))
        return self._read.get_or(key, lambda: questions.read(self.subject(step).network, sequence, without), most=3)

    @property
    def own_tokens(self) -> list[int]:
        return self._own

    def values(self, step: int, name: str, tokens: Tokens = None, heads: Sequence[Head] = ()) -> np.ndarray:
        known = {f"attention:{i}.{h}": (i, h) for i, h in self._about["heads"]}
        if name not in known:
            raise EngramError(f"no picture {name!r:.60}; {did_you_mean(name, known)}allowed: attention:1.1, …")
        return self._reading(step, tokens, heads).patterns[known[name]]

    def has_right_answers(self, picture: str) -> bool:
        return False

    def predictions(self, step: int, tokens: Tokens, heads: Sequence[Head]) -> dict[str, Any]:
        sequence = self.tokens_of(None, tokens)
        return questions.told(self.subject(step), sequence, self._reading(step, tokens, heads))


def _revisions(where: str) -> dict[int, str]:
    """Names of revisions by their steps; one model is step 0, without a name."""
    path = Path(where).expanduser()
    if not path.is_dir() or (path / CONFIG).exists():
        return {0: ""}
    names = [name for name, _ in moments(where, None, torch.float32, False)]
    numbers = [int((re.findall(r"\d{1,9}", name) or ["0"])[0]) for name in names]
    return dict(zip(numbers if len(set(numbers)) == len(names) else range(len(names)), names, strict=True))


def _name(where: str) -> str:
    path = Path(where).expanduser()
    return (path.resolve().name if path.exists() else where)[:150]

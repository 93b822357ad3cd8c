"""Facts as the protocol tells them: columns of equal length, and what an edit did."""

from math import isfinite
from typing import Any

import numpy as np
from jaxtyping import Float

from engram.facts.bench import Measured
from engram.facts.edit import FactEdit
from engram.tasks.book import Book

STAGES = ("no idea", "right relation, wrong subject", "right relation, unsure", "right")
MOST_TOLD = 200  # facts that an edit moved, which are listed
DIGITS = 4  # as `engram fact see` rounds


COLUMNS = (
    ("subject", "subject", ""),
    ("relation", "relation", ""),
    ("answer", "answer", "what the table says"),
    ("stage", "believes", "the likeliest answer, and the stage of learning as `engram fact see` names it"),
    ("p", "p(right)", "probability of the right answer, mean over prompts"),
    ("margin", "margin", "ln p(right) − ln p(rival): below zero the answer is wrong"),
    ("learned", "learned at", "the stored step from which it stays right; (a, b]: after a, and by b"),
    (
        "interference",
        "interference",
        "what other facts add to the lead over the rival, or take from it, in the last matrix",
    ),
    ("frequency", "frequency", "how often it is asked for"),
)  # name, title and hint of what a page shows


def columns_of(
    rows: list[Measured],
    names: dict[str, list[str]],
    book: Book,
    frequency: Float[np.ndarray, " n"],
    learned: list[list[int | None] | None],
) -> dict[str, Any]:
    """`facts` has a list for each column, by fact; `weakest` is the right fact with the smallest margin."""
    right = [i for i, row in enumerate(rows) if row.belief.words == "right"]
    answers, since = names["answer"], [one or (None, None) for one in learned]
    facts = {
        "subject": [names["subject"][row.s] for row in rows],
        "relation": [names["relation"][row.r] for row in rows],
        "answer": [answers[a] for a in book.known[:, 2]],
        "guess": [answers[row.belief.guess] for row in rows],
        "rival": [answers[row.rival] for row in rows],
        "stage": [STAGES.index(row.belief.words) for row in rows],
        "p": [plain(row.belief.right) for row in rows],
        "p_relation": [plain(row.belief.relation) for row in rows],
        "margin": [plain(row.margin) for row in rows],
        "own": [plain(row.own) for row in rows],
        "interference": [plain(row.interference) for row in rows],
        "frequency": [plain(value, 6) for value in frequency.tolist()],
        "learned": [at for _, at in since],
        "after": [before for before, _ in since],
    }
    weakest = min(right, key=lambda i: rows[i].margin, default=None)
    return {"columns": COLUMNS, "facts": facts, "stages": STAGES, "weakest": weakest}


def plain(value: float | None, digits: int = DIGITS) -> float | None:
    """JSON knows no infinity."""
    return round(value, digits) if value is not None and isfinite(value) else None


def edit_in_words(done: FactEdit, names: dict[str, list[str]]) -> dict[str, Any]:
    moved = sorted(done.others, key=lambda one: not one.broke)
    return {
        "matrix": done.matrix,
        "was": done.was,
        "learned": plain(done.learned),
        "moved": plain(done.moved, 6),
        "changed": [{"what": kind, "n": n, "of": of} for kind, (n, of) in done.changed.items()],
        "broke": sum(one.broke for one in moved),
        "others": [
            {
                "subject": names["subject"][one.s],
                "relation": names["relation"][one.r],
                "was": names["answer"][one.was],
                "now": names["answer"][one.now],
                "broke": one.broke,
            }
            for one in moved[:MOST_TOLD]
        ],
    }

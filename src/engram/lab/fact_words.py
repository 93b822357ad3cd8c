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


def columns_of(
    rows: list[Measured], book: Book, frequency: Float[np.ndarray, " n"], learned: list[list[int | None] | None]
) -> dict[str, Any]:
    """Names are told by their number; `weakest` is the right fact with the smallest margin."""
    right = [i for i, row in enumerate(rows) if row.belief.words == "right"]
    return {
        "subject": [row.s for row in rows],
        "relation": [row.r for row in rows],
        "answer": book.known[:, 2].tolist(),
        "p": [plain(row.belief.right) for row in rows],
        "p_relation": [plain(row.belief.relation) for row in rows],
        "guess": [row.belief.guess for row in rows],
        "rival": [row.rival for row in rows],
        "stage": [STAGES.index(row.belief.words) for row in rows],
        "stages": list(STAGES),
        "margin": [plain(row.margin) for row in rows],
        "own": [plain(row.own) for row in rows],
        "interference": [plain(row.interference) for row in rows],
        "frequency": [plain(value, 6) for value in frequency.tolist()],
        "learned": learned,
        "weakest": min(right, key=lambda i: rows[i].margin, default=None),
    }


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

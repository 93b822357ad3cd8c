"""What `engram probe` found, as rows for the terminal."""

from collections.abc import Callable, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from engram.probes.ablation import top_heads
from engram.probes.survey import Composition, Copying, Lens, Scores, name_of

if TYPE_CHECKING:
    from engram.models import Head

SHOWN = 10
Rows = list[dict[str, Any]]


def spread(values: Sequence[float]) -> str:
    """The mean, and the range of the seeds."""
    return f"{np.mean(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def top_table(scores: Scores) -> Rows:
    """The heads with the largest induction scores, and beside them those that look at the token before."""
    columns = {kind: _top(scores, kind) for kind in ("induction", "previous")}
    return [
        {"induction head": i, "score": i_score, "previous-token head": p, "its score": p_score}
        for (i, i_score), (p, p_score) in zip(columns["induction"], columns["previous"], strict=True)
    ]


def _top(scores: Scores, kind: str) -> list[tuple[str, str]]:
    by_seed = scores.by_seed(kind)
    heads: list[Head] = top_heads(scores.mean(kind), SHOWN)
    return [(name_of(head), spread(by_seed[head])) for head in heads]


def composed(found: Composition | None) -> Rows:
    """The three best partners of every reader, and what cutting an edge does to it."""
    if found is None:
        return []
    rows = []
    for one in found.partners:
        best = {f"partner {i}": f"{name_of(w)} {v:.2f}" for i, (w, v) in enumerate(one.recalls[:3], 1)}
        cuts = {f"keys − {name_of(cut.writer)}": f"{cut.induction[one.reader]:.2f}" for cut in found.cuts}
        rows.append({"reader": name_of(one.reader), **best, **cuts})
    return [*rows, _gain_row(found)] if found.cuts else rows


def _gain_row(found: Composition) -> dict[str, Any]:
    lefts = {f"keys − {name_of(cut.writer)}": f"{cut.left:.2f}" for cut in found.cuts}
    return {"reader": "gain", **{f"partner {i}": "" for i in (1, 2, 3)}, **lefts}


def copied(found: Copying | None) -> Rows:
    if found is None:
        return []
    return [
        {
            "head": name_of(head),
            "raw": f"{plain:.3f}",
            "effective": f"{embedded:.3f}",
            "score": f"{found.score[head]:.2f}",
        }
        for head, (plain, embedded) in found.recall.items()
    ]


def left_of_gain(found: Any) -> Rows:
    """By seed."""
    if found.ablation is None:
        return []
    names = [" ".join(map(name_of, heads)) for heads in found.ablation.heads]
    rows = zip(found.scores.seeds, found.ablation.left, found.ablation.left_random, names, strict=True)
    return [{"seed": s, "top heads": f"{a:.2f}", "random ones": _left_of(b), "chosen": n} for s, a, b, n in rows]


def _left_of(random: float) -> str:
    """Random heads come from the same layers, where there may be no others."""
    return "no other heads" if isnan(random) else f"{random:.2f}"


def said(found: Lens | None, pieces: Callable[[Sequence[int]], list[str]]) -> Rows:
    if found is None:
        return []
    return [
        {"after layer": one.layer, "tokens": "  ".join(f"{p!r} {v:.2f}" for p, v in _three(one, pieces))}
        | {"loss, first": f"{first:.2f}", "repeat": f"{repeat:.2f}"}
        for one, (first, repeat) in zip(found.said, found.losses, strict=True)
    ]


def _three(one: Any, pieces: Callable[[Sequence[int]], list[str]]) -> list[tuple[str, float]]:
    return list(zip(pieces(one.tokens[:3]), one.probabilities, strict=False))

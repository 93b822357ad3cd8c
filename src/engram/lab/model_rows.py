"""Scores over the revisions of a model, as rows of a run: one revision after another."""

from math import isfinite
from typing import Any

from engram.models import Network
from engram.probes.survey import Scores, name_of

MOST_HEADS = 32  # whose curves are told one by one
TITLES = {"induction": "strongest induction head", "previous": "strongest previous-token head"}
LOSSES = {"loss.first_copy": "first copy", "loss.repeat": "repeat"}


class ModelRows:
    """What the timeline draws; a revision that cannot be probed is a gap, and `wrong` says why."""

    def __init__(self, run: str, network: Network):
        self.run = run
        heads = list(network.heads())
        self.heads = heads if len(heads) <= MOST_HEADS else []
        self.table: list[dict[str, Any]] = []
        self.wrong: str | None = None

    def add(self, step: int, scores: Scores) -> None:
        """The strongest head may be another one at each revision; single heads have curves of their own."""
        means = {kind: scores.mean(kind) for kind in TITLES}
        row: dict[str, Any] = {"step": step}
        row |= {f"score.{kind}": max(of.values()) for kind, of in means.items()}
        first, repeat = ([getattr(one, name) for one in scores.passes] for name in ("first", "repeat"))
        row |= {"loss.first_copy": sum(first) / len(first), "loss.repeat": sum(repeat) / len(repeat)}
        row |= {f"{kind}.{name_of(head)}": of[head] for kind, of in means.items() for head in self.heads}
        self.table.append({name: value if isfinite(value) else None for name, value in row.items()})

    def skip(self, step: int, why: str) -> None:
        self.wrong = why
        self.table.append({"step": step})

    def columns(self) -> dict[str, Any]:
        found = [(name, title, "loss", "loss (nats)", True) for name, title in LOSSES.items()]
        found += [
            (f"score.{kind}", title, "recall", "score of the strongest head", True) for kind, title in TITLES.items()
        ]
        found += [
            (f"{kind}.{name_of(head)}", name_of(head), f"{kind} by head", f"{kind} score by head", False)
            for kind in TITLES
            for head in self.heads
        ]
        fields = ("name", "title", "group", "axis", "drawn")
        return {"t": "columns", "run": self.run, "columns": [dict(zip(fields, one, strict=True)) for one in found]}

    def since(self, start: int) -> dict[str, Any] | None:
        """Rows from the n-th on."""
        rows = self.table[start:]
        if not rows:
            return None
        names = ["step", *(column["name"] for column in self.columns()["columns"])]
        columns = {name: [row.get(name) for row in rows] for name in names}
        return {"t": "rows", "run": self.run, "from": rows[0]["step"], "columns": columns}

"""What each command prints with --json: one object on stdout (docs/json.md, docs/answers.schema.json).

Fields may be added in later versions; those that are named here stay. A command that fails prints an `Error` instead,
unless it has already answered.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import models_json_schema

Verdict = Literal["agrees", "disagrees", "inconclusive", "missing"]
Status = Literal["registered", "fresh seeds", "exploratory", "exact"]
Number = float | None
Pair = Annotated[list[Number], Field(min_length=2, max_length=2, description="null: open on this side")]
Scale = Literal["smoke", "quick", "paper"]
Table = list[dict[str, Any]]


class Envelope(BaseModel):
    """More fields may come."""

    model_config = ConfigDict(extra="allow", strict=True)


class Failure(Envelope):
    """kind: usage, a command or option that does not exist; input, what was asked for cannot be done; interrupted;
    unexpected, a mistake of Engram."""

    kind: Literal["usage", "input", "interrupted", "unexpected"]
    message: str
    exit_code: int


class Error(Envelope):
    """In the place of any answer."""

    error: Failure


class Measure(Envelope):
    """A measured number, its 95 % interval and the band that was predicted."""

    name: str
    measured: Number
    predicted: Pair
    interval: Pair
    n: int
    verdict: Verdict
    bound: Literal["≥", "≤"] | None = Field(description="measured is a bound: seeds did not get there within the run")


class Claim(Envelope):
    """A claim as the ledger decides it; its numbers are those of the measure that decides."""

    id: str
    statement: str
    source: str | None
    experiment: str
    scale: Scale | None
    verdict: Verdict
    status: Status
    predicted: Pair | None
    measured: Number
    interval: Pair | None
    n: int | None
    seeds: list[int]
    stale: bool
    measures: list[Measure]
    why: str | None = Field(description="why it disagrees")
    command: str = Field(description="what computes it again")


class Listed(Envelope):
    """An experiment of `engram list`."""

    name: str
    about: str
    times: str
    claims: list[str]
    statements: dict[str, str]
    verdicts: dict[str, Verdict]


class Setting(Envelope):
    """A field that --set can change; value is null where runs differ, and values has all of them."""

    field: str
    type: str
    value: Any
    values: list[Any]
    default: Any
    meaning: str


class Benchmark(Envelope):
    """One line of `engram bench`; ratio: how many times better than the baseline."""

    name: str
    value: float
    unit: str
    baseline: float
    ratio: float
    gflops: Number
    about: str


class ProbedHead(Envelope):
    """A head of a network that was probed, L19H7: scores are means over seeds, and by seed."""

    head: str
    layer: int
    previous: float
    induction: float
    previous_seeds: list[float]
    induction_seeds: list[float]


RUN: dict[str, Any] = {
    "experiment": str,
    "scale": Scale,
    "seconds": float,
    "claims": list[Claim],
    "records": list[str],
    "figures": list[str],
    "table": (Table, []),
    "notes": (list[str], []),
}
LEDGER: dict[str, Any] = {"claims": list[Claim], "counts": Table, "unreadable": Table}
QUEUE: dict[str, Any] = {
    "queue": Table,
    "total": dict[str, Any],
    "failed": Table,
    "left_out": Table,
    "is_running": bool,
}
FIELDS: dict[str, dict[str, Any]] = {
    "list": {"experiments": list[Listed]},
    "show": {
        "experiment": str,
        "about": str,
        "scale": Scale | None,
        "seeds": list[int],
        "claims": list[Claim],
        "records": list[str],
        "figures": list[str],
        "table": Table,
        "caption": (str | None, None),
    },
    "fields": {"experiment": str, "scale": Scale, "fields": list[Setting]},
    "run": RUN,
    "birth": RUN | {"report": str, "births": dict[str, dict[str, int | None]]},
    "ledger": LEDGER,
    "verify": LEDGER,
    "cite": {
        "id": str,
        "statement": str,
        "source": str | None,
        "verdict": Verdict,
        "status": Status,
        "seeds": list[int],
        "range": str,
        "numbers": list[str],
        "command": str,
        "version": str,
        "commit": str | None,
        "bibtex": list[str],
    },
    "findings": {"findings": Table},
    "report": {"report": str, "left_out": list[str]},
    "bench": {"benchmarks": list[Benchmark], "seconds": float},
    "cost": {"machine": str, "costs": Table},
    "doctor": {"doctor": dict[str, str]},
    "predict": {"predictions": Table},
    "probe": {
        "model": dict[str, Any],
        "start": dict[str, Any] | None,
        "seeds": list[int],
        "heads": list[ProbedHead],
        "losses": dict[str, list[Number]],
        "composition": dict[str, Any] | None,
        "copying": dict[str, Any] | None,
        "ablation": dict[str, Any] | None,
        "lens": Table | None,
        "notes": list[str],
        "seconds": float,
        "report": str | None,
    },
    "queue run": QUEUE,
    "queue state": QUEUE,
    "queue pack": {"into": str, "added": dict[str, int], "bytes": int, "most_bytes": int},
    "probe laser": {
        "model": str,
        "sha256": str,
        "chosen_on": int,
        "reported_on": int,
        "cut": dict[str, Any],
        "full": dict[str, Any],
        "best": dict[str, Any],
        "cuts": Table,
        "notes": list[str],
        "figures": list[str],
    },
    "register": {"file": str, "registered": bool, "changed": list[str]},
    "replay": {"run": str, "events": Table},
    "lab": {"url": str, "home": str},
    "lesson": {"lessons": (Table, []), "url": (str, ""), "home": (str, ""), "runs": (Table, [])},
    "sweep": {
        "sweep": str,
        "scale": Scale,
        "seconds": Number,
        "metrics": (list[str], []),
        "rows": (Table, []),
        "figures": (list[str], []),
        "csv": (str | None, None),
        "seeds": (list[int], []),
        "runs": (int | None, None),
        "left": (int | None, None),
        "at_once": (int | None, None),
        "core_seconds": (Number, None),
        "bytes": (Number, None),
        "cells": (Table, []),
    },
    "truncate": {
        "run": str,
        "group": str,
        "full": dict[str, float],
        "map": Table,
        "positions": int,
        "passes": float,
        "plain_passes": int,
        "figures": list[str],
    },
    "fact learn": {"run": str, "facts": int, "recalled": float, "model": dict[str, int]},
    "fact see": {"beliefs": Table, "chance": dict[str, float], "rule": str},
    "fact edit": {
        "matrix": str,
        "changed": Table,
        "others": (Table, []),
        "was": (str, ""),
        "learned": (Number, None),
        "moved": (Number, None),
        "run": (str | None, None),
        "model": (str | None, None),
        "answer": (str | None, None),
        "text_loss": (list[float] | None, None),
        "file": (str | None, None),
    },
    "runs ls": {"runs": Table},
    "runs show": {"id": str, "spec": dict[str, Any]},
    "runs diff": {"differences": Table},
    "runs tag": {"run": str, "tags": list[str]},
    "runs note": {"run": str, "note": str},
    "runs rm": {"removed": list[str]},
    "runs resume": {"id": str, "rows": int},
    "runs export": {"exported": list[str]},
    "runs import": {"imported": list[str], "here": list[str]},
    "runs pack": {"packed": str},
    "runs bundle": {"packed": str, "runs": int},
    "runs manifest": {"manifest": str, "listed": int},
    "runs check": {"ok": bool, "message": str},
}


def _model(command: str, parts: dict[str, Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {name: of if isinstance(of, tuple) else (of, ...) for name, of in parts.items()}
    name = "".join(word.title() for word in command.split())
    return create_model(name, __base__=Envelope, __doc__=f"engram {command} --json", **fields)


ANSWERS = {command: _model(command, parts) for command, parts in FIELDS.items()}


def schema() -> dict[str, Any]:
    """JSON Schema of all answers: $defs has one for each command, and `commands` says which; Error is any command's."""
    models = {**ANSWERS, "error": Error}
    _, found = models_json_schema(
        [(model, "validation") for model in models.values()], title="Answers of engram --json"
    )
    refs = {command: {"$ref": f"#/$defs/{model.__name__}"} for command, model in models.items()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "commands": refs}

"""The ledger: every claim of every experiment, decided from records. Runs nothing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.errors import EngramError
from engram.experiments import LEAST_SEEDS, Experiment, Scale
from engram.records import Claim, Measure, Record
from engram.records.shelf import all_records
from engram.records.spec import run_id
from engram.show.tables import span

LARGEST_SEED = 32
Index = dict[str, Record]


@dataclass(frozen=True)
class Entry:
    """A claim and where its numbers come from. Without enough records there is no claim, only its sentence."""

    id: str
    statement: str
    experiment: Experiment
    scale: Scale | None
    claim: Claim | None
    stale: bool

    @property
    def verdict(self) -> str:
        return self.claim.verdict if self.claim else "missing"

    def to_json(self) -> dict[str, Any]:
        at_scale = f" --scale {self.scale}" if self.scale else ""
        head = {
            "id": self.id,
            "statement": self.statement,
            "source": self.claim.source if self.claim else None,
        }
        where = {
            "experiment": self.experiment.name,
            "scale": self.scale,
            "verdict": self.verdict,
            "stale": self.stale,
        }
        numbers = _measure_json(self.claim.deciding) if self.claim else dict.fromkeys(NUMBERS)
        parts = [_measure_json(measure) for measure in self.claim.measures] if self.claim else []
        seeds = f" --seeds {self.claim.n}" if self.claim else ""
        return numbers | head | where | {"measures": parts, "command": f"{self.experiment.command}{at_scale}{seeds}"}


NUMBERS = ("name", "predicted", "measured", "interval", "n", "verdict")


def _measure_json(measure: Measure) -> dict[str, Any]:
    pairs = {"predicted": (measure.low, measure.high), "interval": measure.interval}
    bounds = {name: [_finite(bound) for bound in pair] for name, pair in pairs.items()}
    return {
        "name": measure.name,
        "measured": _finite(measure.measured),
        "n": measure.n,
        "verdict": measure.verdict,
    } | bounds


def _finite(value: float) -> float | None:
    """JSON has no infinity: an open side of an interval is null."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def entries_of(experiment: Experiment, records: Sequence[Record], scale: Scale) -> list[Entry]:
    """The claims that a set of records decides."""
    stale = any(record.stale for record in records)
    return [Entry(claim.id, claim.statement, experiment, scale, claim, stale) for claim in experiment.claims(records)]


def ledger(experiments: Iterable[Experiment], homes: Sequence[Path]) -> list[Entry]:
    """For each experiment the largest scale with enough seeds, else the largest with any, else its bare sentences."""
    index = _index(homes)
    return [entry for experiment in experiments for entry in _decided(experiment, index)]


def _decided(experiment: Experiment, index: Index) -> list[Entry]:
    scales: list[Scale] = ["paper", "quick"]
    seeds: dict[Scale, list[int]] = {scale: _complete_seeds(experiment, scale, index) for scale in scales}
    enough: list[Scale] = [scale for scale in scales if len(seeds[scale]) >= LEAST_SEEDS[scale]]
    some: list[Scale] = [scale for scale in scales if seeds[scale]]
    if not some:
        return [Entry(id, text, experiment, None, None, False) for id, text in experiment.statements.items()]
    scale = (enough or some)[0]
    wanted = dict.fromkeys(run_id(spec) for spec in experiment.specs(scale, seeds[scale]))
    return entries_of(experiment, [index[id] for id in wanted], scale)


def _complete_seeds(experiment: Experiment, scale: Scale, index: Index) -> list[int]:
    """Seeds whose Specs all have a finished record."""
    specs = {seed: experiment.specs(scale, [seed]) for seed in range(LARGEST_SEED)}
    return [seed for seed, needed in specs.items() if all(run_id(spec) in index for spec in needed)]


def _index(homes: Sequence[Path]) -> Index:
    """Finished records by the identity their Spec has today; earlier homes win, fresh records win over stale ones."""
    index: Index = {}
    for record in (record for home in homes for record in all_records(home)):
        try:
            known = record.finished and index.get(run_id(record.spec))
        except EngramError:
            continue  # `engram runs ls` names broken records
        if record.finished and (not known or (known.stale and not record.stale)):
            index[run_id(record.spec)] = record
    return index


def markdown(entries: Sequence[Entry]) -> str:
    """LEDGER.md."""
    head = "| claim | sentence | source | predicted | measured | 95 % interval | n | scale | verdict | command |"
    lines = [head, "|" + "---|" * 10, *(row for entry in entries for row in _markdown_rows(entry.to_json()))]
    return (
        "# Ledger\n\nGenerated by `make ledger` from the committed records; do not edit.\n\n" + "\n".join(lines) + "\n"
    )


def _markdown_rows(entry: dict[str, Any]) -> list[str]:
    """One line for each measure; the sentence stands on the first."""
    rows = []
    for i, part in enumerate(entry["measures"] or [dict.fromkeys(NUMBERS)]):
        first = [f"`{entry['id']}`", entry["statement"], entry["source"]] if i == 0 else ["", "", ""]
        verdict = f"{part['verdict'] or 'missing'}{' (stale)' if entry['stale'] else ''}"
        numbers = [
            f"{part['name']}: {span(part['predicted'])}",
            part["measured"],
            span(part["interval"]),
            part["n"],
        ]
        rows.append(
            "| " + " | ".join(map(str, [*first, *numbers, entry["scale"], verdict, f"`{entry['command']}`"])) + " |"
        )
    return rows

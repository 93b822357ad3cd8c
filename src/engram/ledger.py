"""The ledger: every claim of every experiment, decided from records. Runs nothing."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engram.errors import EngramError
from engram.experiments import LEAST_SEEDS, Experiment, Scale, known_scale
from engram.records import Claim, Measure, Record
from engram.records.shelf import all_records
from engram.records.spec import run_id
from engram.show.tables import span

LARGEST_SEED = 32
Index = dict[str, Record]


@dataclass(frozen=True)
class Entry:
    """A claim and where its numbers come from. Without records there is no claim, only its sentence."""

    id: str
    statement: str
    experiment: Experiment
    scale: Scale | None = None
    claim: Claim | None = None
    stale: bool = False
    diverged: tuple[int, ...] = ()  # seeds whose run ended before its time: they may not silently leave the mean
    settings: dict[str, Any] = field(default_factory=dict)  # fields set otherwise than the experiment does

    @property
    def verdict(self) -> str:
        """The claim's verdict; it cannot agree on too few seeds, nor when a seed diverged."""
        if self.claim is None or self.scale is None:
            return "missing"
        weak = self.diverged or not self.claim.has_seeds(LEAST_SEEDS[self.scale])
        return "inconclusive" if weak and self.claim.verdict == "agrees" else self.claim.verdict

    @property
    def command(self) -> str:
        words = [self.experiment.command]
        words += [f"--scale {self.scale}"] if self.scale else []
        words += [f"--seeds {self.claim.n}"] if self.claim else []
        changes = [f"{name}={json.dumps(value)}" for name, value in self.settings.items()]
        return " ".join([*words, *(["--set", *changes] if changes else [])])

    def to_json(self) -> dict[str, Any]:
        numbers = _measure_json(self.claim.deciding) if self.claim else dict.fromkeys(NUMBERS)
        return numbers | {
            "id": self.id,
            "statement": self.statement,
            "source": self.claim.source if self.claim else None,
            "experiment": self.experiment.name,
            "scale": self.scale,
            "verdict": self.verdict,
            "stale": self.stale,
            "diverged": list(self.diverged),
            "settings": self.settings,
            "measures": [_measure_json(measure) for measure in self.claim.measures] if self.claim else [],
            "command": self.command,
        }


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


def entries_of(
    experiment: Experiment,
    records: Sequence[Record],
    scale: Scale,
    diverged: Sequence[int] = (),
    settings: dict[str, Any] | None = None,
) -> list[Entry]:
    """The claims that a set of records decides."""
    stale = any(record.stale for record in records)
    return [
        Entry(claim.id, claim.statement, experiment, scale, claim, stale, tuple(diverged), settings or {})
        for claim in experiment.claims(records)
    ]


def ledger(experiments: Iterable[Experiment], homes: Sequence[Path]) -> list[Entry]:
    """For each experiment the largest scale with enough seeds, else the largest with any, else its bare sentences."""
    index = _index(homes)
    return [entry for experiment in experiments for entry in _decided(experiment, index)]


def _decided(experiment: Experiment, index: Index) -> list[Entry]:
    largest_first: list[Scale] = ["paper", "quick"]
    seeds = {scale: _ended_seeds(experiment, scale, index) for scale in largest_first}
    whole = {scale: [seed for seed, finished in seeds[scale].items() if finished] for scale in largest_first}
    enough: list[Scale] = [scale for scale in largest_first if len(whole[scale]) >= LEAST_SEEDS[scale]]
    some: list[Scale] = [scale for scale in largest_first if whole[scale]]
    if not some:
        return [Entry(id, text, experiment) for id, text in experiment.statements.items()]
    scale = (enough or some)[0]
    wanted = dict.fromkeys(run_id(spec) for spec in experiment.specs(scale, whole[scale]))
    diverged = [seed for seed, finished in seeds[scale].items() if not finished]
    return entries_of(experiment, [index[id] for id in wanted], scale, diverged)


def missing_seeds(
    experiments: Iterable[Experiment], scale: str, homes: Sequence[Path]
) -> list[tuple[Experiment, list[int]]]:
    """For each experiment the seeds that must still run for this scale to have enough; stale records do not count."""
    size = known_scale(scale)
    fresh = {id: record for id, record in _index(homes).items() if not record.stale}
    ended = {experiment: _ended_seeds(experiment, size, fresh) for experiment in experiments}
    wanted = range(LEAST_SEEDS[size])
    return [(experiment, [seed for seed in wanted if seed not in there]) for experiment, there in ended.items()]


def _ended_seeds(experiment: Experiment, scale: Scale, index: Index) -> dict[int, bool]:
    """Seeds whose Specs have all ended, and whether all of them finished."""
    needed = {seed: [run_id(spec) for spec in experiment.specs(scale, [seed])] for seed in range(LARGEST_SEED)}
    return {seed: all(index[id].finished for id in ids) for seed, ids in needed.items() if set(ids) <= set(index)}


def _index(homes: Sequence[Path]) -> Index:
    """Ended records by the identity their Spec has today; earlier homes win, fresh records win over stale ones."""
    index: Index = {}
    for record in (record for home in homes for record in all_records(home)):
        try:
            if record.ended is None:
                continue
            known = index.get(run_id(record.spec))
            if known is None or (known.stale and not record.stale):
                index[run_id(record.spec)] = record
        except EngramError:
            continue  # `engram runs ls` names broken records
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

"""The ledger: every claim of every experiment, decided from records. Runs nothing."""

import json
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engram.errors import EngramError
from engram.experiments import Experiment, Scale, known_scale
from engram.records import Claim, Measure, Record, Spec
from engram.records.files import replace, writing_to
from engram.records.shelf import all_records
from engram.records.spec import run_id
from engram.show.claims import STATES, by_paper, remarks, state, tally
from engram.show.ledger_page import page
from engram.show.tables import span

Index = dict[str, Record]
PAPERS = (
    "Birth of a Transformer",
    "Understanding factual recall",
    "Smart, Bietti and Sengupta 2025",
    "Ramsauer et al. 2021",
    "Krotov and Hopfield 2016",
    "Demircigil et al. 2017",
    "Hopfield 1982",
)
TALKS, OTHER = "Talks and slides", "Other sources"
OF_FOLDER = {"birth": "Birth of a Transformer"}  # for experiments whose source names no paper


def paper_of(source: str, experiment: str) -> str:
    """The paper that a source names first; talks count only where no paper is named.

    >>> paper_of("talks, 'Capacity: intuition'; Understanding factual recall, Theorem 1", "memory.hebb-capacity")
    'Understanding factual recall'
    """
    named = [paper for paper in PAPERS if paper in source]
    if named:
        return min(named, key=source.index)
    talks = any(word in source for word in ("talks", "slides"))
    return TALKS if talks else OF_FOLDER.get(experiment.partition(".")[0], OTHER)


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
        weak = self.diverged or not self.claim.has_seeds(self.experiment.least_seeds(self.scale))
        return "inconclusive" if weak and self.claim.verdict == "agrees" else self.claim.verdict

    @property
    def source(self) -> str | None:
        """Where the sentence stands; without records what the experiment's file says of all its claims."""
        return self.claim.source if self.claim else getattr(self.experiment.module, "SOURCE", None)

    @property
    def command(self) -> str:
        words = [self.experiment.command]
        words += [f"--scale {self.scale}"] if self.scale else []
        words += [f"--seeds {self.claim.n}"] if self.claim else []
        changes = [shlex.quote(f"{name}={json.dumps(value)}") for name, value in self.settings.items()]
        return " ".join([*words, *(["--set", *changes] if changes else [])])

    def to_json(self) -> dict[str, Any]:
        numbers = _measure_json(self.claim.deciding) if self.claim else dict.fromkeys(NUMBERS)
        return numbers | {
            "id": self.id,
            "statement": self.statement,
            "source": self.source,
            "paper": paper_of(self.source or "", self.experiment.name),
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
    enough: list[Scale] = [scale for scale in largest_first if len(whole[scale]) >= experiment.least_seeds(scale)]
    some: list[Scale] = [scale for scale in largest_first if whole[scale]]
    if not some:
        return [Entry(id, text, experiment) for id, text in experiment.statements.items()]
    scale = (enough or some)[0]
    wanted = dict.fromkeys(run_id(spec) for spec in experiment.specs(scale, whole[scale]))
    diverged = [seed for seed, finished in seeds[scale].items() if not finished]
    return entries_of(experiment, [index[id] for id in wanted], scale, diverged)


def missing_specs(experiments: Iterable[Experiment], scale: str, homes: Sequence[Path]) -> list[Spec]:
    """What must still run for each experiment to have enough seeds at this scale; stale records do not count."""
    size = known_scale(scale)
    fresh = {id for id, record in _index(homes).items() if not record.stale}
    wanted = [spec for e in experiments for spec in e.specs(size, range(e.least_seeds(size)))]
    return [spec for id, spec in {run_id(spec): spec for spec in wanted}.items() if id not in fresh]


def _ended_seeds(experiment: Experiment, scale: Scale, index: Index) -> dict[int, bool]:
    """Seeds whose Specs have all ended, and whether all of them finished; only seeds that some record has are asked."""
    seeds = sorted({record.spec.seed for record in index.values()})
    needed = {seed: [run_id(spec) for spec in experiment.specs(scale, [seed])] for seed in seeds}
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


def write_page(path: Path, entries: Sequence[Entry], records: str, command: str) -> Path:
    """The ledger as one HTML file."""
    if path.is_dir():
        raise EngramError(f"ledger: {path} is a folder; name a file, as in --html ledger.html")
    with writing_to(path.parent):
        replace(path, page([entry.to_json() for entry in entries], records, command).encode())
    return path


def markdown(entries: Sequence[Entry]) -> str:
    """LEDGER.md: how many claims of each paper are in which state, then each claim with its measures."""
    papers = by_paper([entry.to_json() for entry in entries])
    head = (
        "# Ledger\n\nGenerated by `make ledger` from the committed records; do not edit. "
        "[docs/ledger.html](docs/ledger.html) is the same with filters and drawings; open it in a browser.\n\n"
    )
    sections = (f"## {paper}\n\n" + "\n".join(map(_markdown_claim, claims)) for paper, claims in papers.items())
    return head + "\n".join([_markdown_counts(papers), *sections])


def _markdown_counts(papers: dict[str, list[dict[str, Any]]]) -> str:
    everything = [claim for claims in papers.values() for claim in claims]
    rows = [[paper, len(claims), *tally(claims).values()] for paper, claims in [*papers.items(), ("all", everything)]]
    return _markdown_table(["paper", "claims", *STATES], rows)


def _markdown_claim(claim: dict[str, Any]) -> str:
    """The claim's own verdict in its title: it may be weaker than that of its measures."""
    facts = [f"Source: {claim['source'] or 'not stated'}", *([f"{claim['scale']} scale"] if claim["scale"] else [])]
    lines = [_plain(claim["statement"]), _plain(" · ".join(facts)) + f" · `{claim['command']}`"]
    lines += [f"**{_plain(sentence)}**" for sentence in remarks(claim)]
    head = ["what is measured", "predicted", "measured", "95 % interval", "n", "verdict"]
    rows = [
        [m["name"], span(m["predicted"]), m["measured"], span(m["interval"]), m["n"], m["verdict"]]
        for m in claim["measures"]
    ]
    title = f"### `{claim['id']}`: {state(claim)}\n\n"
    return title + "\n\n".join(lines) + "\n" + (f"\n{_markdown_table(head, rows)}" if rows else "")


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *([_plain("–" if cell is None else str(cell)) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _plain(text: str) -> str:
    """Text whose signs Markdown must not read as its own."""
    return re.sub(r"[|*`]|<(?=[a-zA-Z/!])", r"\\\g<0>", text)

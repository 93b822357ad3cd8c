"""The ledger: every claim of every experiment, decided from records. Runs nothing."""

import json
import math
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engram.claims import Claim, Measure, Runs, Scale
from engram.claims.experiment import Experiment, known_scale, unique
from engram.claims.index import Index, Spoiled, refuse_spoiled
from engram.claims.multiplicity import claim_p, risk
from engram.claims.papers import NAMES
from engram.claims.ranges import tested_range
from engram.claims.registration import FRESH, Sentence, Status, made_under, registration
from engram.claims.seeds import seeds_in_words
from engram.specs import Spec
from engram.specs.encode import digest_of
from engram.specs.spec import run_id

PAPERS = (*NAMES, "This project")
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
    settings: dict[str, Any] = field(default_factory=dict)  # fields that override those of the experiment
    seeds: tuple[int, ...] = ()
    range: str = ""  # of sizes within which it was tested
    unregistered: str | None = "it has no record"  # why it does not stand as it was registered
    why_missing: str | None = None  # damage to the records that would decide; None where nothing has been run yet

    @property
    def verdict(self) -> str:
        """The claim's verdict; too few seeds, or one that diverged, decide neither for it nor against it."""
        if self.claim is None or self.scale is None:
            return "missing"
        weak = self.diverged or not self.claim.has_seeds(self.experiment.least_seeds(self.scale))
        return "inconclusive" if weak else self.claim.verdict

    def _surety(self) -> dict[str, float | None]:
        """The p-value of the verdict, and how probable it is at most that it is false; None where none is decided."""
        if self.claim is None or self.verdict not in ("agrees", "disagrees"):
            return {"verdict_p": None, "risk": None}
        p = claim_p(self.claim)
        return {"verdict_p": p, "risk": None if p is None else risk(self.claim)}

    @property
    def registered(self) -> Sentence | None:
        form = registration().get(self.experiment.name)
        return form.claims.get(self.id) if form else None

    @property
    def status(self) -> Status:
        if self.claim is not None and all(measure.exact_law for measure in self.claim.measures):
            return "exact"
        if self.unregistered or self.settings:
            return "exploratory"
        return "fresh seeds" if registration()[self.experiment.name].earlier else "registered"

    @property
    def source(self) -> str | None:
        """Where the sentence stands: as registered, or as the experiment's file says."""
        if self.registered:
            return self.registered.place
        return self.claim.source if self.claim else self.experiment.source

    @property
    def command(self) -> str:
        words = [self.experiment.command]
        words += [f"--scale {self.scale}"] if self.scale else []
        words += [f"--seeds {seeds_in_words(self.seeds)}"] if self.seeds else []
        changes = [shlex.quote(f"{name}={json.dumps(value)}") for name, value in self.settings.items()]
        return " ".join([*words, *(["--set", *changes] if changes else [])])

    def to_json(self) -> dict[str, Any]:
        numbers = _measure_json(self.claim.deciding) if self.claim else dict.fromkeys(NUMBERS)
        return numbers | {
            "id": self.id,
            "statement": self.statement,
            "source": self.source,
            "paper": paper_of(self.experiment.source or self.source or "", self.experiment.name),
            "experiment": self.experiment.name,
            "scale": self.scale,
            "verdict": self.verdict,
            **self._surety(),
            "kind": self.registered.kind if self.registered else None,
            "status": self.status,
            "unregistered": self.unregistered if self.status == "exploratory" else None,
            "looked": self.registered.looked if self.registered else None,
            "quote": self.registered.quote if self.registered else None,
            "gap": self.registered.gap if self.registered else None,
            "seeds": list(self.seeds),
            "range": self.range,
            "stale": self.stale,
            "diverged": list(self.diverged),
            "settings": self.settings,
            "measures": [_measure_json(measure) for measure in self.claim.measures] if self.claim else [],
            "why_missing": self.why_missing,
            "why": self.experiment.explanations.get(self.id) if self.verdict == "disagrees" else None,
            "command": self.command,
        }


NUMBERS = (
    "name", "predicted", "measured", "interval", "n", "verdict", "method", "values", "out_of",
    "resolution", "counts", "note", "bound", "p", "distance",
)  # fmt: skip


def _measure_json(measure: Measure) -> dict[str, Any]:
    pairs = {"predicted": (measure.low, measure.high), "interval": measure.interval}
    bounds = {name: [_finite(bound) for bound in pair] for name, pair in pairs.items()}
    return {
        "name": measure.name,
        "measured": _finite(measure.measured),
        "n": measure.n,
        "verdict": measure.verdict,
        "method": measure.method,
        "values": [_finite(value) for value in measure.values],
        "out_of": list(measure.estimate.out_of),
        "resolution": measure.estimate.resolution,
        "counts": measure.estimate.counts,
        "note": measure.estimate.remark,
        "bound": measure.estimate.bound or None,
        "p": measure.p,
        "distance": None if measure.distance is None else _finite(measure.distance),
    } | bounds


def _finite(value: float) -> float | None:
    """JSON has no infinity: an open side of an interval is null. No digit is lost: verdicts can be redone."""
    return float(value) if math.isfinite(value) else None


def entries_of(
    experiment: Experiment, runs: Runs, diverged: Sequence[int] = (), settings: dict[str, Any] | None = None
) -> list[Entry]:
    """The claims that a set of records decides."""
    stale = any(record.stale for record in runs.records)
    common = stale, tuple(diverged), settings or {}, runs.seeds, tested_range(record.spec for record in runs.records)
    against = _against_registration(experiment, runs, diverged)
    return [
        Entry(claim.id, claim.statement, experiment, runs.scale, claim, *common, against(claim))
        for claim in experiment.claims(runs)
    ]


def _against_registration(experiment: Experiment, runs: Runs, diverged: Sequence[int]) -> Callable[[Claim], str | None]:
    """Says of a claim why it does not stand as it was registered; None if it does."""
    entry = registration().get(experiment.name)
    seeds = entry.seeds(runs.scale) if entry else None
    if entry is None or seeds is None:
        return lambda claim: f"the {runs.scale} scale of {experiment.name} is not registered"
    ended = sorted((*runs.seeds, *diverged))
    if ended != list(seeds):
        some = f"only {len(ended)} of {len(seeds)} registered seeds have ended"
        others = f"its seeds are not the registered ones, {seeds_in_words(seeds)}"
        return lambda claim: some if set(ended) < set(seeds) else others
    forms = entry.forms(runs.scale, [run_id(spec) for spec in experiment.specs(runs.scale, seeds)])
    made = {record.id: made_under(record) for record in runs.records if record.spec.seed in seeds}

    def against(claim: Claim) -> str | None:
        if claim.id not in entry.claims:
            return "it is not registered"
        others = [id for id, then in made.items() if then.get(claim.id, {}).get(runs.scale) != forms[claim.id]]
        begun = f"record {others[0]} was begun under another registration, or before there was one" if others else None
        return begun or entry.claims[claim.id].difference(claim, runs.scale)

    return against


def ledger(experiments: Iterable[Experiment], index: Index) -> list[Entry]:
    """For each experiment its claims at the best scale that there is, or its bare sentences.

    That is the largest whose registered seeds have ended, else the largest with enough other seeds, or with any.
    """
    return [entry for experiment in experiments for entry in _decided(experiment, index)]


def _decided(experiment: Experiment, index: Index) -> list[Entry]:
    try:
        best = best_runs(experiment, index)
    except Spoiled as why:
        return [Entry(id, text, experiment, why_missing=str(why)) for id, text in experiment.statements.items()]
    if best is None:
        return [Entry(id, text, experiment) for id, text in experiment.statements.items()]
    return entries_of(experiment, *best)


def best_runs(
    experiment: Experiment, index: Index, largest_first: Sequence[Scale] = ("paper", "quick")
) -> tuple[Runs, list[int]] | None:
    """The records that decide an experiment's claims, and the seeds that diverged; None if no seed is complete."""
    seeds = {scale: _deciding(experiment, scale, _ended_seeds(experiment, scale, index)) for scale in largest_first}
    whole = {scale: [seed for seed, finished in seeds[scale].items() if finished] for scale in largest_first}
    some: list[Scale] = [scale for scale in largest_first if whole[scale]]
    if not some:
        return None
    fixed: list[Scale] = [
        scale for scale in some if list(seeds[scale]) == list(experiment.registered_seeds(scale) or ())
    ]
    enough: list[Scale] = [scale for scale in some if len(whole[scale]) >= experiment.least_seeds(scale)]
    scale = (fixed or enough or some)[0]
    runs = _runs_of(experiment, index, scale, whole[scale])
    return runs, [seed for seed, finished in seeds[scale].items() if not finished]


def first_runs(experiment: Experiment, index: Index, scale: Scale) -> Runs | None:
    """Those of registered seeds that have finished while others are missing: they can be drawn, and decide nothing."""
    fixed = experiment.registered_seeds(scale) or ()
    ended = _ended_seeds(experiment, scale, index)
    whole = [seed for seed in fixed if ended.get(seed)]
    return _runs_of(experiment, index, scale, whole) if whole else None


def _runs_of(experiment: Experiment, index: Index, scale: Scale, seeds: Sequence[int]) -> Runs:
    labelled = experiment.labelled(scale, seeds)
    ids = [run_id(spec) for spec in unique(labelled)]
    refuse_spoiled(ids, index, f"{experiment.command} --scale {scale} --seeds {seeds_in_words(seeds)}")
    return Runs.of(labelled, {id: index.found[id].record for id in ids}, scale, seeds)


def _deciding(experiment: Experiment, scale: Scale, ended: dict[int, bool]) -> dict[int, bool]:
    """The registered seeds and no others, once all of them have ended; before that, seeds that may be looked at."""
    fixed = experiment.registered_seeds(scale)
    if fixed and set(fixed) <= set(ended):
        return {seed: ended[seed] for seed in fixed}
    return {seed: finished for seed, finished in ended.items() if seed < FRESH}


def missing_specs(experiments: Iterable[Experiment], scale: str, index: Index) -> list[Spec]:
    """What must still run for each experiment to have enough seeds at this scale; stale records do not count."""
    size = known_scale(scale)
    fresh = {id for id, one in index.found.items() if not one.stale}
    seeds = {e: e.registered_seeds(size) or range(e.least_seeds(size)) for e in experiments}
    wanted = [spec for e, own in seeds.items() for spec in e.specs(size, own)]
    return [spec for id, spec in {run_id(spec): spec for spec in wanted}.items() if id not in fresh]


def _ended_seeds(experiment: Experiment, scale: Scale, index: Index) -> dict[int, bool]:
    """Seeds whose Specs have all ended, and whether all of them finished."""
    known, ended = index.found, {}
    for seed in sorted(_possible_seeds(experiment, scale, index)):
        ids = {run_id(spec) for spec in experiment.specs(scale, [seed])}
        if all(id in known or id in index.faults for id in ids):  # what is damaged would count if it were whole
            ended[seed] = all(known[id].finished for id in ids if id in known)
    return ended


def _possible_seeds(experiment: Experiment, scale: Scale, index: Index) -> set[int]:
    """Seeds for which Specs need be built: those that have a record of everything that differs in the seed only.

    Two seeds tell what that is; the first is left out, as some runs are made for it alone.
    """
    one, other = ({_seedless(s) for s in experiment.specs(scale, [seed]) if s.seed == seed} for seed in (1, 2))
    required = [index.seeds.get(identity, set()) for identity in one & other]
    return (set.intersection(*required) if required else index.all_seeds()) | index.faulty_seeds()


def _seedless(spec: Spec) -> str:
    return digest_of(spec.model_copy(update={"seed": 0}))

"""An experiment: a file that says which Specs to run, under which labels, and what their records claim and show."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, get_args

from engram.claims.claim import Claim, Measure
from engram.claims.costs import CORES, Known, identity, known
from engram.claims.registration import registration
from engram.errors import EngramError
from engram.records import Record
from engram.records.files import Row
from engram.specs import Check, Spec
from engram.specs.spec import run_id
from engram.values import BadValue

Scale = Literal["smoke", "quick", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
LEAST_SEEDS: dict[Scale, int] = {"smoke": 1, "quick": 5, "paper": 3}
IN_MINUTES = {"s": 1 / 60, "min": 1.0, "h": 60.0}
SMOKE_MINUTES, DAYS = 0.1, 2 * 24 * 60.0  # smoke takes seconds everywhere; days are at least two
TIME = re.compile(r"(quick and paper|quick|paper)\b[^\d;]*?(?:([\d.]+) (s|min|h)\b|days\b)")
Seeds = Sequence[int]
Labelled = Mapping[Any, Sequence[Spec]]  # by a word, a number, or a tuple of these; None: a plain list was returned
Records = Sequence[Record]
Rows = Sequence[Row]
Measures = Iterator[Measure]
Claimed = Iterator[tuple[str, Sequence[Measure]]]  # measures by the id of their claim
Figure = Any  # matplotlib's, which only the room `show` imports


def known_scale(word: str) -> Scale:
    for scale in SCALES:
        if scale == word:
            return scale
    raise EngramError(f"--scale {word!r}: the allowed scales are {', '.join(SCALES)}")


def hook(module: ModuleType, name: str, default: Any = None) -> Any:
    """What a file itself defines under a name; what it imported from Engram (engram.figure) is no hook."""
    found = vars(module).get(name, default)
    return default if found is getattr(sys.modules["engram"], name, None) else found


def checks(law: str, seeds: Seeds, draws: int = 1, **sizes: Any) -> list[Check]:
    """A Check for each seed; [0] where nothing depends on the seed."""
    return [Check(law=law, sizes=sizes, draws=draws, seed=seed) for seed in seeds]


class Runs(dict[Any, list[Record]]):
    """The records of an experiment, under the labels that its file gave their Specs, seeds in order.

    `scale` is the scale of the Specs, `seeds` are those for which they were made.
    """

    def __init__(self, records: Mapping[Any, list[Record]], scale: Scale, seeds: Seeds = ()):
        super().__init__(records)
        self.scale: Scale = scale
        self.seeds = tuple(seeds)

    @classmethod
    def of(cls, labelled: Labelled, index: Mapping[str, Record], scale: Scale, seeds: Seeds = ()) -> "Runs":
        """A Spec that stands under several labels has one record, which stands under all of them."""
        ids = {label: dict.fromkeys(map(run_id, specs)) for label, specs in labelled.items()}
        return cls({label: [index[id] for id in same] for label, same in ids.items()}, scale, seeds)

    def __missing__(self, label: Any) -> list[Record]:
        raise EngramError(f"no record has the label {label!r}; the labels are {', '.join(map(repr, self))}")

    @property
    def records(self) -> list[Record]:
        """All records, each once, in the order of their labels."""
        return list({record.id: record for same in self.values() for record in same}.values())


@dataclass(frozen=True)
class Experiment:
    """A file with specs(scale, seeds), claims(runs), figure(runs) and perhaps table(runs).

    `specs` returns {label: [Spec, …]}, and the others get the records under the same labels. A file whose `specs`
    returns a plain list gets a plain list of records.
    """

    name: str
    module: ModuleType
    command: str

    @property
    def about(self) -> str:
        """The first sentence of the docstring: what it shows."""
        return (self.module.__doc__ or "").strip().partition("\n")[0]

    @property
    def lab(self) -> tuple[str, str]:
        """What the lab calls its trainings, and what to do there; empty where the file has no LAB."""
        return hook(self.module, "LAB", ("", ""))

    @property
    def times(self) -> str:
        """What a seed takes at each scale, as it was measured, and what the file adds to that (TIMES).

        What a user's file takes only the file itself can say.
        """
        words = " ".join(hook(self.module, "TIMES", "").split())
        quick, paper = self.known("quick"), self.known("paper")
        if quick is None or paper is None:
            return words or "not stated"
        same = quick.words == paper.words
        measured = f"quick and paper {quick.words}" if same else f"quick {quick.words}, paper {paper.words}"
        return f"{measured} on {CORES} cores{words and '; '}{words}"

    def known(self, scale: Scale) -> Known | None:
        """What its runs cost, if it comes with Engram and was measured."""
        own = self.module.__name__.startswith("engram.experiments.")
        return known(self.name, scale) if own else None

    def minutes(self, scale: Scale) -> float:
        """What a seed takes on 2 cores: measured, or as TIMES says it, "quick 20 s a seed, paper 2 min a seed"."""
        if scale == "smoke":
            return SMOKE_MINUTES
        measured = self.known(scale)
        if measured:
            return measured.minutes or DAYS
        for scales, number, unit in TIME.findall(self.times):
            if scale in scales:
                return float(number) * IN_MINUTES[unit] if number else DAYS
        raise EngramError(f"{self.name}: TIMES = {self.times!r} does not say what a seed takes at {scale} scale")

    def seconds_of(self, spec: Spec, scale: Scale, runs: int) -> float:
        """Of one core, for one of the `runs` runs that a seed has; all are taken to be alike where nothing tells."""
        measured = self.known(scale)
        each = self.minutes(scale) * 60 * CORES / max(1, runs)
        return measured.runs.get(identity(spec), each) if measured else each

    @property
    def statements(self) -> dict[str, str]:
        """Claim id → sentence."""
        return hook(self.module, "CLAIMS", {})

    @property
    def explanations(self) -> dict[str, str]:
        """Claim id → why measurement disagrees, and the control that shows the code is right (WHY in its file)."""
        return hook(self.module, "WHY", {})

    @property
    def source(self) -> str | None:
        """Where the sentences stand."""
        return hook(self.module, "SOURCE", None)

    def least_seeds(self, scale: Scale) -> int:
        """Seeds that a verdict needs: those registered, else what its file says (SEEDS), else the rule of the scale."""
        fixed = self.registered_seeds(scale)
        return len(fixed) if fixed else hook(self.module, "SEEDS", {}).get(scale, LEAST_SEEDS[scale])

    def registered_seeds(self, scale: Scale) -> range | None:
        """The seeds that decide its claims at this scale, fixed before they were run."""
        form = registration().get(self.name)
        return form.seeds(scale) if form else None

    def labelled(self, scale: Scale, seeds: Iterable[int]) -> Labelled:
        """The Specs under the labels of the file."""
        try:
            found = hook(self.module, "specs")(scale, list(seeds))
        except BadValue as error:
            raise EngramError(f"{self.name}: {error}") from None
        labelled = dict(found) if isinstance(found, Mapping) else {None: found}
        if not labelled or not all(map(_holds_specs, labelled.values())):
            raise EngramError(
                f"{self.name}: specs(scale, seeds) must return a list of Specs, or lists of Specs by label; "
                f"got {found!r:.80}"
            )
        return labelled

    def specs(self, scale: Scale, seeds: Iterable[int]) -> list[Spec]:
        """The Specs without their labels, each once."""
        return unique(self.labelled(scale, seeds))

    def table(self, runs: Runs) -> list[dict[str, Any]]:
        """Rows that `engram run` prints; most experiments have none."""
        return self._call("table", runs) or []

    def claims(self, runs: Runs) -> list[Claim]:
        """What the file yields: whole Claims, or (id, measures) whose sentence and source stand at its top.

        A file with one sentence may yield its measures alone.
        """
        found: list[Any] = list(self._call("claims", runs) or ())
        if len(self.statements) == 1 and any(isinstance(one, Measure) for one in found):
            found = [(*self.statements, found)]
        return [one if isinstance(one, Claim) else self._claim(*one) for one in found]

    def _claim(self, id: str, measures: Iterable[Any]) -> Claim:
        return Claim(id, self.statements[id], self.source or "", tuple(measures))

    def figure(self, runs: Runs) -> Figure:
        """What the file draws; None if it draws none of its own."""
        return self._call("figure", runs)

    def _call(self, part: str, runs: Runs) -> Any:
        """A part of the file, if it has it; a file without labels gets a plain list."""
        function = hook(self.module, part)
        return function(runs.get(None, runs)) if function else None


def _holds_specs(specs: object) -> bool:
    return isinstance(specs, Sequence) and bool(specs) and all(isinstance(spec, Spec) for spec in specs)


def unique(labelled: Labelled) -> list[Spec]:
    """Every Spec once, in the order of the labels."""
    return list({run_id(spec): spec for specs in labelled.values() for spec in specs}.values())

"""One file per figure or theorem. An experiment's name is folder.file, with `_` shown as `-`."""

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import ValidationError

from engram.errors import EngramError, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from engram.records import Claim, Record, Spec

Scale = Literal["smoke", "quick", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
LEAST_SEEDS: dict[Scale, int] = {"smoke": 1, "quick": 5, "paper": 3}


def known_scale(word: str) -> Scale:
    for scale in SCALES:
        if scale == word:
            return scale
    raise EngramError(f"--scale {word!r}: allowed are {', '.join(SCALES)}")


@dataclass(frozen=True)
class Experiment:
    """A file that says which Specs, which Claims, which Figure."""

    name: str
    module: ModuleType
    command: str

    @property
    def about(self) -> str:
        """The first sentence of the docstring: what it shows."""
        return (self.module.__doc__ or "").strip().partition("\n")[0]

    @property
    def times(self) -> str:
        """What the docstring says about the time of each scale."""
        return " ".join(getattr(self.module, "TIMES", "not stated").split())

    @property
    def statements(self) -> dict[str, str]:
        """Claim id → sentence."""
        return getattr(self.module, "CLAIMS", {})

    def least_seeds(self, scale: Scale) -> int:
        """Seeds that a verdict needs; an experiment of long trainings may ask for fewer (SEEDS in its file)."""
        return getattr(self.module, "SEEDS", {}).get(scale, LEAST_SEEDS[scale])

    def specs(self, scale: Scale, seeds: Iterable[int]) -> "list[Spec]":
        from engram.records import Spec
        from engram.records.encode import explain

        try:
            specs = self.module.specs(scale, seeds)
        except ValidationError as error:
            raise EngramError(f"{self.name}: {error.title}.{explain(error)}") from None
        if not (isinstance(specs, list | tuple) and specs and all(isinstance(spec, Spec) for spec in specs)):
            raise EngramError(f"{self.name}: specs(scale, seeds) must return a list of Specs, not {specs!r:.80}")
        return list(specs)

    def table(self, records: "Sequence[Record]") -> list[dict[str, Any]]:
        """Rows that `engram run` prints, where a file has table(records); most have none."""
        return self.module.table(records) if hasattr(self.module, "table") else []

    def claims(self, records: "Sequence[Record]") -> "list[Claim]":
        return list(self.module.claims(records)) if hasattr(self.module, "claims") else []

    def figure(self, records: "Sequence[Record]") -> "Figure":
        from engram.show.plots import curves

        return self.module.figure(records) if hasattr(self.module, "figure") else curves(records)


def names() -> list[str]:
    """All experiments that come with Engram."""
    here = Path(__file__).parent
    found = (file.relative_to(here).with_suffix("") for file in here.glob("*/*.py") if file.stem != "__init__")
    return sorted(".".join(path.parts).replace("_", "-") for path in found)


def find(name: str) -> Experiment:
    """An experiment by its name, or a user's file by its path."""
    if name.endswith(".py") or "/" in name:
        return _from_file(Path(name))
    if name not in names():
        hint = did_you_mean(name, names())
        raise EngramError(f"no experiment {name!r}; {hint}`engram list` shows all, ./file.py runs your own")
    module = importlib.import_module(f"engram.experiments.{name.replace('-', '_')}")
    return Experiment(name, module, f"engram run {name}")


def _from_file(path: Path) -> Experiment:
    from engram.records.encode import load_file

    module = load_file(path)
    if not hasattr(module, "specs"):
        raise EngramError(f"{path}: an experiment needs a function specs(scale, seeds) that returns a list of Specs")
    return Experiment(path.stem, module, f"engram run {path}")


def matching(wanted: Sequence[str]) -> Iterator[Experiment]:
    """Experiments whose name, or one of whose claims, begins with one of the words; all when there are none."""
    unknown = set(wanted)
    for experiment in map(find, names()):
        hits = {w for w in wanted for known in (experiment.name, *experiment.statements) if known.startswith(w)}
        unknown -= hits
        if hits or not wanted:
            yield experiment
    if unknown:
        raise EngramError(
            f"nothing begins with {', '.join(sorted(unknown))}; `engram list` shows experiments and claims"
        )

"""One file per figure or theorem. An experiment's name is folder.file, with `_` shown as `-`."""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from engram.claims.experiment import Experiment, Figure, Runs, hook
from engram.errors import EngramError, did_you_mean
from engram.specs.encode import load_file


class Shown(Experiment):
    """An experiment whose figure says above it what was run."""

    def figure(self, runs: Runs) -> Figure:
        drawn = super().figure(runs)
        if drawn is None:
            return None
        from engram.show.subtitles import subtitled

        return subtitled(drawn, runs)


def names() -> list[str]:
    """All experiments that come with Engram."""
    here = Path(__file__).parent
    found = (file.relative_to(here).with_suffix("") for file in here.glob("*/*.py") if file.stem != "__init__")
    return sorted(".".join(path.parts).replace("_", "-") for path in found)


def groups() -> list[str]:
    """The folders of experiments: what stands before the dot of a name."""
    return sorted({name.partition(".")[0] for name in names()})


def is_file(name: str) -> bool:
    """Whether a name is that of a user's file."""
    return name.endswith(".py") or "/" in name


def find(name: str) -> Experiment:
    """An experiment by its name, or a user's file by its path."""
    if is_file(name):
        return _from_file(Path(name))
    if name not in names():
        hint = did_you_mean(name, names())
        raise EngramError(f"no experiment {name!r}; {hint}`engram list --all` shows all, ./file.py runs your own")
    module = importlib.import_module(f"engram.experiments.{name.replace('-', '_')}")
    return Shown(name, module, f"engram run {name}")


def _from_file(path: Path) -> Experiment:
    module = load_file(path)
    if hook(module, "specs") is None:
        raise EngramError(f"{path}: an experiment needs a function specs(scale, seeds) that returns a list of Specs")
    return Shown(path.stem, module, f"engram run {path}")


def searched(words: Sequence[str]) -> list[Experiment]:
    """Experiments that every word finds: by the beginning of their name or of a claim's, else by what they say."""
    found = [find(name) for name in names()]
    for word in words:
        named = [one for one in found if any(known.startswith(word) for known in (one.name, *one.statements))]
        found = named or [one for one in found if word.lower() in _said(one)]
    return found


def _said(experiment: Experiment) -> str:
    """All that an experiment says of itself, to be searched."""
    parts = (experiment.name, experiment.about, experiment.source or "", *experiment.statements.values())
    return " ".join((*parts, *experiment.statements)).lower()


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

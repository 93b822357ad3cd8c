"""An experiment from the records that there are: figure, claims and verdicts. Trains nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from engram.claims.experiment import SCALES, Experiment, Runs, Scale, known_scale
from engram.claims.findings import stamp
from engram.claims.ledger import Entry, Index, best_runs, entries_of, first_runs
from engram.errors import EngramError, did_you_mean, in_python_words, refuse_other
from engram.experiments import find, is_file, names
from engram.records import Record
from engram.records.files import COMMITTED, home
from engram.records.remembered import Memory
from engram.records.shelf import of_spec
from engram.specs.spec import run_id


@dataclass(frozen=True)
class Shown:
    """What the records say; `claims` are the dicts that --json prints. Without records there is no scale."""

    experiment: Experiment
    claims: list[dict[str, Any]]
    scale: Scale | None = None
    seeds: Sequence[int] = ()
    records: Sequence[Record] = ()
    figures: Sequence[Path] = ()
    table: Sequence[dict[str, Any]] = field(default_factory=list)
    caption: str | None = None  # of a figure that was written for a paper
    height: float = 0.0  # inches, of the same

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment.name,
            "about": self.experiment.about,
            "scale": self.scale,
            "seeds": list(self.seeds),
            "claims": self.claims,
            "records": [record.id for record in self.records],
            "figures": [str(path) for path in self.figures],
            "table": list(self.table),
        } | ({"caption": self.caption} if self.caption else {})


def show(
    name: str,
    scale: str | None = None,
    output: Path | None = None,
    width: str | float | None = None,
    font: str = "sans",
) -> Shown:
    """Figure and claims of an experiment, of one of its claims, or of a user's file.

    scale     smoke, quick or paper; None: the scale that decides the ledger
    output    a file for the figure, as `figure` writes it; None: all formats, in the home of runs
    """
    experiment, best = _best(name, scale)
    if best is None:
        bare = (Entry(id, text, experiment) for id, text in experiment.statements.items())
        return Shown(experiment, [entry.to_json() for entry in bare])
    runs, diverged = best
    claims = [entry.to_json() for entry in entries_of(experiment, runs, diverged)]
    about = (experiment, claims, runs.scale, runs.seeds, runs.records)
    if output is not None:
        drawn, caption = _drawn_for(experiment, runs, output, width, font)
        return Shown(*about, [output], experiment.table(runs), caption, drawn.get_figheight())
    paths = (_draw if is_file(name) else _figures)(experiment, runs)
    return Shown(*about, paths, experiment.table(runs))


@in_python_words()
def figure(
    name: str,
    output: str | Path | None = None,
    width: str | float | None = None,
    font: str = "sans",
    scale: str | None = None,
) -> Any:
    """The figure of an experiment, of one of its claims, or of a user's file, from the records that there are.

    output    a file to write it to: .pdf, .svg, .png, or .csv and .json with its numbers
    width     as wide as a column of a paper: "3.25in", "8.3cm", "234pt", or a number of inches. What was run then
              stands in no line above the figure, but belongs in the caption
    font      sans, or serif, which goes with Times
    scale     smoke, quick or paper; None: the scale that decides the ledger
    """
    refuse_other(str, name, "figure: give the name of an experiment, of a claim, or of a file")
    refuse_other(str | Path | None, output, "output: must be a path")
    experiment, best = _best(name, scale)
    if best is None:
        raise EngramError(f"figure: no record of {name} is here or committed; {experiment.command} makes some")
    return _drawn_for(experiment, best[0], Path(output) if output else None, width, font)[0]


def _best(name: str, scale: str | None) -> tuple[Experiment, tuple[Runs, list[int]] | None]:
    """The experiment, and its runs with those that diverged."""
    experiment, scales = find_shown(name), _scales(name, scale)
    return experiment, _own_runs(experiment, scales) if is_file(name) else _known_runs(experiment, scales)


def _drawn_for(
    experiment: Experiment, runs: Runs, output: Path | None, width: str | float | None, font: str
) -> tuple[Any, str]:
    """The one figure, as it was asked for and written where it was asked for, and the line above it."""
    from engram.show.paper import fitted, inches, known_font
    from engram.show.save import known_suffix, save_as

    known_font(font)
    size = None if width is None else inches(width)
    if output is not None:
        known_suffix(output)
    one, *others = _own_figures(experiment, runs)
    if others:
        raise EngramError(f"{experiment.name} has {1 + len(others)} figures, not one; give its file a figure(runs)")
    caption = " ".join(one.get_suptitle().split())
    if size is not None:
        one = fitted(one, size, known_font(font))
    if output is not None:
        save_as(one, output)
    return one, caption


def find_shown(name: str) -> Experiment:
    """An experiment by its name, by the name of one of its claims, or a user's file."""
    if is_file(name) or name in names():
        return find(name)
    claims = {id: experiment for experiment in map(find, names()) for id in experiment.statements}
    if name not in claims:
        hint = did_you_mean(name, [*names(), *claims])
        raise EngramError(f"no experiment or claim {name!r}; {hint}`engram list --all` shows all")
    return claims[name]


def _scales(name: str, scale: str | None) -> list[Scale]:
    """The largest first; smoke never decides, and is shown when it is asked for, or of a file of one's own."""
    if scale is not None:
        return [known_scale(scale)]
    return [size for size in reversed(SCALES) if size != "smoke" or is_file(name)]


def _index() -> Index:
    return Index.of([home(), COMMITTED])


def _known_runs(experiment: Experiment, scales: Sequence[Scale]) -> tuple[Runs, list[int]] | None:
    """The runs that decide; at a scale of which only some registered seeds are there, these."""
    index = _index()
    best = best_runs(experiment, index, scales)
    if best is not None or len(scales) > 1:
        return best
    first = first_runs(experiment, index, scales[0])
    return None if first is None else (first, [])


def _own_runs(experiment: Experiment, scales: Sequence[Scale]) -> tuple[Runs, list[int]] | None:
    """The finished runs of a file, from seed 0 on: what a record says of such a file is not believed unread."""
    for scale in scales:
        found = list(takewhile(bool, _records_by_seed(experiment, scale)))
        if found:
            scale = _as_it_is_run(experiment, scale, len(found))
            seeds, index = range(len(found)), {record.id: record for same in found for record in same}
            return Runs.of(experiment.labelled(scale, seeds), index, scale, seeds), []
    return None


def _as_it_is_run(experiment: Experiment, scale: Scale, seeds: int) -> Scale:
    """A file whose runs are the same at every scale was run as `engram run` does it by default: at quick scale."""
    ids = [[run_id(spec) for spec in experiment.specs(size, range(seeds))] for size in (scale, "quick")]
    return "quick" if ids[0] == ids[1] else scale


def _records_by_seed(experiment: Experiment, scale: Scale) -> Iterator[list[Record]]:
    """Those of seeds 0, 1, …; none for a seed of which a run is missing."""
    for seed in count():
        found = [of_spec(spec, [home()]) for spec in experiment.specs(scale, [seed])]
        yield [record for record in found if record] if all(found) else []


def _figures(experiment: Experiment, runs: Runs) -> list[Path]:
    """Those that were drawn before, as long as the same records and the same code would draw them, else new ones."""
    memory, drawn_from = Memory("figures", home()), stamp(runs)
    key, known = f"{experiment.name}-{runs.scale}", memory.recall()
    paths = [Path(path) for path in known.get(key, {}).get("files", {})]
    if known.get(key) != _drawn(drawn_from, paths):
        paths = _draw(experiment, runs)
        memory.keep(known | {key: _drawn(drawn_from, paths)})
    return paths


def _drawn(drawn_from: str, paths: Sequence[Path]) -> dict[str, Any]:
    """What is remembered of figures: their records, and how the files look."""
    return {"from": drawn_from, "files": {str(path): path.stat().st_mtime_ns for path in paths if path.exists()}}


def _draw(experiment: Experiment, runs: Runs) -> list[Path]:
    """Files beside those of `engram run`, which may show fewer seeds."""
    from engram.show.save import save_figure

    figures, stem = _own_figures(experiment, runs), f"{experiment.name}-{runs.scale}-shown"
    stems = [stem] if len(figures) == 1 else [f"{stem}-{i}" for i in range(1, len(figures) + 1)]
    named = zip(figures, stems, strict=True)
    return [path for one, name in named for path in save_figure(one, home() / "figures", name)]


def _own_figures(experiment: Experiment, runs: Runs) -> list[Any]:
    """The experiment's own figure, else plain curves."""
    from engram.show.curves import plain_curves

    drawn = experiment.figure(runs)
    return [drawn] if drawn is not None else plain_curves(runs.records)

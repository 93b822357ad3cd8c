"""The jobs of Engram as functions; the command line and Python call the same ones."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, Protocol, overload, runtime_checkable

from engram.claims.experiment import Experiment, Labelled, Runs, Scale, known_scale, unique
from engram.claims.ledger import entries_of
from engram.claims.result import Result
from engram.claims.summaries import choose_metrics, over_seeds
from engram.engines import OnRow, Outcome
from engram.engines.choosing import HERE, Where
from engram.engines.local import cores
from engram.engines.manner import Manner
from engram.engines.purposes import NO_PURPOSES, Purposes, purposes_of, telling
from engram.errors import EngramError, in_python_words, refuse_other
from engram.experiments import find as find_experiment
from engram.pages import Page, write_page
from engram.records import Record
from engram.records.about import label_in_words
from engram.records.files import home
from engram.records.places import named, named_own
from engram.runner.recheck import Extent
from engram.runner.recheck import recheck as recomputed
from engram.signals import keeping
from engram.specs import Spec
from engram.specs.settings import all_with_settings, short_hash, tells_apart, with_settings
from engram.specs.spec import run_id


@runtime_checkable
class Watch(Protocol):
    """What is shown while Specs run: a context in which it is told of every row, as `engram.api.unwatched` shows."""

    def __call__(self, specs: Sequence[Spec], purposes: Purposes, /) -> AbstractContextManager[OnRow]: ...


@contextmanager
def unwatched(specs: Sequence[Spec], purposes: Purposes) -> Iterator[OnRow]:
    """Nothing is shown while it runs."""
    yield lambda spec, row: None


def load(name: str | Path) -> Record:
    """The record of a run by its id, a unique part of it, `last`, or its folder; or a committed record by its id."""
    refuse_other(str | Path, name, "load: give a run's id, a part of it, or 'last'")
    return Record(named(str(name), home()))


def load_own(name: str) -> Record:
    """The same without committed records, which may not be changed."""
    return Record(named_own(name, home()))


@overload
def run(what: str, *args: Any, **more: Any) -> Result: ...
@overload
def run(what: Spec, *args: Any, **more: Any) -> Record: ...
@overload
def run(what: Sequence[Spec], *args: Any, **more: Any) -> list[Record]: ...
@in_python_words()
def run(
    what: "str | Spec | Sequence[Spec]",
    scale: str = "quick",
    seeds: int | Iterable[int] = 1,
    settings: dict[str, Any] | None = None,
    device: str = "auto",
    watch: Watch | None = None,
    path: str = "auto",
    snapshots: int | None = None,
    engine: str | Manner = "local",
) -> Result | Record | list[Record]:
    """Run an experiment, a user's file, or Specs; finished records are reused, unfinished ones resumed.

    what        as in `engram list`, or a path such as ./mine.py: the Result has claims, records and figures. A Spec
                gives its Record, a list of Specs a list of Records; they say themselves what is run
    scale       smoke, quick or paper
    seeds       how many, from 0 on, or which
    settings    fields to override, as in {"task.K": 3}
    device      auto, cpu, cuda or mps
    watch       what to show while it runs: a context manager made of Specs and purposes, which gives a function of a
                Spec and a row; None shows nothing
    path        how gradients are computed: auto, fast or reference
    snapshots   steps between stored weights, besides steps 0, 1, 2, 4, 8, …; no number depends on it
    engine      where it is computed: local, ray or slurm, or an engine such as engram.Ray(address="node1:6379")
    """
    if snapshots is not None and (not isinstance(snapshots, int) or snapshots < 1):
        raise EngramError(f"snapshots: must be a whole number of at least 1; got {snapshots!r:.60}")
    where, watch = Where(engine, device, path), watch or unwatched
    if isinstance(what, str):
        return run_experiment(what, scale, seeds, settings, where, watch, snapshots)
    specs = [what] if isinstance(what, Spec) else what
    if not (isinstance(specs, Sequence) and specs and all(isinstance(spec, Spec) for spec in specs)):
        raise EngramError(f"run: give an experiment's name, a Spec or a list of Specs; got {what!r:.60}")
    chosen = [with_settings(spec, settings or {}) for spec in specs]
    records = run_specs(chosen, where, watch, snapshots=snapshots)
    return records[0] if isinstance(what, Spec) else records


def run_experiment(
    name: str,
    scale: str,
    seeds: int | Iterable[int],
    settings: dict[str, Any] | None,
    where: Where = HERE,
    watch: Watch = unwatched,
    snapshots: int | None = None,
) -> Result:
    """Its runs, its claims and its figure."""
    began, experiment, settings = time.monotonic(), find_experiment(name), settings or {}
    size, seeds = known_scale(scale), seed_list(seeds)
    labelled = labelled_specs(experiment, size, seeds, settings)
    purposes = purposes_of(experiment.name, size, labelled, settings)
    records = run_specs(unique(labelled), where, watch, purposes, snapshots)
    with keeping(_finished):
        runs = Runs.of(labelled, {record.id: record for record in records}, size, seeds)
        apart = [path for path in settings if tells_apart(experiment.labelled(size, [0]).values(), path)]
        claims, figures, notes = _read_off(experiment, runs, settings) if not apart else _relabelled(runs, apart)
        stem = f"{experiment.name}-{size}" + (f"-{short_hash(settings)}" if settings else "")
        names = [stem] if len(figures) == 1 else [f"{stem}-{i}" for i in range(1, len(figures) + 1)]
        paths = save_figures(dict(zip(names, figures, strict=True)))
        table = [] if settings else experiment.table(runs)
        return Result(experiment, size, time.monotonic() - began, claims, records, paths, table, notes)


def seed_list(seeds: int | Iterable[int]) -> list[int]:
    """How many, from 0 on, or which."""
    if isinstance(seeds, str) or not isinstance(seeds, int | Iterable):
        raise EngramError(f"seeds: say how many, or which, as in 3 or [0, 4]; got {seeds!r:.60}")
    return list(range(seeds) if isinstance(seeds, int) else seeds)


def _finished() -> str:
    return "all runs are finished and kept; the same command draws the figures"


def labelled_specs(experiment: Experiment, scale: Scale, seeds: Sequence[int], settings: dict[str, Any]) -> Labelled:
    """The Specs of an experiment with some fields overridden, each in the Specs that have it; labels stay."""
    if not seeds:
        raise EngramError("--seeds: at least one seed is needed; got none")
    labelled = experiment.labelled(scale, seeds)
    changed = iter(all_with_settings([spec for specs in labelled.values() for spec in specs], settings))
    return {label: list(islice(changed, len(specs))) for label, specs in labelled.items()}


def run_specs(
    specs: Sequence[Spec],
    where: Where = HERE,
    watch: Watch = unwatched,
    purposes: Purposes = NO_PURPOSES,
    snapshots: int | None = None,
) -> list[Record]:
    """The records of Specs, as many at a time as there is room for; one that fails does not stop the others.

    What each is made for (`purposes`, by run id) is said by lists from then on.
    """
    return attempt_specs(specs, where, watch, purposes, snapshots).all_records()


def attempt_specs(
    specs: Sequence[Spec],
    where: Where = HERE,
    watch: Watch = unwatched,
    purposes: Purposes = NO_PURPOSES,
    snapshots: int | None = None,
) -> Outcome:
    """The same for those who can do without some of the records: it says what finished and what failed."""
    engine = where.build(snapshots)
    with watch(specs, purposes) as on_row:
        return engine.run(specs, telling(on_row, home(), purposes, snapshots))


def _read_off(
    experiment: Experiment, runs: Runs, settings: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[Any], list[str]]:
    """Claims and figures. With fields overridden the experiment's own may not apply: then plain curves, and why."""
    claims, figure, notes = [], None, []
    does_not_apply = (EngramError,) if settings else ()
    try:
        claims = [entry.to_json() for entry in entries_of(experiment, runs, settings=settings)]
    except does_not_apply as error:
        notes.append(f"The experiment's claims do not apply with these settings: {error}")
    try:
        figure = experiment.figure(runs)
    except does_not_apply as error:
        notes.append(f"The experiment's figure cannot be drawn with these settings: {error}")
    return claims, _figures(runs, figure), notes


def _figures(runs: Runs, figure: Any) -> list[Any]:
    """The experiment's own, or one that compares its labels, and plain curves of each kind of training."""
    from engram.show.curves import plain_curves
    from engram.show.sweeps import sweep_figure

    if figure is not None:
        return [figure]
    trained = {label: [r for r in same if r.kind == "Train"] for label, same in runs.items()}
    if len(runs) < 2 or not all(trained.values()):
        return plain_curves(runs.records)
    metrics = choose_metrics(runs.records)
    about = f"{runs.scale} scale, {len(runs.seeds)} seed{'s' * (len(runs.seeds) > 1)}"
    rows = [
        {"label": label_in_words(label), "settings": {}, "n": len(same)}
        | {"metrics": {name: over_seeds(same, name) for name in metrics}}
        for label, same in trained.items()
    ]
    return [sweep_figure(rows, [], metrics, about, zipped=False), *plain_curves(runs.records)]


def _relabelled(runs: Runs, apart: Sequence[str]) -> tuple[list[dict[str, Any]], list[Any], list[str]]:
    """Claims and figure speak of runs by their labels; where labels no longer say what was run, there are none."""
    from engram.show.curves import plain_curves

    one = f"{', '.join(apart)} tells the runs of this experiment apart, but was set to one value for all of them"
    return [], plain_curves(runs.records), [f"The experiment's claims and figure do not apply: {one}."]


def save_figures(figures: dict[str, Any]) -> list[Path]:
    from engram.show.save import save_figure

    return [path for name, figure in figures.items() for path in save_figure(figure, home() / "figures", name)]


def birth(
    fresh: bool = False,
    device: str = "auto",
    watch: Watch = unwatched,
    path: str = "auto",
    report_page: Page | None = None,
) -> tuple[Result, Path]:
    """The main job: one run of birth.joint at quick scale with all its pictures, and its report.

    report_page    makes the report; without one it has figures and claims alone
    """
    from engram.show.gallery import NAMES, gallery
    from engram.show.report import report
    from engram.show.save import figure_paths

    began, experiment = time.monotonic(), find_experiment("birth.joint")
    purposes = purposes_of(experiment.name, "quick", {"joint": (specs := birth_specs(fresh))}, {})
    (record,) = records = run_specs(specs, Where(device=device, path=path), watch, purposes)
    claims = [
        entry.to_json() for entry in entries_of(experiment, Runs({"joint": records}, "quick", [record.spec.seed]))
    ]
    with keeping(_finished):
        page = home() / "reports" / f"{record.id}.html"
        figures = [p for name in NAMES for p in figure_paths(home() / "figures", f"{record.id}-{name}")]
        if not _up_to_date([page, *figures], record):
            pictures = gallery(record)
            save_figures({f"{record.id}-{picture.name}": picture.figure for picture in pictures})
            html = (report_page or report)(
                "The birth of an induction head", [(record, pictures)], claims, experiment.least_seeds("quick")
            )
            write_page(page, html, "report", "-o report.html")  # last: it seals the rest
    return Result(experiment, "quick", time.monotonic() - began, claims, records, figures), page


def _up_to_date(paths: Sequence[Path], record: Record) -> bool:
    """Whether all files were made after the record was finished and after the code that draws them was changed."""
    code = Path(__file__).parent
    drawing = (*(code / "show").glob("*.*"), *(code / "lab").glob("*.py"), *(code / "lab/static").glob("*.*"))
    newest = max(file.stat().st_mtime for file in (record.folder / "digest.json", *drawing))
    return all(path.exists() and path.stat().st_mtime > newest for path in paths)


def birth_specs(fresh: bool) -> list[Spec]:
    """The run with the highest seed that was begun, or with fresh the first seed that was not."""
    return begun_last(partial(find_experiment("birth.joint").specs, "quick"), fresh)


def begun_last(specs_of: Callable[[Sequence[int]], list[Spec]], fresh: bool) -> list[Spec]:
    """The same of any training that is made of a list of seeds."""
    new = next(seed for seed in count() for spec in specs_of([seed]) if not (home() / run_id(spec)).exists())
    return specs_of([new if fresh else max(0, new - 1)])


def recheck(
    record: Record, steps: int = 20, seconds: float = 20.0, everything: bool = False, pick: int | None = None
) -> dict[str, Any]:
    """A record against its digests, and against rows that are computed again: how many, engram.runner.recheck says."""
    chosen = {} if pick is None else {"pick": pick}
    return recomputed(record, Extent(steps, seconds, everything, **chosen), cores())

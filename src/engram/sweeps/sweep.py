"""A sweep from its plan to one table and one figure. Finished runs are reused: the same command goes on."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from engram.api import Watch, attempt_specs, labelled_specs, save_figures, seed_list, unwatched
from engram.claims.experiment import Labelled, Scale, known_scale
from engram.claims.summaries import choose_metrics, over_seeds
from engram.engines import Failed, Outcome
from engram.engines.choosing import HERE, Where
from engram.engines.manner import Manner
from engram.engines.purposes import purposes_of
from engram.errors import EngramError, explain_crash, in_python_words, refuse_other
from engram.experiments import find
from engram.records import Record
from engram.records.about import label_in_words
from engram.records.files import home, replace, writing_to
from engram.records.frames import frame_of
from engram.specs import Spec
from engram.specs.encode import encode
from engram.specs.settings import short_hash, with_settings
from engram.specs.spec import run_id
from engram.sweeps.cells import Axes, Cell, Point, merged, points
from engram.sweeps.cost import Needs, left, needs
from engram.sweeps.lines import aligned, as_csv, cells, columns_of, lines_of, tidy
from engram.values import Value

SHOWN = 20  # settings, where a sweep is asked what it is


@dataclass(frozen=True)
class Planned:
    """What a sweep would run; nothing has run yet."""

    name: str
    scale: Scale
    axes: Axes
    seeds: list[int]
    cells: list[Cell]
    zipped: bool = False

    @property
    def fields(self) -> list[str]:
        """Those that take several values: the axes of the figure."""
        return [name for name, values in self.axes.items() if len(values) > 1]

    @cached_property
    def specs(self) -> list[Spec]:
        return [spec for cell in self.cells for spec in cell.specs]

    @cached_property
    def left(self) -> list[Spec]:
        """What is not finished in the home of runs."""
        return left(self.specs, home())

    def needs(self, path: str = "auto") -> Needs | None:
        """About what is left takes, by the time of a few steps; None where this is not known."""
        ids = set(map(run_id, self.left))
        return needs([[spec for spec in cell.specs if run_id(spec) in ids] for cell in self.cells], path, home())

    def to_json(self) -> dict[str, Any]:
        cells = [{"label": label_in_words(c.label), "settings": c.at, "runs": _ids(c)} for c in self.cells]
        runs = {"runs": len(self.specs), "left": len(self.left)}
        return {"sweep": self.name, "scale": self.scale, "seeds": self.seeds, **runs, "cells": cells}


@dataclass(frozen=True, repr=False)
class Swept:
    """What a sweep has found: a row for each setting, with the mean over seeds and its 95 % interval.

    rows     all numbers, those of each seed too; `table` and `frame()` have a line for each setting
    csv      the file beside the figure with what each seed has measured, a line for each setting, seed and metric
    """

    planned: Planned
    seconds: float
    records: list[Record]
    rows: list[dict[str, Any]]
    metrics: list[str]
    figures: list[Path]
    csv: Path

    def to_json(self) -> dict[str, Any]:
        about = {"sweep": self.planned.name, "scale": self.planned.scale, "seconds": round(self.seconds, 1)}
        return about | {
            "metrics": self.metrics,
            "rows": self.rows,
            "figures": [str(path) for path in self.figures],
            "csv": str(self.csv),
        }

    @property
    def table(self) -> list[dict[str, Any]]:
        """A line for each setting: its fields, the mean of each metric with the ends of its interval, and n."""
        return lines_of(self.rows)

    def frame(self) -> Any:
        """The table as a pandas DataFrame where pandas is installed, else as a dict of arrays."""
        return frame_of(columns_of(self.table))

    def to_csv(self, path: str | Path) -> Path:
        """What each seed has measured as a file: a line for each setting, seed and metric."""
        path = Path(path)
        with writing_to(path.parent):
            replace(path, as_csv(tidy(self.rows)).encode())
        return path

    def __repr__(self) -> str:
        head = f"<sweep of {self.planned.name}: {len(self.rows)} settings, {len(self.records)} runs>"
        more = ["…"] * (len(self.rows) > SHOWN)
        return "\n".join([head, *aligned(cells(self.table[:SHOWN])), *more])

    def _repr_html_(self) -> str:
        from engram.show.notebook import table_and_picture

        head = f"sweep of {self.planned.name}, {self.planned.scale} scale"
        return table_and_picture(head, cells(self.table), self.figures)


def plan_sweep(
    what: str | Spec, axes: Axes, scale: str = "quick", seeds: int | Sequence[int] = 1, zipped: bool = False
) -> Planned:
    """The runs of an experiment, a user's file or a Spec at every combination of values, or of pairs (zipped)."""
    if not axes:
        raise EngramError("sweep: name at least one field with its values, as in --set task.K=1,3,5")
    size, seeds = known_scale(scale), seed_list(seeds)
    axes = {name: _plain(name, values) for name, values in axes.items()}
    if not seeds:
        raise EngramError("--seeds: at least one seed is needed; got none")
    at = points(axes, zipped)
    cells = [Cell(label, point, tuple(specs)) for point in at for label, specs in _at(what, point, size, seeds).items()]
    name = find(what).name if isinstance(what, str) else what.title
    return Planned(name, size, axes, seeds, merged(cells), zipped)


def _plain(name: str, values: Any) -> list[Any]:
    """Objects such as SGD(lr=0.1) as a record stores them, numbers of an array as plain ones; all else as it is."""
    if isinstance(values, str | bytes | Mapping | Value) or not isinstance(values, Iterable):
        raise EngramError(f"{name}: give a list of values, as in [16, 32]; got {values!r:.60}")
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [encode(value) if isinstance(value, Value) else value for value in listed]


def _at(what: str | Spec, point: Point, scale: Scale, seeds: list[int]) -> Labelled:
    if isinstance(what, str):
        return labelled_specs(find(what), scale, seeds, point)
    return {None: [with_settings(what, point | {"seed": seed}) for seed in seeds]}


@in_python_words()
def sweep(
    what: "str | Spec",
    axes: Axes,
    scale: str = "quick",
    seeds: int | Sequence[int] = 1,
    zipped: bool = False,
    metrics: Sequence[str] = (),
    device: str = "auto",
    watch: Watch | None = None,
    path: str = "auto",
    engine: str | Manner = "local",
) -> Swept:
    """Run an experiment, a user's file or a Spec with fields at several values; one table and one figure come of it.

    what        as in `engram list`, a path such as ./mine.py, or a Spec
    axes        the values of each field, as in {"model.d": [16, 32, 64], "task.K": [1, 3, 5]}
    seeds       how many, from 0 on, or which
    zipped      pair the values by their place instead of combining each with each
    metrics     columns to compare, each as its mean over the last tenth of the steps; by default accuracy and loss
    watch       what to show while it runs, as in engram.run
    engine      where it is computed: local, ray or slurm, or an engine such as engram.Ray(address="node1:6379")
    """
    refuse_other(str | Spec, what, "sweep: give an experiment's name or a Spec")
    if not (isinstance(axes, Mapping) and axes):
        example = '{"task.K": [1, 3, 5]}'
        raise EngramError(f"sweep: name at least one field with its values, as in {example}; got {axes!r:.60}")
    if isinstance(metrics, str):
        raise EngramError(f'metrics: give a list of columns, as in ["{metrics}"]')
    return run_sweep(
        plan_sweep(what, axes, scale, seeds, zipped), metrics, Where(engine, device, path), watch or unwatched
    )


def run_sweep(planned: Planned, metrics: Sequence[str] = (), where: Where = HERE, watch: Watch = unwatched) -> Swept:
    """What was planned, as far as it is not finished."""
    from engram.show.sweeps import sweep_figure

    began = time.monotonic()
    purposes: dict[str, Any] = {}
    for cell in planned.cells:
        purposes |= purposes_of(planned.name, planned.scale, {cell.label: list(cell.specs)}, cell.at)
    outcome = attempt_specs(planned.specs, where, watch, purposes)
    finished = [record for record in outcome.records if record.finished]
    if not finished:
        raise Failed(outcome)
    chosen = choose_metrics(finished, metrics)
    rows = [_row(cell, finished, _failures(outcome), chosen) for cell in planned.cells]
    about = f"{planned.name}, {planned.scale} scale, {len(planned.seeds)} seed{'s' * (len(planned.seeds) > 1)}"
    figure = sweep_figure(rows, planned.fields, chosen, about, zipped=planned.zipped)
    named = f"sweep-{planned.name}-{planned.scale}-{short_hash([planned.axes, planned.seeds, chosen, planned.zipped])}"
    figures, table = save_figures({named: figure}), home() / "figures" / f"{named}-table.csv"
    swept = Swept(planned, time.monotonic() - began, finished, rows, chosen, figures, table)
    swept.to_csv(table)
    return swept


def _failures(outcome: Outcome) -> dict[str, str]:
    """What went wrong, by run: just now, or when it was run before."""
    before = {r.id: f"run {r.id}: {(r.ended or {})['end']}" for r in outcome.records if not r.finished}
    return before | {id: explain_crash(error) for id, error in outcome.failed.items()}


def _row(cell: Cell, finished: Sequence[Record], failures: dict[str, str], metrics: Sequence[str]) -> dict[str, Any]:
    """Runs that diverged are named, and are no part of the means."""
    ids = _ids(cell)
    records = [record for record in finished if record.id in ids]
    about = {"label": label_in_words(cell.label), "settings": cell.at, "n": len(records), "runs": ids}
    about |= {"seeds": [record.spec.seed for record in records]}
    failed = {id: why for id, why in failures.items() if id in ids}
    return about | {"metrics": {name: over_seeds(records, name) for name in metrics}, "failed": failed}


def _ids(cell: Cell) -> list[str]:
    return [run_id(spec) for spec in cell.specs]

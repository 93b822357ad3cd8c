"""engram sweep: an experiment with some fields at several values."""

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from engram.cli.ahead import agreed_to, hint_at_commas, spelt_out, warn_of_short_texts
from engram.cli.budget import Budget, keep_within, seconds_in
from engram.cli.output import answer, console, near, say, tell, tell_figures, watched
from engram.cli.where import HERE, Computing

Several = Annotated[tuple[str, ...], Parameter(name="--set", consume_multiple=1)]


def sweep(
    name: str,
    *,
    settings: Several = (),
    zipped: Annotated[bool, Parameter(name="--zip")] = False,
    scale: str = "quick",
    seeds: str = "1",
    metric: Annotated[tuple[str, ...], Parameter(consume_multiple=1)] = (),
    dry_run: bool = False,
    budget: Budget | None = None,
    yes: bool = False,
    computing: Computing = HERE,
    json: bool = False,
) -> None:
    """Run an experiment, or your own file, with fields at several values: one table and one figure.

    Finished runs are reused, and unfinished ones go on: after a stop give the same command again.

    Parameters
    ----------
    name
        As in `engram list`, or your own file (./file.py).
    settings
        Fields with their values, as in --set model.d=16,32,64 --set task.K=1,3,5. Every combination is run.
    zipped
        Pair the values by their place: the first of each field, then the second of each.
    scale
        smoke (seconds), quick (minutes) or paper (the published sizes).
    seeds
        How many for each setting, from 0 on (8 means 0-7), or which (10000-10007; a single one: 7-7).
    metric
        Columns to compare, each as its mean over the last tenth of the steps; by default the accuracy and the loss.
    dry_run
        Say what would be run, about how long it would take there and what it needs; run nothing.
    budget
        Begin nothing that is estimated to take longer, as in --budget 2h (30s, 90min, 2h, 3d).
    yes
        Begin without asking, also what takes longer than an hour.
    json
        Print one JSON object instead of a table.
    """
    from engram.api import unwatched
    from engram.claims.seeds import read_seeds
    from engram.claims.summaries import LEAST_SEEDS
    from engram.engines.ahead import is_long
    from engram.sweeps.cells import read_axes
    from engram.sweeps.cost import costs_of
    from engram.sweeps.sweep import plan_sweep, run_sweep

    where, most = computing.where(), seconds_in(budget)
    axes = spelt_out(name, scale, read_axes(settings))
    with hint_at_commas(axes):
        planned = plan_sweep(name, axes, scale, read_seeds(seeds), zipped)
    warn_of_short_texts(axes)
    if planned.left:
        say("some steps of each setting are measured, to estimate how long all take")
    costs = costs_of(planned.needs(where.path), where)
    if dry_run:
        answer(planned.to_json() | costs.to_json()) if json else tell(*_plan(planned, costs))
        return
    say(*_plan(planned, costs))
    keep_within(most, costs.seconds)
    left = len(planned.left)
    if is_long(left, costs.seconds) and not (yes or most is not None) and not agreed_to(left, costs.seconds, "sweep"):
        return
    watch = watched(f"sweep of {name}, {scale} scale", where) if planned.left else unwatched
    swept = run_sweep(planned, metric, where, watch)
    if json:
        answer(swept.to_json())
        return
    _print(swept.rows, swept.metrics)
    n = len(planned.seeds)
    how = f"n = {n}: no interval" if n < LEAST_SEEDS else "over seeds with the part of their 95 % interval that can be"
    tell("", f"Means over the last tenth of the steps, {how}.")
    tell("")
    tell_figures(swept.figures)
    tell(f"table   {near(swept.csv)} (a line for each setting, seed and metric)")


def _plan(planned: Any, costs: Any) -> list[str]:
    """9 settings × 3 seeds = 27 runs: 3 finished, 24 left, about 4 min, 2 at a time (0.13 core-hours, 12 MB …)"""
    runs, todo = len(planned.specs), len(planned.left)
    how_long = f", {costs.words}" if todo else ""
    told = f"{_many(len(planned.cells), 'setting')} × {_many(len(planned.seeds), 'seed')} = {_many(runs, 'run')}"
    return [
        *(f"  {cell.words}" for cell in planned.cells),
        f"{told}: {runs - todo} finished, {todo} left{how_long}",
    ]


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _constant(rows: list[dict[str, Any]], names: Sequence[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Columns that say the same in every row, and the rows without them: a line above needs less room."""
    if len(rows) < 2:
        return {}, rows
    same = {name: rows[0][name] for name in names if name in rows[0] and len({str(row[name]) for row in rows}) == 1}
    return same, [{name: cell for name, cell in row.items() if name not in same} for row in rows]


def _print(rows: Sequence[dict[str, Any]], metrics: Sequence[str]) -> None:
    from engram.show.tables import number, print_rows

    def told(found: dict[str, Any]) -> str:
        interval = "" if found["low"] is None else f" ({number(found['low'])} … {number(found['high'])})"
        return "–" if found["mean"] is None else f"{number(found['mean'])}{interval}"

    fields = list(dict.fromkeys(name for row in rows for name in row["settings"]))
    labels = len({row["label"] for row in rows}) > 1
    table = [
        ({"label": row["label"]} if labels else {})
        | {name: str(row["settings"].get(name, "–")) for name in fields}
        | {name: told(row["metrics"][name]) for name in metrics}
        | {"seeds": row["n"]}
        for row in rows
    ]
    same, table = _constant(table, ["label", *fields, "seeds"])
    tell(*([f"all with {', '.join(f'{name}={value}' for name, value in same.items())}", ""] if same else []))
    print_rows(console(), table)
    for row in rows:
        tell(*(f"failed  {why}" for why in row["failed"].values()))

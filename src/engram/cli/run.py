"""engram run: an experiment, or a file of one's own."""

from typing import Annotated, Any

from cyclopts import Parameter

from engram.cli.ahead import (
    agreed,
    heading,
    hint_at_sweeps,
    refuse_if_written,
    spelt_out,
    warn_of_short_texts,
    what_is_ahead,
)
from engram.cli.budget import Budget, keep_within, seconds_in
from engram.cli.completion import Name
from engram.cli.experiments import list_group
from engram.cli.output import WholeNumber, answer, console, near, tell, tell_figures, watched_as
from engram.cli.where import HERE, Computing
from engram.errors import EngramError

Settings = Annotated[tuple[str, ...], Parameter(name="--set", consume_multiple=1)]


def run(
    name: Name,
    *,
    scale: str = "quick",
    seeds: str = "1",
    settings: Settings = (),
    snapshots: WholeNumber | None = None,
    budget: Budget | None = None,
    computing: Computing = HERE,
    yes: bool = False,
    json: bool = False,
) -> None:
    """Run an experiment, or your own file (./file.py). What is here already is not run again.

    Parameters
    ----------
    name
        As `engram list` shows it, or the path of your file.
    scale
        smoke (seconds), quick (minutes) or paper (the published sizes).
    seeds
        How many, from 0 on (8), or which (10000-10007).
    settings
        Fields of the Spec to override, as in --set task.K=3 plan.optimiser.lr=0.1.
    snapshots
        Store weights every so many steps, besides steps 0, 1, 2, 4, 8, … and the last; no number depends on it.
    budget
        Begin nothing that is estimated to take longer, as in --budget 2h (30s, 90min, 2h, 3d).
    yes
        Begin without asking what takes longer than an hour.
    """
    from engram import api
    from engram.claims.seeds import read_seeds
    from engram.cli.run_table import lacking_snapshots
    from engram.show.progress import not_born
    from engram.show.tables import print_rows
    from engram.specs.settings import parse_settings

    list_group(name, "run", json)
    if snapshots == 0:
        raise EngramError("--snapshots: at least one step must lie between stored weights; got 0")
    where, chosen, most = computing.where(), read_seeds(seeds), seconds_in(budget)
    changes = spelt_out(name, scale, parse_settings(settings))
    with hint_at_sweeps(name, changes):
        found = what_is_ahead(name, scale, chosen, changes, where)
    if where.engine != "slurm":  # whose batch may be at work on them: then this command looks on
        refuse_if_written(found.blocked, "--seeds")
    warn_of_short_texts(changes)
    keep_within(most, found.seconds)
    if not agreed(found, yes or most is not None):
        return
    watch = watched_as(heading(name, scale, found, changes), where)
    result = api.run_experiment(name, scale, chosen, changes, where, watch, snapshots)
    if json:
        answer(result.to_json())
        return
    if result.table:
        print_rows(console(), result.table)
    tell(*not_born(result.records))
    print_claims(result)
    if settings:
        tell("", "Fields were overridden: these numbers do not enter the ledger.", *result.notes)
    tell("", *(f"record  {near(record.folder)}" for record in result.records))
    tell(*lacking_snapshots(result.records, snapshots))
    tell_figures(result.figures)


def print_claims(result: Any) -> None:
    """What so many seeds say, beside the verdicts of the committed records."""
    from engram.claims.verdicts import committed_verdicts
    from engram.show.preliminary import print_first

    least = result.experiment.least_seeds(result.scale)
    print_first(console(), result.claims, least, committed_verdicts())

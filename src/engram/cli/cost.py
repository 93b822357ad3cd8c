"""`engram cost`: what experiments cost in core-seconds, FLOP and bytes, and what limits them on many cores."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from engram.cli.output import WholeNumber, answer, console, say, tell
from engram.errors import EngramError

if TYPE_CHECKING:
    from engram.claims.costs import Known
    from engram.claims.experiment import Experiment, Scale
    from engram.costs.rows import Found


def cost(
    *names: str,
    scale: Annotated[str | None, Parameter(show_default=False)] = None,
    cores: WholeNumber = 1000,
    fresh: bool = False,
    markdown: bool = False,
    json: bool = False,
) -> None:
    """Say what experiments cost: time, core-hours of all seeds, time on many cores and what limits it, FLOP, disk.

    Parameters
    ----------
    names
        Experiments, or what their names begin with, or your own file (./file.py); without any, all that were measured.
    scale
        quick or paper; both unless it is said.
    cores
        Over how many the runs are spread.
    fresh
        Measure on this machine now, instead of printing what was measured: seconds for each run.
    markdown
        Print the page docs/costs.md, of what has been measured.
    """
    from engram.costs.rows import markdown as page
    from engram.costs.rows import row, summary

    if cores < 1:
        raise EngramError("--cores: at least one; got 0")
    stored_only = markdown or not (names or fresh)  # nobody waits for measurements that he did not ask for
    found = _stored(scale) if stored_only else _found(names, scale, fresh)
    rows = [row(*one, cores) for one in found]
    if json:
        answer({"machine": _machine(fresh), "costs": rows})
    elif markdown:
        print(page(found, cores), end="")
    else:
        _print(rows, cores)
        tell("", *summary(found, cores))
        say(*(f"{e.name}, {at}: {why}" for e, at, known in found for why in known.missing))


def _machine(fresh: bool) -> str:
    from engram.claims.costs import MACHINE

    return "one core of this machine" if fresh else MACHINE


def _stored(scale: str | None) -> "Found":
    """What `make costs` has measured."""
    from engram.claims.experiment import known_scale
    from engram.experiments import matching

    scales: list[Scale] = [known_scale(scale)] if scale else ["quick", "paper"]
    return [(one, at, known) for one in matching([]) for at in scales for known in [one.known(at)] if known is not None]


def _found(names: tuple[str, ...], scale: str | None, fresh: bool) -> "Found":
    """In the order of names; files of a user are always measured."""
    from engram.claims.experiment import known_scale
    from engram.experiments import find, is_file, matching

    scales: tuple[Scale, ...] = (known_scale(scale),) if scale else ("quick", "paper")
    own, others = [name for name in names if is_file(name)], [name for name in names if not is_file(name)]
    experiments = [*map(find, own), *(matching(others) if others or not own else [])]
    return [(one, at, _known(one, at, fresh)) for one in experiments for at in scales]


def _known(experiment: "Experiment", scale: "Scale", fresh: bool) -> "Known":
    from engram.claims.index import Index
    from engram.costs.estimate import estimate
    from engram.costs.measure import Measured
    from engram.records.files import COMMITTED

    stored = None if fresh else experiment.known(scale)
    if stored is not None:
        return stored
    say(f"{experiment.name}, {scale} scale: a slice of each run is measured")
    return estimate(experiment, scale, Measured(Index.of([COMMITTED])))


def _print(rows: list[dict[str, object]], cores: int) -> None:
    from engram.costs.rows import cells, heads
    from engram.show.tables import print_rows

    shown = [dict(zip(heads(cores), cells(one), strict=True)) for one in rows]
    print_rows(console(), [{head: cell for head, cell in one.items() if head != "measured"} for one in shown])

"""`engram queue`: every experiment on its registered seeds; run, state, pack."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from engram.cli.output import answer, console, near, say, tell

if TYPE_CHECKING:
    from engram.queue import Queue

queue = App(name="queue", help="Every experiment on its registered seeds, the cheapest first: run, state, pack.")
Scales = Annotated[tuple[str, ...], Parameter(consume_multiple=1)]
BOTH = ("quick", "paper")
LOWEST = 19  # all other work of this machine comes first


@queue.command
def run(*names: str, scales: Scales = BOTH, most_minutes: float = 60, json: bool = False) -> None:
    """Run all that is left, at the lowest priority; the same command goes on wherever it was stopped or killed.

    Parameters
    ----------
    names
        Experiments, or what their names begin with; all unless some are named.
    scales
        In this order.
    most_minutes
        Leave out experiments of which one seed takes so long or longer on 2 cores, as `engram list` says.
    """
    import os

    os.nice(LOWEST)
    chosen, left_out = _chosen(names, scales, most_minutes)
    chosen.run(say)
    _print_state(chosen, left_out, json)


@queue.command
def state(*names: str, scales: Scales = BOTH, most_minutes: float = 60, json: bool = False) -> None:
    """Say what is done, running and left, and how many hours that will take; nothing is run.

    Parameters
    ----------
    names
        Experiments, or what their names begin with; all unless some are named.
    scales
        In this order.
    most_minutes
        Leave out experiments of which one seed takes so long or longer on 2 cores, as `engram list` says.
    """
    _print_state(*_chosen(names, scales, most_minutes), json)


@queue.command
def pack(*names: str, scales: Scales = BOTH, into: Path | None = None, json: bool = False) -> None:
    """Add what is finished to the committed records, one bundle for each experiment and scale.

    Parameters
    ----------
    names
        Experiments, or what their names begin with; all unless some are named.
    scales
        Of which scales.
    into
        Another folder than that of the committed records.
    """
    from engram.claims.experiment import known_scale
    from engram.experiments import matching
    from engram.queue import Queue, in_order, jobs_of
    from engram.records.bundle import MOST_COMMITTED
    from engram.records.files import COMMITTED, home

    folder = into.resolve() if into else COMMITTED
    known = in_order(matching(names), [known_scale(scale) for scale in scales])
    added = Queue([job for one in known for job in jobs_of(*one)], [home()]).pack(folder)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if json:
        answer({"into": str(folder), "added": added, "bytes": size, "most_bytes": MOST_COMMITTED})
        return
    tell(*(f"packed  {n} runs into {near(folder / name)}" for name, n in added.items()))
    over = "" if size <= MOST_COMMITTED else ": too much; leave something out before it is committed"
    tell(f"{sum(added.values())} runs added; {size / 1e6:.1f} of {MOST_COMMITTED / 1e6:.0f} MB{over}")


def _chosen(
    names: tuple[str, ...], scales: tuple[str, ...], most_minutes: float
) -> "tuple[Queue, list[dict[str, Any]]]":
    """The queue, and what is left out."""
    from engram.claims.experiment import known_scale
    from engram.experiments import matching
    from engram.queue import Queue, planned
    from engram.records.files import COMMITTED, home

    jobs, left_out = planned(matching(names), [known_scale(scale) for scale in scales], most_minutes)
    return Queue(jobs, [home(), COMMITTED]), left_out


def _print_state(chosen: "Queue", left_out: list[dict[str, Any]], json: bool) -> None:
    from engram.show.tables import print_rows

    look = chosen.look()
    told = look.to_json() | {"left_out": left_out, "is_running": chosen.is_running()}
    if json:
        answer(told)
        return
    print_rows(console(), told["queue"])
    tell("", *(f"failed  {one['run']}: {one['why']}" for one in told["failed"]))
    for why in dict.fromkeys(one["why"] for one in left_out):
        same = (f"{one['experiment']} {one['scale']}" for one in left_out if one["why"] == why)
        tell(f"left out ({why}): {', '.join(same)}")
    tell(f"{look.summary}; the queue is {'' if told['is_running'] else 'not '}running")

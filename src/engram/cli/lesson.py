"""`engram lesson`: a text beside a run, with questions."""

from typing import Any

from engram.cli.lab import open_lab
from engram.cli.output import WholeNumber, answer, say, tell


def lesson(
    name: str | None = None,
    *,
    port: WholeNumber | None = None,
    no_browser: bool = False,
    check: bool = False,
    json: bool = False,
) -> None:
    """Open a lesson beside its run, which is trained if it is not there; without a name, list the lessons.

    docs/lessons.md says how to write one.

    Parameters
    ----------
    name
        memory, birth or facts; or a file of your own, with .md.
    port
        A port of this machine, 1 to 65535; by default any free one.
    no_browser
        Only print the URL.
    check
        Only read the lesson, and say which runs it needs; what is wrong in it is told with its line.
    """
    from engram.lab.lessons import SHIPPED, find, shipped

    if name is None:
        _list([shipped(one).listed() for one in SHIPPED], json)
        return
    found = find(name)
    if check:
        _say_runs(found, json)
        return
    first = found.runs[0]
    open_lab(
        first.to_json()["run"], port, "127.0.0.1", not no_browser, json, first=_order_unless_done(first), lesson=found
    )


def _list(lessons: list[dict[str, str]], json: bool) -> None:
    if json:
        answer({"lessons": lessons})
        return
    for one in lessons:
        tell(f"{one['name']:<8}  {one['title']}", f"          {one['about']}")
    tell("", "engram lesson NAME opens one; docs/lessons.md says how to write your own")


def _say_runs(found: Any, json: bool) -> None:
    runs = [run.to_json() for run in found.runs]
    if json:
        answer({"lessons": [found.listed()], "runs": runs})
        return
    tell(f"{found.title}: {len(runs)} run{'s' * (len(runs) > 1)}")
    tell(*(f"{run['name']:<10}  {run['preset']}, {run['steps']} steps, {run['run']}" for run in runs))


def _order_unless_done(first: Any) -> Any:
    """To train the first run, or to go on with it; nothing of one that is finished: it stops no other training."""
    from engram.lab.backend import start_order
    from engram.records.files import home
    from engram.records.index import state
    from engram.records.record import Record

    run = first.to_json()
    folder = home() / run["run"]
    if (folder / "spec.json").exists() and state(Record(folder)) == "finished":
        return None
    say(f"training {run['run']}: {run['steps']} steps; the page shows how far it is")
    return start_order(first.preset, first.seed, first.settings)

"""`engram list` and `engram show`: experiments with their claims, from the records that there are."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from engram.cli.completion import Name
from engram.cli.output import answer, console, in_a_folder, say, tell, tell_figures
from engram.errors import EngramError

if TYPE_CHECKING:
    from engram.claims.experiment import Experiment
    from engram.shown import Shown

Claims = dict[str, dict[str, Any]]
LIST = """--set 'plan.trained=["W_O2"]'"""


def list_(*words: str, everything: Annotated[bool, Parameter(name="--all")] = False, json: bool = False) -> None:
    """List experiments: what each shows, its run times, and its claims with their verdicts; alone, their groups.

    Parameters
    ----------
    words
        Only experiments that begin with this (birth, memory.hebb) or have a claim that does, else those that speak of
        it (capacity); of several words, each must be found.
    everything
        List all experiments, not only their groups.
    """
    from engram.experiments import searched

    found = searched(words)
    if not found:
        raise EngramError(f"list: no experiment speaks of {' and '.join(words)}; `engram list --all` shows all")
    claims = _verdicts(found)
    if json:
        answer({"experiments": [_row(experiment, claims) for experiment in found]})
    else:
        (_print_list if words or everything else _print_groups)(found, claims)


def _print_groups(found: "list[Experiment]", claims: Claims) -> None:
    """A line for each group: how many experiments and claims, and how these stand."""
    from engram.show.tables import print_rows

    groups: dict[str, list[Experiment]] = {}
    for experiment in found:
        groups.setdefault(experiment.name.partition(".")[0], []).append(experiment)
    rows = [
        {
            "group": name,
            "experiments": len(of),
            "claims": sum(len(one.statements) for one in of),
            "": _counted(of, claims),
        }
        for name, of in groups.items()
    ]
    print_rows(console(), rows)
    tell("", f"{len(found)} experiments, {sum(row['claims'] for row in rows)} claims: {_counted(found, claims)}")
    tell(
        "`engram list GROUP`, or any word such as capacity, says what they show; `engram list --all` lists everything."
    )


def _counted(found: "list[Experiment]", claims: Claims) -> str:
    """18 agree, 8 disagree"""
    from engram.show.claims import tally, told

    return ", ".join(
        told(n, state) for state, n in tally([claims[id] for e in found for id in e.statements]).items() if n
    )


def _verdicts(found: "list[Experiment]") -> Claims:
    """Claims by their ids, as the ledger decides them; where no run is here, as the committed records did.

    A claim that is newer than the list of these verdicts is decided, too.
    """
    from engram.claims.verdicts import committed_verdicts
    from engram.cli.decided import decided
    from engram.records.files import COMMITTED, home

    known = committed_verdicts()
    bare = not any(home().glob("*/digest.json")) and not any(home().glob("*.zip"))
    if bare and all(id in known for experiment in found for id in experiment.statements):
        return {id: claim | {"stale": False} for id, claim in known.items()}
    names = tuple(experiment.name for experiment in found)
    return {claim["id"]: claim for claim in decided(names, [home(), COMMITTED]).claims}


def _row(experiment: "Experiment", claims: Claims) -> dict[str, Any]:
    own = experiment.statements
    return {
        "name": experiment.name,
        "about": experiment.about,
        "times": experiment.times,
        "claims": list(own),
        "statements": own,
        "verdicts": {id: claims[id]["verdict"] for id in own},
    }


def _print_list(found: "list[Experiment]", claims: Claims) -> None:
    from engram.show.tables import print_experiment

    out = console()
    for experiment in found:
        print_experiment(out, _row(experiment, claims))
    own = [claims[id] for experiment in found for id in experiment.statements]
    many = f"{len(found)} experiment{'s' * (len(found) != 1)}, {len(own)} claim{'s' * (len(own) != 1)}"
    tell("", f"{many}: {_counted(found, claims)}")
    if any(claim["verdict"] == "missing" for claim in own):
        tell("missing: its registered runs have not all been made yet")
    tell("`engram show NAME` draws the figure and says why a claim disagrees; `engram run NAME` runs it here.")


def list_group(name: str, command: str, json: bool) -> None:
    """Where a group is named instead of an experiment, say which it has."""
    from engram.experiments import groups, searched

    if name in groups():
        found = searched((f"{name}.",))
        cheapest = min(found, key=lambda one: one.minutes("quick")).name
        those = ", ".join(one.name for one in found)
        raise EngramError(
            f"{command}: {name} is a group of experiments; name one, as in engram {command} {cheapest}: {those}"
        )


Optional = Annotated[str | None, Parameter(show_default=False)]


def show(
    name: Name,
    *,
    scale: Optional = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], show_default=False)] = None,
    width: Annotated[str | None, Parameter(show_default=False, allow_leading_hyphen=True)] = None,
    font: str = "sans",
    json: bool = False,
) -> None:
    """Show an experiment from the records that there are: figure, claims, verdicts, reasons. Nothing is trained.

    Parameters
    ----------
    name
        An experiment, one of its claims, or your own file (./file.py) after it was run.
    scale
        smoke, quick or paper; by default the scale that decides the ledger.
    output
        Write the figure to this file instead: .pdf, .svg, .png, or .csv and .json with its numbers.
    width
        Of the figure in --output, for a paper: 3.25in (one column), 6.75in (two), or in cm, mm, pt.
    font
        Of a figure with a --width: sans, or serif, which goes with Times.
    """
    from engram.shown import show as shown

    list_group(name, "show", json)
    if output is None and width is not None:
        raise EngramError(f"--width {width}: name a file for this figure, too, as in -o figure.pdf")
    if width is not None and re.fullmatch(r"[\d.]+", width.strip()):
        raise EngramError(f"--width {width}: give a unit, as in 3.25in or 8cm")
    found = shown(name, scale, output and in_a_folder(output), width, font)
    if json:
        answer(found.to_json())
    else:
        _print_written(found) if output and found.figures else _print_shown(found, scale)


def _print_written(found: "Shown") -> None:
    """Whoever writes a figure to a file has seen the claims: what goes with it is its caption."""
    from engram.show.paper import beyond_a_page

    tell_figures(found.figures)
    if found.caption:
        tell(f"caption {found.caption}")
    say(*filter(None, [beyond_a_page(found.height)]))


def _print_shown(found: "Shown", scale: str | None) -> None:
    from engram.claims.seeds import seeds_in_words
    from engram.claims.verdicts import committed_verdicts
    from engram.show.preliminary import print_first
    from engram.show.tables import print_reasons, print_rows

    least = found.experiment.least_seeds(found.scale) if found.scale else 0
    tell(found.experiment.about, *([f"Source: {found.experiment.source}"] if found.experiment.source else []), "")
    if found.table:
        print_rows(console(), found.table)
    print_first(console(), found.claims, least, committed_verdicts())
    print_reasons(console(), found.claims)
    if found.scale is None:
        at = f" at {scale} scale" if scale else ""
        say(f"no record{at} is here or committed; {found.experiment.command} makes some ({found.experiment.times})")
        return
    which = found.seeds[0] if len(found.seeds) == 1 else seeds_in_words(found.seeds)
    seeds = f"{len(found.seeds)} seed{'s' * (len(found.seeds) != 1)} ({which})"
    tell("", f"from {len(found.records)} records at {found.scale} scale, {seeds}; nothing was computed")
    tell_figures(found.figures)


def fields(name: Name, *, scale: str = "quick", json: bool = False) -> None:
    """List every field of an experiment's runs that --set can change: its name, value, type and meaning.

    Parameters
    ----------
    name
        An experiment as `engram list` shows it, or your own file (./file.py).
    scale
        smoke, quick or paper: of which the values are.
    """
    from engram.claims.experiment import known_scale
    from engram.experiments import find
    from engram.specs.fields import settings_of

    list_group(name, "fields", json)
    rows = settings_of(find(name).specs(known_scale(scale), [0]))
    if json:
        answer({"experiment": find(name).name, "scale": scale, "fields": rows})
        return
    from engram.show.tables import print_fields

    print_fields(console(), rows)
    tell("", f"Set them with: engram run {name} --set FIELD=VALUE …", f"A list is written as JSON: {LIST}")

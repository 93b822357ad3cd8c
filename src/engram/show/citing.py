"""How a number of the ledger is cited: sentence, interval, seeds, range, the command that repeats it, and BibTeX."""

from collections.abc import Iterator
from typing import Any

from engram.claims.papers import cited, entry
from engram.claims.seeds import seeds_in_words
from engram.registered import COUNTED
from engram.show.tables import in_words, known, named

Claim = dict[str, Any]


def numbers(claim: Claim) -> list[str]:
    """A line for each measure."""
    return [_number(measure) for measure in claim["measures"]]


def _number(measure: dict[str, Any]) -> str:
    predicted, measured, interval, n = in_words(measure)
    counted = f"n = {n}{'' if measure['counts'] != 'seeds' else ' seeds'}"
    spread = interval if known(measure) else f"95 % interval {interval}"
    return f"{named(measure)}: {measured} ({spread}, {counted}; predicted {predicted})"


def about(claim: Claim, version: str, commit: str | None) -> dict[str, Any]:
    """Everything that a reader needs to find the number again."""
    return {name: claim[name] for name in ("id", "statement", "source", "verdict", "status", "seeds", "range")} | {
        "numbers": numbers(claim),
        "command": claim["command"],
        "version": version,
        "commit": commit,
        "bibtex": [_software(version, commit), *(paper.bibtex() for paper in cited(_sources(claim)))],
    }


def _sources(claim: Claim) -> str:
    """The paper of an experiment may be named by its file and not by the place of the sentence."""
    return f"{claim['source'] or ''}; {claim['paper']}"


def _software(version: str, commit: str | None) -> str:
    fields = {"title": "{Engram}: an open laboratory for transformers as associative memories"}
    fields |= {"author": "{The Engram authors}", "version": version, "year": "2026"}
    fields |= {"note": f"commit {commit}"} if commit else {}
    return entry("software", "engram", fields)


def lines(told: dict[str, Any]) -> Iterator[str]:
    yield told["statement"]
    first, *others = told["numbers"] or ["nothing yet: no record decides it"]
    status = COUNTED.get(told["status"], told["status"])
    table = [("says", told["source"] or "this project"), ("verdict", f"{told['verdict']} ({status})")]
    table += [("measured", first), *(("", other) for other in others)]
    table += [("seeds", seeds_in_words(told["seeds"]))] if told["seeds"] else []
    table += [("within", told["range"])] if told["range"] else []
    commit = f", commit {told['commit'][:12]}" if told["commit"] else ""
    table += [("repeat", told["command"]), ("from", f"Engram {told['version']}{commit}")]
    yield from (f"  {name:<9} {text}" for name, text in table)
    for one in told["bibtex"]:
        yield ""
        yield from one.split("\n")

"""What a few seeds say: where their numbers lie, and what the ledger says over all of its seeds."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from engram.show.tables import factor, found, named, print_claims, span
from engram.text import printable

STYLE = {"inside": "green", "outside": "yellow", "not measured in full, or outside": "yellow"}
OVER = {
    "agrees": "the claim holds",
    "disagrees": "the claim does not hold",
    "inconclusive": "the claim is undecided",
}
FIELDS_SET = "fields were set, so that no verdict of the ledger applies"
Ledger = Mapping[str, Mapping[str, Any]]  # engram.claims.verdicts


def print_first(console: Console, claims: Sequence[dict[str, Any]], least: int, ledger: Ledger) -> None:
    """Claims of one command. What these seeds cannot decide is said as what it is, beside the ledger's verdict."""
    shared = about_all([claim for claim in claims if is_preliminary(claim, least)], least)
    if shared:
        _hang(console, Text(shared, "yellow"), 2)
    for claim in claims:
        if is_preliminary(claim, least):
            _print(console, claim, briefly(claim, ledger) if shared else sentence(claim, least, ledger))
        else:
            print_claims(console, [claim])


def is_preliminary(claim: Mapping[str, Any], least: int) -> bool:
    """Smoke never decides; elsewhere fewer seeds than a verdict needs do not."""
    few = any(part["n"] < least for part in claim["measures"] if part["method"] != "exact")
    return claim["scale"] == "smoke" or (few and claim["verdict"] == "inconclusive")


def sentence(claim: Mapping[str, Any], least: int, ledger: Ledger) -> str:
    """this seed: inside the predicted range; over 10 seeds: the claim holds (ledger: agrees)"""
    return f"{_seeds(claim, least)}: {_place(claim['measures'])} the predicted range; {_over(claim, ledger)}"


def about_all(claims: Sequence[Mapping[str, Any]], least: int) -> str:
    """What is to be said once of all claims of a smoke run, or of one whose fields were set; of others nothing."""
    odd = all(claim["settings"] or claim["scale"] == "smoke" for claim in claims)
    said = {"; ".join([_seeds(claim, least), *[FIELDS_SET] * bool(claim["settings"])]) for claim in claims}
    return said.pop() if odd and len(said) == 1 else ""


def briefly(claim: Mapping[str, Any], ledger: Ledger) -> str:
    """The sentence without what was said above all claims."""
    parts = [f"{_place(claim['measures'])} the predicted range", *[_over(claim, ledger)] * (not claim["settings"])]
    return "; ".join(parts)


def _seeds(claim: Mapping[str, Any], least: int) -> str:
    """this seed; these 3 seeds, of the 5 that a verdict needs"""
    n = len(claim["seeds"])
    seeds = "this seed" if n == 1 else f"these {n} seeds"
    if claim["scale"] == "smoke":
        seeds += " at smoke scale, which is too small to decide"
    elif n > 1:
        seeds += f", of the {least} that a verdict needs"
    return seeds


def _over(claim: Mapping[str, Any], ledger: Ledger) -> str:
    """What all seeds say."""
    if claim["settings"]:
        return FIELDS_SET
    known = ledger.get(claim["id"], {})
    if known.get("verdict") not in OVER:
        return "the ledger has no verdict yet"
    where = "" if known["scale"] == claim["scale"] else f" at {known['scale']} scale"
    seeds = f"{known['seeds']} seed{'s' * (known['seeds'] != 1)}{where}"
    return f"over {seeds}: {OVER[known['verdict']]} (ledger: {known['verdict']})"


def _place(measures: Sequence[Mapping[str, Any]]) -> str:
    places = {place_of(part) for part in measures}
    return "inside" if places == {"inside"} else "outside" if None not in places else "not measured in full, or outside"


def place_of(measure: Mapping[str, Any]) -> str | None:
    """Whether a number lies inside its band, which is open; None if there is no number."""
    (low, high), value = measure["predicted"], measure["measured"]
    if value is None:
        return None
    return "inside" if (low is None or low < value) and (high is None or value < high) else "outside"


def _print(console: Console, claim: Mapping[str, Any], words: str) -> None:
    head = Text.assemble((printable(claim["id"]), "bold"), "  ", (words, STYLE[_place(claim["measures"])]))
    _hang(console, head, 2)
    _hang(console, Text(f"  {printable(claim['statement'])}", "dim"), 2)
    for part in claim["measures"]:
        numbers = (
            f"{found(part)}{factor(part)}  predicted: {span(part['predicted'])}  {place_of(part) or 'not measured'}"
        )
        name = part["name"] if part["measured"] is None else named(part)  # a note is about a number
        _hang(console, Text(f"  · {printable(name)}"), 4)
        console.print(Text(f"      {numbers}"))


def _hang(console: Console, text: Text, by: int) -> None:
    """What does not fit into a line goes on in the next, moved by so many places."""
    for i, line in enumerate(text.wrap(console, max(20, console.width - by))):
        line.rstrip()
        line.pad_left(by if i else 0)
        console.print(line)

"""Tables for the terminal, from the same dicts that --json prints."""

import json
import re
from collections.abc import Sequence
from math import exp
from os import environ
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from engram.registered import COUNTED, STATUSES
from engram.show.claims import STATES, remarks, told
from engram.text import printable

SHARE = re.compile(r"(.*: )?(share|(in-context )?accuracy|recall of) (?!.*\b(minus|over that|times)\b).*")  # a name
UNBROKEN = 100_000  # places of a line
VERDICT_STYLE = {"agrees": "green", "disagrees": "red", "inconclusive": "yellow", "missing": "dim"}


def print_claims(console: Console, claims: Sequence[dict[str, Any]]) -> None:
    """Each claim with its verdict, and below it one line for each measure."""
    for claim in claims:
        notes = [claim["status"], claim["scale"], f"n={claim['n']}", *(["stale"] if claim["stale"] else [])]
        notes += [f"diverged seeds: {claim['diverged']}"] if claim["diverged"] else []
        notes += ["fields overridden"] if claim["settings"] else []
        origin = f" ({', '.join(notes)})" if claim["measures"] else ""
        head = Text.assemble(
            (printable(claim["id"]), "bold"),
            "  ",
            (claim["verdict"], VERDICT_STYLE[claim["verdict"]]),
            printable(origin),
        )
        console.print(head, Text(f"  {printable(claim['statement'])}", "dim"), sep="\n")
        if claim["why_missing"]:
            console.print(Text(f"  ! {printable(claim['why_missing'])}", "red"), soft_wrap=True)
        for part in claim["measures"]:
            predicted, measured, interval, n = in_words(part)
            counted = "" if part["counts"] == "seeds" else f"  n = {n}"
            between = f"{'' if known(part) else '95 %: '}{interval}{counted}"
            numbers = f"{measured}{factor(part)}  {between}  predicted: {predicted}"
            verdict = (part["verdict"], VERDICT_STYLE[part["verdict"]])
            console.print(Text.assemble(f"  · {printable(named(part))}\n      {numbers}  ", verdict))


def print_reasons(console: Console, claims: Sequence[dict[str, Any]]) -> None:
    """Why each claim that disagrees does, and what a reader must know before trusting a verdict."""
    for claim in claims:
        said = [*([claim["why"]] if claim["why"] else []), *remarks(claim)]
        if said and claim["measures"]:
            console.print(Text.assemble("\n", (printable(claim["id"]), "bold"), "  ", _verdict(claim["verdict"])))
            for sentence in said:
                console.print(Text(f"  {printable(' '.join(sentence.split()))}"), soft_wrap=not console.is_terminal)


def print_experiment(console: Console, row: dict[str, Any]) -> None:
    """What it shows, how long it takes, and its claims, each behind its verdict."""
    console.print(Text(row["name"], "bold"), Text(f"  {row['about']}"), sep="\n", soft_wrap=True)
    console.print(Text(f"  {row['times']}", "dim"), soft_wrap=True)
    for id, statement in row["statements"].items():
        verdict = row["verdicts"][id]
        line = Text.assemble("    ", (f"{verdict:<12}", VERDICT_STYLE[verdict]), f"  {statement}  ", (id, "dim"))
        console.print(line, soft_wrap=True)


def print_fields(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """A line with field, value and type, and one with its meaning; where runs differ, all of its values."""
    for row in rows:
        values = " · ".join(_short(value) for value in row["values"])
        head = Text.assemble((printable(row["field"]), "bold"), f" = {printable(values)}  ", (row["type"], "dim"))
        console.print(head, soft_wrap=True)
        if row["meaning"]:  # a field of one's own may have none
            console.print(Text(f"    {printable(row['meaning'])}"), soft_wrap=True)


def _short(value: Any) -> str:
    """As --set takes it, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _verdict(verdict: str) -> tuple[str, str]:
    return verdict, VERDICT_STYLE[verdict]


def print_counts(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """A line for each kind of claim: how many there are, what became of them, and how they stand."""
    for row in rows:
        found = [
            ", ".join(told(row[name], COUNTED.get(name, name)) for name in names if row[name])
            for names in (STATES, STATUSES)
        ]
        line = Text.assemble((f"{row['kind']:<42}", "dim"), f"{row['claims']:>4}  {' · '.join(filter(None, found))}")
        console.print(line, soft_wrap=True)


def print_surety(console: Console, claims: Sequence[dict[str, Any]]) -> None:
    """How sure the verdicts on papers are, all together."""
    about = [claim for claim in claims if claim["kind"] in ("sentence", "number") and claim["risk"] is not None]
    sure = sum(claim["holm"] < 0.05 for claim in about)
    false = sum(claim["risk"] for claim in about)
    decided = f"{len(about)} verdicts on papers have a p-value"
    console.print(
        Text(f"{decided}: {sure} below 0.05 after Holm; {false:.2g} expected to be false", "dim"), soft_wrap=True
    )


def print_rows(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """A plain table whose columns are the keys of the rows; a file has room for all, and names are never broken."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for i, title in enumerate(rows[0] if rows else ()):
        table.add_column(Text(printable(title)), overflow="fold", no_wrap=not i)
    for row in rows:
        table.add_row(*(Text("" if cell is None else printable(str(cell))) for cell in row.values()))
    if console.is_terminal or "COLUMNS" in environ:
        console.print(table)
    else:
        console.print(table, width=UNBROKEN, crop=False)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def span(pair: Sequence[float | None] | None) -> str:
    """An interval in a few signs; an open side is left open."""
    low, high = pair or (None, None)
    if low is None and high is None:
        return "–"
    if low is None or high is None:
        return f"> {low:.4g}" if high is None else f"< {high:.4g}"
    return f"{low:.4g} … {high:.4g}"


def known(measure: dict[str, Any]) -> str | None:
    """What stands where an interval would, for numbers that have none."""
    seeds = f"worst of {measure['n']} seed{'s' * (measure['n'] != 1)}"
    return {"exact": "exact", "worst of seeds": seeds}.get(measure["method"])


def found(measure: dict[str, Any]) -> str:
    """The measured value; behind ≥ or ≤ where seeds enter with a bound."""
    bound = measure["bound"] if measure["measured"] is not None else None
    return " ".join(filter(None, (bound, number(measure["measured"]))))


def factor(measure: dict[str, Any]) -> str:
    """Behind the natural logarithm of a ratio, the ratio itself: " ×4.0"."""
    if measure["measured"] is None or not measure["name"].startswith("log of"):
        return ""
    ratio = exp(min(measure["measured"], 700.0))
    return f" ×{ratio:.1f}" if 1 <= ratio < 100 else f" ×{ratio:.2g}"


def in_words(measure: dict[str, Any]) -> list[str]:
    """The band, the measured value, its interval or what stands for it, and what n counts."""
    interval = known(measure) or span(_shown(measure))
    n = f"{measure['n']}" if measure["counts"] == "seeds" else f"{measure['n']} {measure['counts']}"
    return [span(measure["predicted"]), found(measure), interval, n]


def _shown(measure: dict[str, Any]) -> Sequence[float | None] | None:
    """The interval as it is printed: that of a share ends at 0 and 1. What is decided is decided by the whole."""
    interval: Sequence[float | None] | None = measure["interval"]
    inside = measure["measured"] is not None and 0 <= measure["measured"] <= 1
    if not interval or not inside or not SHARE.fullmatch(measure["name"]):
        return interval
    return [None if end is None else min(1.0, max(0.0, end)) for end in interval]


def named(measure: dict[str, Any]) -> str:
    """What is measured, and what a reader must know of it besides."""
    return f"{measure['name']} ({measure['note']})" if measure["note"] else measure["name"]

"""Prose with numbers and verdicts of the ledger in the place of braces (engram.claims.findings)."""

from collections.abc import Callable, Mapping
from math import exp, floor, log10
from re import Match
from typing import Any

from engram.claims.findings import BRACES, Finding, Quote
from engram.errors import EngramError
from engram.show.claims import claim_state
from engram.show.tables import known

Claims = Mapping[str, dict[str, Any]]  # by id
NOT_YET = "(not measured yet)"


def filled(finding: Finding, prose: str, claims: Claims) -> str:
    """The prose with every quotation in its place."""

    def quotation(found: Match[str]) -> str:
        name, form = found.groups()
        if name in finding.numbers:
            return _number(finding.numbers[name], quoted_measure(finding, name, claims), form)
        return claims[name]["range"] if form == "range" else standing(claims[name])

    return BRACES.sub(quotation, prose)


def quoted_measure(finding: Finding, name: str, claims: Claims) -> Mapping[str, Any] | None:
    """The measure that a name in the prose stands for; None while no record decides its claim."""
    try:
        return finding.numbers[name].of(claims)
    except EngramError as error:
        raise EngramError(f"findings: {finding.name}: {error}") from None


def standing(claim: dict[str, Any]) -> str:
    """The verdict, and how much stands behind it."""
    state = claim_state(claim)
    if state == "missing":
        return f"[`{claim['id']}` **missing**; no record decides it yet]"
    return f"[`{claim['id']}` **{state}**; {claim['status']}: {seeds_and_scale(claim)}]"


def seeds_and_scale(claim: dict[str, Any]) -> str:
    drawn = [] if claim["status"] == "exact" else [_counted(claim)]
    return ", ".join([*drawn, f"{claim['scale']} scale"])


def _counted(measure: Mapping[str, Any]) -> str:
    return f"{measure['n']} {measure['counts'] if measure['n'] != 1 else measure['counts'].removesuffix('s')}"


def _number(quote: Quote, measure: Mapping[str, Any] | None, form: str | None) -> str:
    if measure is None or measure["measured"] is None:
        return NOT_YET
    if form == "size":
        match = quote.match(measure["name"])
        return ", ".join(map(_minus, match.groups())) if match else NOT_YET
    if form == "value":
        return rounded(measure["measured"])
    unit = " %" if form == "percent" else ""
    return f"{_with_interval(measure, AS[form])}{unit}"


AS: dict[str | None, Callable[[float], float]] = {None: float, "factor": exp, "percent": lambda share: 100 * share}


def _with_interval(measure: Mapping[str, Any], shown: Callable[[float], float]) -> str:
    value, (low, high) = shown(measure["measured"]), measure["interval"] or (None, None)
    instead = known(dict(measure))
    if instead is not None:
        return rounded(value) if instead == "exact" else f"{rounded(value)} ({instead})"
    if low is None or high is None:
        return f"{rounded(value)} ({_counted(measure)}, no interval)"
    low, high = shown(low), shown(high)
    places = decimals(high - low)
    value, low, high = (_minus(f"{number:,.{places}f}") for number in (value, low, high))
    return f"{value} ({low} … {high})"


def decimals(width: float) -> int:
    """Places that an interval of this width deserves: enough to show that its ends differ.

    >>> decimals(0.043), decimals(0.005), decimals(2.9), decimals(700)
    (2, 3, 1, 0)
    """
    return min(6, max(0, -floor(log10(width / 3)))) if width > 0 else 3


def rounded(value: float) -> str:
    """Three digits, for a number without an interval."""
    if value and abs(value) < 1e-3:
        digits, power = f"{value:.1e}".split("e")
        return _minus(f"{digits} × 10^{int(power)}")
    return _minus(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")


def _minus(number: str) -> str:
    return number.replace("-", "−")

"""What the ledger says of claims, the same on its page and in LEDGER.md; claims as `Entry.to_json` gives them."""

from collections.abc import Sequence
from typing import Any

from engram.registered import KINDS, STATUSES

STATES = ("agrees", "disagrees", "inconclusive", "stale", "missing")


PLURAL = {"agrees": "agree", "disagrees": "disagree"}


def told(n: int, state: str) -> str:
    """1 agrees, 2 agree."""
    return f"{n} {state if n == 1 else PLURAL.get(state, state)}"


def claim_state(claim: dict[str, Any]) -> str:
    """What the ledger says of a claim in one word: a stale verdict is stale before it is anything else."""
    return "stale" if claim["stale"] else claim["verdict"]


def tally(claims: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many claims are in each state."""
    return {name: sum(claim_state(claim) == name for claim in claims) for name in STATES}


def counts(claims: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each kind of claim, with how many stand how; then one for those that count for or against a paper."""
    kinds = {kind: [claim for claim in claims if claim["kind"] == kind] for kind in (*KINDS, None)}
    rows = [_count(KINDS[kind] if kind else "not registered", of) for kind, of in kinds.items() if of]
    about_papers = [claim for claim in claims if claim["kind"] in ("sentence", "number")]
    return [*rows, _count("for or against a paper", about_papers), _count("all", claims)]


def _count(name: str, claims: Sequence[dict[str, Any]]) -> dict[str, Any]:
    statuses = {status: sum(claim["status"] == status for claim in claims) for status in STATUSES}
    return {"kind": name, "claims": len(claims)} | tally(claims) | statuses


def by_paper(claims: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Claims by the paper they are checked against, in the order in which papers come."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for claim in claims:
        groups.setdefault(claim["paper"], []).append(claim)
    return groups


def remarks(claim: dict[str, Any]) -> list[str]:
    """What a reader must know before trusting the verdict."""
    verdict, whole = claim["verdict"], all(part["verdict"] == "agrees" for part in claim["measures"])
    settings = ", ".join(f"{name}={value}" for name, value in claim["settings"].items())
    said = {
        "No record decides this claim yet.": verdict == "missing" and not claim["why_missing"],
        f"The records that decide this claim are damaged or lost. {claim['why_missing']}": claim["why_missing"],
        f"The record is stale: the code has changed since it was made. Its verdict was: {verdict}.": claim["stale"],
        f"Seeds that diverged: {', '.join(map(str, claim['diverged']))}.": claim["diverged"],
        "Fewer seeds than this scale requires.": verdict == "inconclusive" and whole and not claim["diverged"],
        f"Fields overridden: {settings}.": claim["settings"],
        f"Exploratory: {claim['unregistered']}.": claim["unregistered"] and verdict != "missing",
        f"Decided after seeing numbers: {claim['looked']}": claim["looked"],
    }
    return [sentence for sentence, holds in said.items() if holds]

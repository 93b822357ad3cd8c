"""The registration that is in force: a file that says what is claimed, under which bands, before its records are made.

Records keep which version of the file they were made under; `claims/registration.py` reads what it says.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "data" / "registration.toml"
HISTORY = FILE.with_suffix(".jsonl")  # a line for every version: its date, its digest, the forms that it changed

KINDS: dict[str, str] = {
    "sentence": "a sentence of a paper",
    "number": "a published number",
    "own": "our own sentence",
    "identity": "an identity or theorem, checked exactly",
}
STATUSES: dict[str, str] = {
    "registered": "registered before any of its records was made",
    "fresh seeds": "numbers had been seen when it was registered; decided since, for or against, on other seeds",
    "exploratory": "its form or its records are older than its registration, or differ from it",
    "exact": "nothing in it is random",
}
COUNTED = {"fresh seeds": "decided on fresh seeds"}  # behind a number of claims, where seeds would seem to be counted


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def in_force() -> dict[str, Any]:
    """The digest of the file as it is, and the date at which it was registered; None if it has not been."""
    digest = digest_of(FILE.read_bytes())
    dates = [version["date"] for version in history() if version["file"] == digest]
    return {"file": digest, "date": dates[-1] if dates else None}


@cache
def history() -> tuple[dict[str, Any], ...]:
    """All versions, oldest first."""
    return tuple(map(json.loads, HISTORY.read_text().splitlines())) if HISTORY.exists() else ()

"""The verdicts of the committed records in one small file, so that a first result can be compared with them at once.

`make ledger` writes it with LEDGER.md; the tests compare it with what the records decide.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "data" / "verdicts.json"
Verdicts = dict[str, dict[str, Any]]  # by claim: verdict, scale, number of seeds


def table(claims: Iterable[Mapping[str, Any]]) -> str:
    """Claims, as `Entry.to_json` gives them, as the content of the file."""
    lines = [
        f"{json.dumps(claim['id'])}: "
        + json.dumps({"verdict": claim["verdict"], "scale": claim["scale"], "seeds": len(claim["seeds"])})
        for claim in claims
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


@cache
def committed_verdicts() -> Verdicts:
    return json.loads(FILE.read_text())

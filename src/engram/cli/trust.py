"""Somebody else's code is run only after a person has said so, once for each file."""

import sys
from typing import Any

from engram.cli.output import confirmed, say


def ask_trust(record: Any, trust: bool) -> None:
    """Goes on if the code of a record may run here: it is known, --trust says so, or a person at the terminal does."""
    from engram.records.trust import describe, refuse_untrusted, untrusted
    from engram.records.trust import trust as trust_files

    code = record.code  # read once: what is asked about is what will run
    strange = untrusted(code)
    if not strange:
        return
    if not trust and sys.stdin.isatty() and sys.stderr.isatty():
        say(f"record {record.id} carries {describe(strange)}: it will run on this machine with all your rights")
        trust = confirmed("do you trust its author and have you read it?", "--trust")
    if not trust:
        refuse_untrusted(record.id, code)
    trust_files(code.values())

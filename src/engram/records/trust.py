"""Whose code may run here: a record carries the files of its author, and reading it must not run them.

Files of one's own are trusted when a run is made of them; those of others when a person says so. A file is known by
the SHA-256 of its bytes, wherever it lies.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from engram.errors import EngramError
from engram.folders import data, private
from engram.records.files import sha256


class Untrusted(EngramError):
    """The record needs code that this user has not said to trust."""


def untrusted(code: Mapping[str, bytes]) -> dict[str, str]:
    """Those of the files that may not run here, with their SHA-256."""
    sums = {name: sha256(content) for name, content in sorted(code.items())}
    return {name: sum for name, sum in sums.items() if not _is_known(sum)}


def trust(contents: Iterable[bytes]) -> None:
    """From now on this code may run on this machine."""
    try:
        folder = private(data() / "trusted")
        for content in contents:
            (folder / sha256(content)).touch(mode=0o600)
    except (OSError, RuntimeError) as error:
        raise EngramError(f"cannot note what you trust ({error}); set XDG_DATA_HOME to a folder of your own") from None


def trust_own(contents: Iterable[bytes]) -> None:
    """The same for a run that is being made here; where it cannot be noted, a person is asked later."""
    with suppress(EngramError):
        trust(contents)


def refuse_untrusted(record: str, code: Mapping[str, bytes]) -> None:
    strange = untrusted(code)
    if strange:
        raise Untrusted(
            f"record {record} carries {describe(strange)}, which would run on this machine with your rights and is not "
            f"trusted here; read it first, then: engram runs check {record} --trust"
        )


def describe(files: Mapping[str, str]) -> str:
    return ", ".join(f"code/{name} (sha256 {sum[:16]}…)" for name, sum in files.items())


def _is_known(sum: str) -> bool:
    try:
        return (private(data() / "trusted") / sum).is_file()
    except (OSError, RuntimeError):
        return False

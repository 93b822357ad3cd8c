"""What this user's computer remembers of homes, so that it need not be read again. Only a cache."""

import json
import os
import sys
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from engram.folders import cache, private
from engram.records.files import replace, sha256

MOST_FILES = 200  # the oldest go
LIBRARIES = ("numpy", "scipy", "torch")


class Memory:
    """One JSON object about some homes, made by this version of Engram; nobody but this user can write it."""

    def __init__(self, what: str, *homes: Path):
        name = sha256(os.fsencode(os.pathsep.join(str(home.absolute()) for home in homes)))
        self.path = cache() / what / f"{name[:16]}.json"

    def recall(self) -> dict[str, Any]:
        """What was remembered; nothing if it is damaged, or of another version."""
        with suppress(OSError, RuntimeError, ValueError, TypeError, KeyError):
            private(self.path.parent)
            found = json.loads(self.path.read_bytes())
            if found["version"] == version_of_engram() and found["digest"] == _digest(found["body"]):
                return found["body"]
        return {}

    def keep(self, body: dict[str, Any]) -> None:
        """Where nothing can be written, everything is read anew each time."""
        content = {"version": version_of_engram(), "digest": _digest(body), "body": body}
        with suppress(OSError, RuntimeError):
            private(self.path.parent)
            replace(self.path, json.dumps(content).encode(), durable=False)
            for old in sorted(self.path.parent.glob("*.json"), key=os.path.getmtime)[:-MOST_FILES]:
                old.unlink()


@lru_cache
def version_of_engram() -> str:
    """Changes with every file of Engram, and with the libraries on which its numbers rest."""
    root = Path(__file__).parent.parent
    code = sorted((str(file.relative_to(root)), *_stamp(file)) for file in root.rglob("*.py"))
    return sha256(repr((code, sys.version, [version(library) for library in LIBRARIES])).encode())


def _stamp(file: Path) -> tuple[int, int]:
    about = file.stat()
    return about.st_size, about.st_mtime_ns


def _digest(body: Any) -> str:
    return sha256(json.dumps(body, sort_keys=True).encode())

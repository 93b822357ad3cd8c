"""Published data that Engram does not carry: files in the folder that ENGRAM_REFERENCE names."""

import hashlib
import os
from pathlib import Path

from engram.errors import EngramError
from engram.plain import read_plain

VARIABLE = "ENGRAM_REFERENCE"
MOST = 1 << 26  # bytes


def read_reference(name: str, sha256: str) -> bytes:
    """The file of this name, such as birth/official_joint.jsonl, if it is the one whose digest was registered."""
    content = _read(name)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise EngramError(
            f"{name} in the folder that {VARIABLE} names is not the file that was registered: "
            f"its SHA-256 is {found[:12]}…, not {sha256[:12]}…"
        )
    return content


def _read(name: str) -> bytes:
    folder = os.environ.get(VARIABLE)
    needed = f"the published data {name} are needed, which Engram does not carry"
    if not folder:
        raise EngramError(f"{needed}; set {VARIABLE} to the folder that holds them")
    try:
        return read_plain(Path(folder) / name, MOST, follow=True)
    except FileNotFoundError:
        raise EngramError(f"{needed}: {VARIABLE}={folder} has no such file") from None
    except OSError as error:
        raise EngramError(f"{needed}: they cannot be read in {VARIABLE}={folder} ({error.strerror})") from None

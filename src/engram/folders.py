"""Folders of this user beside the home of the runs: what can be made again, and what must stay."""

import os
from pathlib import Path


def cache() -> Path:
    """Where things are kept that can be made again."""
    return _base("XDG_CACHE_HOME", ".cache") / "engram"


def data() -> Path:
    """Where things are kept that cannot: which files of others this user trusts."""
    return _base("XDG_DATA_HOME", ".local/share") / "engram"


def private(folder: Path) -> Path:
    """A folder into which nobody else can write: what lies there is believed, or loaded into this process."""
    folder.mkdir(parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        raise RuntimeError(f"{folder} is a link, or belongs to another user; move it away")
    folder.chmod(0o700)
    return folder


def _base(variable: str, otherwise: str) -> Path:
    given = os.environ.get(variable)
    return Path(given) if given else Path.home() / otherwise

"""What runs on a machine: the versions and the code on which numbers depend, to compare one machine with another."""

import hashlib
import platform
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from engram.native import kernel

PACKAGE = Path(__file__).parents[1]
SUFFIXES = (".py", ".cpp", ".h")


@dataclass(frozen=True)
class Build:
    """source: a digest of Engram's own code · kernel: the name of the compiled kernel, empty where there is none"""

    engram: str
    source: str
    python: str
    torch: str
    numpy: str
    machine: str
    kernel: str

    def differences(self, other: "Build", path: str) -> list[str]:
        """In words, what of the other one could change numbers beyond their last digits, or not run at all."""
        names = [field.name for field in fields(self) if field.name != "kernel"]
        different = [name for name in names if getattr(self, name) != getattr(other, name)]
        found = [f"{name} {getattr(other, name)} (here {getattr(self, name)})" for name in different]
        if path != "reference" and bool(self.kernel) != bool(other.kernel):
            which = "no compiled kernel (here there is one" if self.kernel else "a compiled kernel (here there is none"
            found.append(f"{which}; --path reference needs none)")
        return found


@lru_cache(maxsize=1)
def build() -> Build:
    """That of this process."""
    minor, library = ".".join(platform.python_version_tuple()[:2]), kernel()
    compiled = "" if library is None else Path(library._name).stem
    return Build(version("engram"), _source(), minor, version("torch"), version("numpy"), platform.machine(), compiled)


def _source() -> str:
    """The code as it lies here: a version number says little of a working copy."""
    total = hashlib.sha256()
    for path in sorted(path for path in PACKAGE.rglob("*") if path.suffix in SUFFIXES):
        total.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode() + path.read_bytes())
    return total.hexdigest()[:12]

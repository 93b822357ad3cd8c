"""Many small records in one file: a zip of packed records, unpacked into the cache when it is first read."""

import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from engram.errors import EngramError
from engram.native import cache
from engram.records import files
from engram.records.files import replace, writing_to
from engram.records.pack import pack
from engram.records.record import Record

EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in it: the same records make the same file


def bundle(records: Iterable[Record], path: Path) -> Path:
    """Writes packed copies of finished records into one zip."""
    with tempfile.TemporaryDirectory() as folder:
        for record in records:
            pack(record, Path(folder), weights=False)
        parts = sorted(file for file in Path(folder).rglob("*") if file.is_file())
        whole = Path(folder) / "whole.zip"
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in parts:
                name = part.relative_to(folder).as_posix()
                archive.writestr(zipfile.ZipInfo(name, EPOCH), part.read_bytes(), zipfile.ZIP_DEFLATED)
        with writing_to(path.parent):
            replace(path, whole.read_bytes())
    return path


def unpack(path: Path) -> Path:
    """The folder with the records of a bundle, unpacked now if this content has not been before."""
    content = path.read_bytes()
    folder = cache() / "records" / f"{path.stem}-{files.sha256(content)[:12]}"
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=folder.parent))
        with zipfile.ZipFile(path) as archive:
            archive.extractall(part)
    except (OSError, zipfile.BadZipFile) as error:
        raise EngramError(f"records in {path.name} cannot be unpacked ({error}); restore the file") from None
    try:
        part.rename(folder)  # whole or not at all: another process may be doing the same
    except OSError:
        shutil.rmtree(part)
    return folder

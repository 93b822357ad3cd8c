"""MANIFEST: the digests of all records of a home in one text file, so that what is changed, lost or added is seen.

Each line is a SHA-256 and what it is of: a bundle (its bytes), or a record, as FOLDER or BUNDLE/FOLDER (the bytes of
its digest.json, which in turn holds the digests of Spec and rows). The committed records have one, and git keeps it.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engram.errors import EngramError
from engram.plain import read_plain
from engram.records import files
from engram.records.files import Place
from engram.records.index import Line, lines
from engram.records.kept import Kept

NAME = "MANIFEST"
MOST_BYTES = 64 << 20
HEAD = (
    "# SHA-256 of every bundle, and of digest.json of every record in this folder. Written by: engram runs manifest\n"
)
Sums = dict[str, str]  # by what they are of


@dataclass(frozen=True)
class Fault:
    """A record that decides nothing: who is to blame (the record or its bundle), and why."""

    id: str  # that its Spec has today, as far as that is known; empty for a bundle whose records are all right
    named: str
    why: str
    home: Path
    line: Line | None = None  # of a record that is there
    bundle: str | None = None  # from which it was lost


def read(home: Path) -> Sums | None:
    """What the manifest of a home lists; None if it has none."""
    if not (home / NAME).exists():
        return None
    try:
        found = [line.split("  ", 1) for line in read_plain(home / NAME, MOST_BYTES).decode().splitlines()]
        return {name: total for total, name in (pair for pair in found if not pair[0].startswith("#"))}
    except (OSError, ValueError) as error:
        raise EngramError(f"{home / NAME} is unreadable ({error}); {_restore(home)}") from None


def stamp(home: Path) -> str | None:
    """Changes with the manifest; None where there is none that can be read."""
    try:
        return files.sha256(read_plain(home / NAME, MOST_BYTES))
    except OSError:
        return None


def write(home: Path) -> tuple[Sums, Sums]:
    """Lists what is there now, if all of it can be read; returns what was listed before and what is now."""
    here = lines(home, reread=True)
    broken = [line for line in here if line.why or not line.ended]
    if broken:
        raise EngramError(f"runs manifest: {broken[0].id}: {broken[0].why or broken[0].state}; nothing was written")
    before, now = read(home) or {}, _bundles(home) | {_name(line): line.sealed for line in here}
    with files.writing_to(home):
        text = "".join(f"{total}  {name}\n" for name, total in sorted(now.items()))
        files.replace(home / NAME, (HEAD + text).encode())
    return before, now


def faults(home: Path, here: Sequence[Line]) -> list[Fault]:
    """What cannot be believed: records that cannot be read, and all that is not as the manifest of the home says."""
    broken = [line for line in here if line.ended and line.why]
    unreadable = [Fault(line.today or line.id, line.id, _unreadable(home, line), home, line) for line in broken]
    try:
        listed = read(home)
    except EngramError as error:
        return [*unreadable, Fault("", NAME, str(error), home)]
    if listed is None:
        lost = home == files.COMMITTED and home.is_dir()
        return [*unreadable, *([Fault("", NAME, f"{NAME} is missing; {_restore(home)}", home)] if lost else [])]
    lost = list(_lost(home, here, listed))
    return [*unreadable, *lost, *_changed(home, here, listed, {fault.bundle for fault in lost})]


def _unreadable(home: Path, line: Line) -> str:
    """What is committed is restored, and never removed as a run of one's own may be."""
    why = str(line.why)
    return f"{why.partition('; ')[0]}; {_restore(home)}" if home == files.COMMITTED else why


def _lost(home: Path, here: Sequence[Line], listed: Sums) -> Iterator[Fault]:
    """Records that are listed but not there; where a whole bundle is gone or cannot be opened, it is to blame."""
    there = {_name(line) for line in here if line.ended}
    broken = {line.id: _unreadable(home, line) for line in here if line.id.endswith(".zip")}
    for name in listed:
        bundle, _, id = name.rpartition("/")
        if name in there or id.endswith(".zip"):
            continue
        blamed = bundle if bundle in broken or not (home / bundle).exists() else ""
        gone = f"{blamed or name} is in {NAME} but not on disk; {_restore(home)}"
        yield Fault(id, blamed or id, broken.get(blamed, gone), home, None, bundle)


def _changed(home: Path, here: Sequence[Line], listed: Sums, blamed: set[str | None]) -> Iterator[Fault]:
    """Records that can be read but are not what is listed, and bundles that were changed anywhere else."""
    blamed |= {line.bundle for line in here if line.why} | {line.id for line in here if line.why}
    for line in here:
        name = _name(line)
        if line.ended and not line.why and listed.get(name) != line.sealed:
            blamed.add(line.bundle)
            yield Fault(line.today or line.id, line.id, _wrong(home, name, listed), home, line)
    for bundle, total in _bundles(home).items():
        if bundle not in blamed and listed.get(bundle) != total:
            why = f"the bytes of {bundle} are not those in {NAME}, though every record in it is; {_restore(home)}"
            yield Fault("", bundle, why, home)


def _wrong(home: Path, name: str, listed: Sums) -> str:
    if name not in listed:
        return f"{name} is not in {NAME}; list it with `engram runs manifest`, or remove it"
    return f"{name} does not match {NAME}: it was changed; {_restore(home)}"


def refuse_unlisted(record: Kept) -> None:
    """A record of a home with a manifest is the one that is listed there."""
    home, name = _home_and_name(record.place)
    listed = read(home)
    sealed = (record.place / "digest.json").exists()
    if listed is not None and sealed and listed.get(name) != files.sha256(files.read(record.place, "digest.json")):
        raise EngramError(f"record {record.id}: {_wrong(home, name, listed)}")


def _home_and_name(place: Place) -> tuple[Path, str]:
    if isinstance(place, Path):
        return place.parent, place.name
    bundle = Path(str(place.root.filename))
    return bundle.parent, f"{bundle.name}/{place.name}"


def _name(line: Line) -> str:
    return line.id if line.bundle is None else f"{line.bundle}/{line.id}"


def _bundles(home: Path) -> Sums:
    """Of what can be read; the rest is named by those who read records."""
    found = {}
    for path in sorted(home.glob("[!.]*.zip")):
        with suppress(OSError):
            found[path.name] = files.sha256(read_plain(path, files.MOST_BYTES, follow=True))
    return found


def _restore(home: Path) -> str:
    """How a file comes back."""
    ours = home == files.COMMITTED
    return "restore it (git checkout, or install Engram again)" if ours else "restore it"

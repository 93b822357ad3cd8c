"""Disks that are full, read-only, or lose their power."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import torch

from chaos.workshop import Failed, Verdict, Workshop, contents, go_on, judged, refusal, small
from engram.errors import Interrupted
from engram.records import Record
from engram.runner.execute import execute
from engram.specs.spec import run_id
from power import Disk, disk


def _mount(*options: str) -> bool:
    return subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0


@contextmanager
def _small_disk(folder: Path, size: int) -> Iterator[bool]:
    """The folder is a disk of so many bytes, where that can be had."""
    made = os.geteuid() == 0 and _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=True)


@contextmanager
def _short_files(size: int) -> Iterator[None]:
    """Where no disk can be made: no file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def full_disk(shop: Workshop, chance: Random) -> Verdict:
    """What was written before is kept, and resumed when there is space."""
    home, size = shop.fresh(), chance.randrange(4096, 120_000)
    with _small_disk(home, size) as made:
        if made:
            said = refusal(lambda: go_on(small(), home))
            if not _mount("-o", "remount,size=64m", str(home)):
                raise Failed("the disk could not be made larger")
        else:
            with _short_files(size // 8):
                said = refusal(lambda: go_on(small(), home))
        return _and_then(shop, home, f"disk of {size} bytes", said)


def _and_then(shop: Workshop, home: Path, what: str, said: str | None) -> Verdict:
    """Once the fault is over, the same command ends well."""
    verdict = judged(shop, small(), home, what)
    if verdict.how == "named":
        raise Failed(f"{what}: not resumed ({verdict.said})")
    return Verdict(what, "named", said) if said else verdict


def read_only(shop: Workshop, chance: Random) -> Verdict:
    """A finished run is read; a part-done one is left as it is."""
    kind, home = chance.choice(["finished", "part_done"]), shop.fresh()
    with _small_disk(home, 64 << 20) as made:
        folder = Path(shutil.copytree(getattr(shop, kind)[0], home / run_id(small())))
        before = contents(folder)
        with _frozen(home, made):
            said = refusal(lambda: go_on(small(), home))
            if contents(folder) != before:
                raise Failed("a read-only run changed")
        return _and_then(shop, home, f"read-only, {kind}", said)


@contextmanager
def _frozen(home: Path, mounted: bool) -> Iterator[None]:
    """Nothing can be written below the home."""
    folders = [home, *(path for path in home.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    if mounted and not _mount("-o", "remount,ro", str(home)):
        raise Failed("the disk could not be made read-only")
    try:
        yield
    finally:
        if mounted and not _mount("-o", "remount,rw", str(home)):
            raise Failed("the disk could not be made writable again")
        for folder in folders:
            folder.chmod(0o700)


def power_cut(shop: Workshop, chance: Random) -> Verdict:
    """What was saved is there; what had ended has ended."""
    with disk(shop.fresh()) as found:
        if found is None:
            return Verdict("no loop devices here", "not possible")
        return _cut_after(shop, found, chance.randrange(14))


def _cut_after(shop: Workshop, found: Disk, rows: int) -> Verdict:
    home, steps = found.path / "runs", iter(range(100))
    torch.set_num_threads(1)
    with suppress(Interrupted):
        execute(small(), home, stop=lambda: next(steps) == rows)
    ended = Record(home / run_id(small())).finished
    found.cut()
    record = Record(home / run_id(small()))
    if record.finished != ended or len(record.rows) < min(rows, 13):
        raise Failed(f"a power cut after {rows} saved rows left {len(record.rows)}")
    return judged(shop, small(), home, f"power cut after {rows} rows", threads=1)

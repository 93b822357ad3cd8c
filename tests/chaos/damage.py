"""Damage to what lies there: every way, to every kind of file of finished and part-done runs, and to bundles."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from chaos.workshop import Failed, Verdict, Workshop, contents, go_on, judged, refusal, small
from engram.api import recheck
from engram.errors import EngramError
from engram.records import Record, files
from engram.records.index import overview
from engram.records.shelf import all_records, find
from engram.specs.spec import run_id

Way = Callable[[Path, Path, Random], None]


def flip(path: Path, other: Path, chance: Random) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(content))


def cut(path: Path, other: Path, chance: Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content) + 1)])


def empty(path: Path, other: Path, chance: Random) -> None:
    path.write_bytes(b"")


def append(path: Path, other: Path, chance: Random) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(chance.randrange(1, 100)))


def swap(path: Path, other: Path, chance: Random) -> None:
    shutil.copy(other, path)


def delete(path: Path, other: Path, chance: Random) -> None:
    path.unlink()


WAYS: tuple[Way, ...] = (flip, cut, empty, append, swap, delete)


def finished_record(shop: Workshop, chance: Random) -> Verdict:
    return _record(shop, chance, shop.finished)


def part_done_record(shop: Workshop, chance: Random) -> Verdict:
    return _record(shop, chance, shop.part_done)


def _record(shop: Workshop, chance: Random, prepared: dict[int, Path]) -> Verdict:
    """`check` must see it if the numbers suffer; whatever `check` says, the run goes on to the truth or is refused."""
    folder, way = shop.copy(prepared[0]), chance.choice(WAYS)
    name = chance.choice(sorted(contents(folder)))
    other = prepared[1] / name
    way(folder / name, other, chance)
    said = refusal(lambda: check(Record(folder)))
    verdict = judged(shop, small(), folder.parent, f"{way.__name__} {name}", known=said is not None)
    if said is None and verdict.how == "named":
        raise Failed(f"{verdict.what}: refused ({verdict.said}), but `engram runs check` sees nothing")
    return Verdict(verdict.what, "named", said) if said else verdict


def check(record: Record) -> None:
    """What `engram runs check` does; rows that differ are an error, too. A run may have no rows yet."""
    found = recheck(record, 1)
    if not found["ok"] and found["compared"]:
        raise EngramError(found["message"])


def bundles(shop: Workshop, chance: Random) -> Verdict:
    """What a damaged bundle still tells is true."""
    way, home = chance.choice(WAYS), shop.fresh()
    path = Path(shutil.copy(shop.bundles[0], home / "some.zip"))
    way(path, shop.bundles[1], chance)
    overview(home)
    truths = {run_id(small(seed)): shop.truth(small(seed))["rows.jsonl"] for seed in (0, 1)}
    said = refusal(lambda: [_read(record, truths) for record in all_records(home)])
    said = said or next((line["state"] for line in overview(home) if line["state"] != "finished"), None)
    if said is None and way is delete:
        said = refusal(lambda: find(run_id(small()), home))
    return Verdict(f"{way.__name__} a zip", "named", said) if said else Verdict(f"{way.__name__} a zip", "survived")


def _read(record: Record, truths: dict[str, bytes]) -> None:
    check(record)
    if files.read(record.place, "rows.jsonl") != truths.get(record.id):
        raise Failed(f"a damaged zip tells other rows of {record.id}")


def removed_in_mid_run(shop: Workshop, chance: Random) -> Verdict:
    """It is said, and the same command begins again."""
    home, at = shop.fresh(), chance.randrange(12)
    folder = home / run_id(small())

    def remove(spec: object, row: object) -> None:
        if row["step"] == at and not gone:  # type: ignore[index]
            gone.append(at)
            shutil.rmtree(folder)

    gone: list[int] = []
    said = refusal(lambda: go_on(small(), home, remove))
    verdict = judged(shop, small(), home, f"folder removed at row {at}")
    if verdict.how == "named":
        raise Failed(f"{verdict.what}: the same command does not begin again ({verdict.said})")
    return Verdict(verdict.what, "named", said) if said else verdict

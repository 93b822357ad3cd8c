"""Which records there are to decide claims, and which of them are damaged or lost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engram.errors import EngramError
from engram.records import Record, files
from engram.records.index import NAME, Line, lines
from engram.records.manifest import Fault, faults
from engram.records.places import Unreadable


@dataclass(frozen=True)
class Found:
    """An ended record and what the index says about it."""

    line: Line
    home: Path

    @cached_property
    def record(self) -> Record:
        return Record(self.line.place(self.home))

    @property
    def stale(self) -> bool:
        return self.line.state == "stale"

    @property
    def finished(self) -> bool:
        return self.line.end == "finished"


class Index:
    """Ended records by the identity that their Spec has today, and those that cannot be read.

    Earlier homes win; fresh records win over stale ones. Rows are read, and compared with their digest, only of
    records that decide something. `faults` are records that are damaged, lost, or not those of their home's manifest:
    they decide nothing, and nothing else decides in their place.
    """

    def __init__(self, found: Iterable[Found], faults: Iterable[Fault] = ()):
        self.found: dict[str, Found] = {}
        self.faults: dict[str, Fault] = {}
        self._told: dict[Unreadable, None] = {}  # each once, in their order
        self.seeds: dict[str, set[int]] = {}  # by the identity without the seed
        self._twins: dict[str, list[Found]] = {}  # finished records of the same Spec, elsewhere
        for one in found:
            self._take(one)
        for fault in faults:
            self._note(fault)

    @classmethod
    def of(cls, homes: Sequence[Path]) -> "Index":
        found, wrong = list[Found](), list[Fault]()
        for home in homes:
            here = lines(home)
            wrong += (new := faults(home, here))
            out = {(fault.line.bundle, fault.line.id) for fault in new if fault.line}
            good = [line for line in here if line.ended and line.today and (line.bundle, line.id) not in out]
            found += [Found(line, home) for line in good]
        return cls(found, wrong)

    def _take(self, one: Found) -> None:
        id = str(one.line.today)
        if id not in self.found or (self.found[id].stale and not one.stale):
            self.found[id] = one
            self.seeds.setdefault(one.line.seedless, set()).add(one.line.seed)
        elif one.finished and not one.stale:
            self._twins.setdefault(id, []).append(one)

    def _note(self, fault: Fault) -> None:
        if fault.id:
            self.faults.setdefault(fault.id, fault)
        self._told[Unreadable(fault.named, fault.why)] = None

    def drop(self, id: str, why: str) -> None:
        """A record that turned out to be damaged when it was read; another one of the same Spec takes its place."""
        one = self.found.pop(id)
        self._note(Fault(id, one.line.id, why, one.home, one.line))
        if twins := self._twins.get(id):
            self.found[id] = twins.pop(0)
        else:
            self.seeds[one.line.seedless].discard(one.line.seed)

    def faulty_seeds(self) -> set[int]:
        """Seeds of what is lost or damaged, as the names of such records say."""
        named = (NAME.fullmatch(id) for id in self.faults if id not in self.found)
        return {int(found["seed"]) for found in named if found}

    @property
    def unreadable(self) -> list[Unreadable]:
        """What is to be named: records, and bundles that are to blame for all of theirs."""
        return list(self._told)

    def all_seeds(self) -> set[int]:
        return {seed for seeds in self.seeds.values() for seed in seeds}


class Spoiled(EngramError):
    """Records that would decide are damaged or lost: says which, why, and what mends it."""


def _lost(ids: Iterable[str], index: Index) -> list[Fault]:
    """Reads what will decide; what does not match its digest leaves the index."""
    lost = []
    for id in ids:
        while id in index.found:
            try:
                _ = index.found[id].record.ended
                break
            except EngramError as error:
                index.drop(id, str(error))
        lost += [index.faults[id]] if id not in index.found else []
    return lost


def refuse_spoiled(ids: Iterable[str], index: Index, again: str) -> None:
    """The records that decide are whole, or it is said what is wrong with them and what mends it."""
    lost = _lost(ids, index)
    if lost:
        more = f" (and {len(lost) - 1} more of the records that decide)" if len(lost) > 1 else ""
        raise Spoiled(f"{_wrong(lost[0])}{more}. To mend it, restore the file, or {_removed(lost[0])}run: {again}")


def _wrong(fault: Fault) -> str:
    """The record or bundle and its damage, without the advice that follows."""
    wrong = fault.why.partition("; ")[0].removeprefix(f"record {fault.named}: ")
    return wrong if wrong.partition(" ")[0].endswith(fault.named) else f"{fault.named}: {wrong}"


def _removed(fault: Fault) -> str:
    """What keeps its place must go first; a run goes beside what is committed."""
    own = fault.home != files.COMMITTED and fault.line is not None and fault.line.bundle is None
    return f"engram runs rm {fault.named} and " if own else ""

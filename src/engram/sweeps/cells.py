"""What a sweep consists of: the points of its fields, and the runs at each of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from engram.errors import EngramError
from engram.records.about import label_in_words
from engram.specs import Spec
from engram.specs.settings import read_value
from engram.specs.spec import run_id

Axes = Mapping[str, Sequence[Any]]  # the values of each swept field, by its dotted name
Point = dict[str, Any]
CLOSING = {"[": "]", "{": "}", '"': '"'}


@dataclass(frozen=True)
class Cell:
    """Runs that differ in their seed only.

    label   what the experiment's file calls them; None where it has no names
    at      the swept fields that make a difference to them, with their values
    """

    label: Any
    at: Point
    specs: tuple[Spec, ...]

    @property
    def words(self) -> str:
        """The cell in one line: "joint · d=16, K=3"."""
        settings = ", ".join(f"{name}={value}" for name, value in zip(short(self.at), self.at.values(), strict=True))
        return " · ".join(filter(None, [label_in_words(self.label), settings]))


def short(names: Iterable[str]) -> list[str]:
    """The last part of each dotted name; the whole where two would be the same."""
    names = list(names)
    last = [name.rpartition(".")[2] for name in names]
    return [name if last.count(end) > 1 else end for name, end in zip(names, last, strict=True)]


def read_axes(words: Sequence[str]) -> dict[str, list[Any]]:
    """task.K=1,3,5 … as lists of values; commas within brackets and quotes belong to a value."""
    axes: dict[str, list[Any]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals and text):
            raise EngramError(f"--set {word!r}: write FIELD=VALUE,VALUE,…, as in --set task.K=1,3,5")
        if name in axes:
            raise EngramError(f"--set {name}: named twice; write all its values in one list, as in {name}=1,3,5")
        axes[name] = [read_value(part) for part in _parts(text)]
    return axes


def _parts(text: str) -> list[str]:
    """Split at the commas that stand outside of brackets and quotes."""
    parts, awaited = [""], ""
    for letter in text:
        if letter == "," and not awaited:
            parts.append("")
            continue
        if awaited and letter == awaited[-1]:
            awaited = awaited[:-1]
        elif letter in CLOSING and not awaited.endswith('"'):
            awaited += CLOSING[letter]
        parts[-1] += letter
    return parts


def points(axes: Axes, zipped: bool = False) -> list[Point]:
    """Every combination of the values, the last field fastest; zipped: the first of each, then the second of each, …"""
    for name, values in axes.items():
        _refuse_odd(name, values)
    if not zipped:
        return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    many = {name: len(values) for name, values in axes.items() if len(values) > 1}
    if len(set(many.values())) > 1:
        told = ", ".join(f"{name} has {n}" for name, n in many.items())
        raise EngramError(f"--zip: the fields need equally many values, or one for all; {told}")
    n = max(many.values(), default=1)
    columns = [values if len(values) > 1 else [*values] * n for values in axes.values()]
    return [dict(zip(axes, values, strict=True)) for values in zip(*columns, strict=True)]


def _refuse_odd(name: str, values: Sequence[Any]) -> None:
    twice = [value for i, value in enumerate(values) if value in values[:i]]
    if not values or "" in values:
        raise EngramError(f"--set {name}: a value is missing; write FIELD=VALUE,VALUE,…, as in --set task.K=1,3,5")
    if twice:
        raise EngramError(f"--set {name}: {twice[0]!r} is given twice")


def merged(cells: Iterable[Cell]) -> list[Cell]:
    """Each group of runs once.

    Where a label has no such field, or where the field is all that tells labels apart, several cells consist of the
    same runs: the first label is kept, and of the swept fields those that have the same value in all of them.
    """
    found: dict[tuple[str, ...], Cell] = {}
    for cell in cells:
        runs = tuple(map(run_id, cell.specs))
        before = found.get(runs, cell)
        shared = {name: value for name, value in before.at.items() if cell.at.get(name) == value}
        found[runs] = Cell(before.label, shared, cell.specs)
    return list(found.values())

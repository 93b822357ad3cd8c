"""Which runs of a list are meant, and in which order: --where K=5, --tag, --sort loss."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from engram.errors import EngramError, did_you_mean
from engram.records.faces import Face, short_column

COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq, "!=": ne, "<": lt, ">": gt, "<=": le, ">=": ge, "~": lambda text, part: part.lower() in text.lower()
}  # fmt: skip
CONDITION = re.compile(r"([^<>=!~]+)(<=|>=|!=|=|<|>|~)\s*([^<>=!~\s].*)", re.DOTALL)
FORMS = "write NAME, a sign (=, !=, <, >, <= or >=; ~: contains) and a value, as in --where K=5 'loss<0.1' 'note~head'"
MOST_NAMES = 24  # in one line
ORDER = ("<", ">", "<=", ">=")
OWN = ("run", "state", "rows", "title", "seed", "made_for", "label", "began", "seconds", "note", "tags")


AS_LISTED = {"made for": "made_for", "took": "seconds"}  # columns of the table under other names
COLUMN = "final"


@dataclass(frozen=True)
class Condition:
    """name, =, value, as in K=5 or loss<0.1; a name may be the last part of a field's."""

    name: str
    sign: str
    value: Any

    @classmethod
    def of(cls, text: str) -> "Condition":
        found = CONDITION.fullmatch(text)
        if found is None:
            raise EngramError(f"--where {text!r}: {FORMS}")
        name, sign, value = found.groups()
        return cls(name.strip(), sign, value.strip() if sign == "~" else _parsed(value.strip()))

    def refuse_unlike(self, faces: Sequence[Face]) -> None:
        """A number is never a word, and words have no order but that of dates: a mistake, not an empty list."""
        found = [value for face in faces for value in values(face, self.name) if value is not None]
        numbers = [value for value in found if isinstance(value, int | float)]
        text = f"--where '{self.name}{self.sign}{self.value}'"
        if found and numbers == found and isinstance(self.value, str):
            raise EngramError(f"{text}: {self.name} is a number, such as {numbers[0]:.6g}; got {self.value!r}")
        if found and not numbers and self.sign in ORDER and self.name != "began":
            raise EngramError(f"{text}: {self.name} is a word, such as {str(found[0])!r:.60}; allowed signs: =, !=, ~")

    def holds(self, face: Face) -> bool:
        return any(self._holds(value) for value in values(face, self.name))

    def _holds(self, value: Any) -> bool:
        """A word is compared with a word, a number with a number; dates begin with the year."""
        if isinstance(value, str) or self.value is None:
            dated = self.name == "began" or self.sign not in ORDER
            return COMPARED[self.sign](str(value), str(self.value)) if dated else False
        try:
            return COMPARED[self.sign](value, self.value)
        except TypeError:
            return False


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def values(face: Face, name: str) -> list[Any]:
    """What a run has under a name: of its own, of its final values, or of the fields that end in it."""
    if name == "tags":
        return list(face.tags)
    name = AS_LISTED.get(name, name)
    if name in OWN:
        return [getattr(face, name)]
    if name in face.final:
        return [face.final[name]]
    found = [value for field, value in face.fields.items() if field == name or field.endswith(f".{name}")]
    return found or [value for column, value in face.headline.items() if name in (short_column(column), COLUMN)][:1]


def chosen(faces: Sequence[Face], where: Iterable[str], tags: Iterable[str]) -> list[Face]:
    """The runs for which all conditions hold and which have all tags."""
    conditions, wanted = [Condition.of(text) for text in where], set(tags)
    for condition in conditions:
        if condition.name != "tags":  # that no run has one is no mistake
            _refuse_unknown("--where", condition.name, faces)
        condition.refuse_unlike(faces)
    return [face for face in faces if wanted <= set(face.tags) and all(c.holds(face) for c in conditions)]


def in_order(faces: Sequence[Face], name: str | None) -> list[Face]:
    """By what they have under a name, the largest last; those that have nothing there come first."""
    if name is None:
        return list(faces)
    _refuse_unknown("--sort", name, faces)
    return sorted(faces, key=lambda face: _place(next(iter(values(face, name)), None)))


def _place(value: Any) -> tuple[int, float, str]:
    """Nothing, then numbers, then words."""
    if value is None:
        return 0, 0.0, ""
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, str(value))


def _refuse_unknown(option: str, name: str, faces: Sequence[Face]) -> None:
    """A name that no run has is a mistake, not an empty list."""
    if faces and not any(values(face, name) for face in faces):
        final, fields = {n for face in faces for n in face.final}, {n for face in faces for n in face.fields}
        known, short = {*OWN, *final, *fields}, sorted({*OWN, *final, *(n.rpartition(".")[2] for n in fields)})
        shown = {short_column(column) for face in faces for column in face.headline}
        hint = did_you_mean(name, sorted({*known, *short, *shown}))
        few = [*short[:MOST_NAMES], *["… (`engram runs show RUN` has all)"] * (len(short) > MOST_NAMES)]
        raise EngramError(f"{option} {name}: no run has it; {hint}allowed: {', '.join(few)}")

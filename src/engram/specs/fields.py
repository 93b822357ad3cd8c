"""Every field of a Spec that can be set: its dotted name, its type and value, and what it means.

Meanings stand in docstrings, a line for each field, or several fields, before two spaces and what is said of them:

    K        number of triggers in a sequence
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from types import NoneType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from engram.specs.encode import encode
from engram.specs.spec import Check
from engram.values import Value

WORDS: dict[Any, str] = {bool: "true or false", int: "integer", float: "number", str: "text", NoneType: "null"}
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
OF_A_LAW = {
    "A": "number of answers",
    "B": "batch of samples",
    "D": "answers of a relation",
    "K": "number of triggers",
    "L": "number of layers, or of tokens in a prompt",
    "M": "number of values",
    "N": "number of tokens, or of pairs",
    "R": "number of relations",
    "S": "number of subjects",
    "T": "length of a sequence",
    "alpha": "α, a share or an exponent (NOTATION.md)",
    "batch": "samples of a step",
    "d": "width",
    "d_h": "width of a head",
    "heads": "number of heads",
    "k": "number of hops",
    "least": "the smallest size",
    "m": "hidden units, or rank",
    "most": "the largest size",
    "n": "number of samples, or dimension",
    "rate": "learning rate",
    "steps": "number of steps",
    "widths": "the widths that are measured",
}  # where the docstring of a law says no more
LINE = re.compile(r"^(?P<names>[\w*]+(?:, [\w*]+)*) {2,}(?P<words>\S.*(?:\n {2,}\S.*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Setting:
    """A field; `default` is what its class gives it, None where it must be said, `value` what this Spec has."""

    field: str
    type: str
    value: Any
    default: Any
    meaning: str


def settings_of(specs: Sequence[Value]) -> list[dict[str, Any]]:
    """The fields of several Specs, each once. Where they have different values, `value` is None and `values` lists all.

    As JSON; a part that has fields of its own has the name of its class as value.
    """
    found: dict[str, list[Setting]] = {}
    for spec in specs:
        for one in fields(spec):
            found.setdefault(one.field, []).append(one)
    return [_merged(same) for same in found.values()]


def _merged(same: Sequence[Setting]) -> dict[str, Any]:
    values = [one.value for one in same]
    different = [value for i, value in enumerate(values) if value not in values[:i]]
    return asdict(same[0]) | {"value": different[0] if len(different) == 1 else None, "values": different}


def fields(value: Value, before: str = "") -> Iterator[Setting]:
    """All fields of a Value and of its parts, the outer ones first."""
    for name, field in type(value).model_fields.items():
        inner = getattr(value, name)
        default = None if field.is_required() else _told(field.default)
        yield Setting(f"{before}{name}", type_of(field), _told(inner), default, meaning(type(value), name))
        if isinstance(value, Check) and name == "sizes":
            yield from _sizes(value, f"{before}sizes.")
        yield from _parts(inner, f"{before}{name}.")


def _parts(inner: Any, before: str) -> Iterator[Setting]:
    if isinstance(inner, Value):
        yield from fields(inner, before)
    named = inner.items() if isinstance(inner, dict) else enumerate(inner) if isinstance(inner, tuple) else ()
    for name, part in named:
        if isinstance(part, Value):
            yield from fields(part, f"{before}{name}.")


def _sizes(check: Check, before: str) -> Iterator[Setting]:
    """The arguments of a law."""
    said = _lines(check.function.__doc__)
    for name, parameter in inspect.signature(check.function).parameters.items():
        if name not in ("draws", "seed"):
            default = None if parameter.default is parameter.empty else parameter.default
            about = said.get(name) or OF_A_LAW.get(name) or f"an argument of the law {check.law}"
            kind = WORDS.get(parameter.annotation, "text")
            yield Setting(f"{before}{name}", kind, check.sizes.get(name, default), default, about)


def _told(value: Any) -> Any:
    """A class by its name, a tuple of them by their names; all else as JSON."""
    if isinstance(value, Value):
        return type(value).__name__
    if isinstance(value, tuple):
        return [_told(part) for part in value]
    if isinstance(value, dict):
        return {name: _told(part) for name, part in value.items()}
    return encode(value)


def type_of(field: FieldInfo) -> str:
    """integer ≥ 1 · number > 0 · random | fixed · list of text · SGD | Adam

    >>> from engram.tasks import Bigram
    >>> type_of(Bigram.model_fields["K"]), type_of(Bigram.model_fields["triggers"])
    ('integer ≥ 1', 'random | fixed')
    """
    return _limited(_words(field.annotation), field.metadata)


def _limited(words: str, metadata: Sequence[Any]) -> str:
    limits = [
        f"{sign} {found}" for part in metadata for name, sign in SIGNS.items() if _is(found := _limit(part, name))
    ]
    return " ".join([words, " and ".join(limits)]) if limits else words


def _limit(part: Any, name: str) -> Any:
    """Of an annotated type itself, or of the pydantic field that annotates it."""
    inside = [getattr(one, name, None) for one in (part, *getattr(part, "metadata", ()))]
    return next((found for found in inside if _is(found)), None)


def _is(found: Any) -> bool:
    return isinstance(found, int | float)


def _words(annotation: Any) -> str:
    inner = get_args(annotation)
    if annotation in WORDS:
        return WORDS[annotation]
    if get_origin(annotation) is Literal:
        return " | ".join(str(choice) for choice in inner)
    if hasattr(annotation, "__metadata__"):
        return _limited(_words(inner[0]), annotation.__metadata__)
    if get_origin(annotation) is tuple:
        return _list(inner)
    if get_origin(annotation) is dict:
        return f"table of {_words(inner[1])} by name"
    if get_origin(annotation) is Union or "|" in str(type(annotation)) or type(annotation).__name__ == "UnionType":
        return " | ".join(dict.fromkeys(_words(part) for part in inner))
    return getattr(annotation, "__name__", "any value")


def _list(inner: tuple[Any, ...]) -> str:
    if len(inner) == 2 and inner[1] is ...:
        return f"list of {_words(inner[0])}"
    return f"list: {', '.join(_words(part) for part in inner)}"


def meaning(kind: type[Value], name: str) -> str:
    """What the docstring of a class, or of one that it comes from, says of a field; empty where it says nothing."""
    for owner in kind.__mro__:
        said = _lines(owner.__dict__.get("__doc__"))
        for pattern, words in said.items():
            if fnmatch(name, pattern):
                return words
    return ""


def _lines(docstring: str | None) -> dict[str, str]:
    """Name → what is said of it; the first line of a name counts."""
    found: dict[str, str] = {}
    for line in LINE.finditer(inspect.cleandoc(docstring or "")):
        for name in line["names"].split(", "):
            found.setdefault(name, " ".join(line["words"].split()).rstrip(":"))
    return found

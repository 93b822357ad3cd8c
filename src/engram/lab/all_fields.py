"""Every field of a preset that a page may set, beside those that its form shows at first."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from engram.errors import EngramError, did_you_mean
from engram.specs import Train
from engram.specs.encode import TAGS
from engram.specs.fields import Setting, fields
from engram.specs.settings import read_value

A_CLASS = re.compile(r"\b[A-Z][a-z]\w+")  # in the words of a type
OPTIMISERS = ("plan.optimiser", "plan.optimiser.rest")  # classes that a word can exchange for others
ELSEWHERE = re.compile(
    r"seed|(events|tests)(\..*)?|(.*\.)?corpus"
)  # has a place of its own, or names files of this machine
KINDS = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "text"))


def settable(spec: Train) -> dict[str, Setting]:
    """By name, those of a curriculum among them. What holds other parts is set part by part."""
    return {one.field: one for one in fields(spec) if _is_plain(one)}


def _is_plain(one: Setting) -> bool:
    return not ELSEWHERE.fullmatch(one.field) and (not A_CLASS.search(one.type) or _is_choice_of_classes(one))


def _is_choice_of_classes(one: Setting) -> bool:
    return one.field in OPTIMISERS and " | " in one.type


def described(spec: Train) -> list[dict[str, Any]]:
    """As JSON: values and defaults as they are typed, with the words of their types."""
    return [_described(one) for one in settable(spec).values()]


def _described(one: Setting) -> dict[str, Any]:
    choices = _choices(one)
    kind = next((name for type_, name in KINDS if isinstance(one.value, type_)), "json")
    told = {"name": one.field, "meaning": one.meaning, "type": kind if "null" not in one.type else "json"}
    default = None if one.default is None and "null" not in one.type else written(one.default)
    return told | {
        "words": "" if choices else one.type,
        "value": written(one.value),
        "default": default,
        "choices": choices,
    }


def _choices(one: Setting) -> list[str] | None:
    if isinstance(one.value, bool):
        return ["true", "false"]
    parts = one.type.split(" | ")
    return parts if len(parts) > 1 and one.value in parts else None


def written(value: Any) -> str:
    """As a person would type it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read(spec: Train, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, as the Spec takes it; lists and null come as JSON. No class is made from what a page says."""
    known = settable(spec)
    for field in settings:
        if field not in known:
            hint = did_you_mean(field, known)
            raise EngramError(f"{field}: cannot be set here; {hint}the list of all fields names those that can")
    return {field: _read(known[field], value) for field, value in settings.items()}


def _read(one: Setting, value: Any) -> Any:
    words = one.type == "text" or (_choices(one) is not None and not isinstance(one.value, bool))
    found = value if words or not isinstance(value, str) else read_value(value)
    if any(tag in TAGS for tag in _keys(found)):
        raise EngramError(f"{one.field}: must be {one.type}; a class cannot be given here")
    return found


def _keys(value: Any) -> Iterator[str]:
    """Of all tables within a value."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _keys(part)

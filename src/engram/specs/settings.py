"""Fields of a Spec overridden by their dotted names: task.K=3."""

import json
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, TypeVar

from engram.errors import EngramError, did_you_mean
from engram.specs.encode import TAGS, decode, encode, user_code
from engram.specs.forms import Offer, choices_of
from engram.values import Value

Described = TypeVar("Described", bound=Value)  # a Spec


def with_settings(spec: Described, settings: dict[str, Any]) -> Described:
    """The Spec with dotted fields replaced: {"task.K": 3, "model.layers.0.heads": 2}; without any, the Spec itself."""
    if not settings:
        return spec
    data = encode(spec)
    for path, value in settings.items():
        _set(data, path.split("."), value, path)
    return decode(data, user_code(spec))


def setting(spec: Value, path: str) -> Offer | None:
    """The value of a dotted field and, of a Literal, what else it may be; None if the Spec has no such field."""
    *way, name = path.split(".")
    holder = reduce(lambda part, inner: getattr(part, inner, None), way, spec)
    field = type(holder).model_fields.get(name) if isinstance(holder, Value) else None
    return None if field is None else Offer(getattr(holder, name), choices_of(field))


def all_with_settings(specs: Sequence[Described], settings: dict[str, Any]) -> list[Described]:
    """Each setting goes to the Specs that have its field; one that none has is refused where it led furthest."""
    known = {path: [len(_way(encode(spec), path.split("."))) for spec in specs] for path in settings}
    return [
        with_settings(spec, {path: settings[path] for path, parts in known.items() if parts[i] == max(parts)})
        for i, spec in enumerate(specs)
    ]


def tells_apart(groups: Iterable[Sequence[Value]], path: str) -> bool:
    """Whether a field has other values in one group of Specs than in another."""
    parts = path.split(".")
    ways = ([_way(encode(spec), parts) for spec in group] for group in groups)
    found = {frozenset(json.dumps(way[-1], sort_keys=True) for way in of if len(way) > len(parts)) for of in ways}
    return len(found - {frozenset()}) > 1


def parse_settings(words: tuple[str, ...]) -> dict[str, Any]:
    """task.K=3 … as a dict; values are JSON, or else plain words."""
    settings = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise EngramError(f"--set {word!r}: write FIELD=VALUE, as in --set task.K=3")
        try:
            settings[name] = json.loads(text)
        except json.JSONDecodeError:
            settings[name] = text
    return settings


def _set(data: dict[str, Any], path: list[str], value: Any, whole: str) -> None:
    """A whole number counts into a tuple, from 0. A class that has no such field says so itself."""
    if set(path) & set(TAGS):
        raise EngramError(f"--set {whole}: this is not a field of a Spec")
    way = _way(data, path)
    holder = way[len(path) - 1] if len(way) >= len(path) else None
    if isinstance(holder, dict):
        holder[path[-1]] = value
    elif isinstance(holder, list) and len(way) > len(path):
        holder[int(path[-1])] = value
    else:
        known, last = path[: len(way) - 1], _inside(way[-1])
        where = f"allowed in {'.'.join(known)}" if known else "allowed first parts"
        hint = did_you_mean(path[len(known)], last)
        raise EngramError(f"--set {whole}: no such field; {hint}{where}: {', '.join(last) or 'nothing'}")


def _way(data: Any, path: Sequence[str]) -> list[Any]:
    """Everything that a dotted name leads through, as far as it leads: first the whole."""
    way = [data]
    for part in path:
        if part not in _inside(way[-1]):
            break
        way.append(_inside(way[-1])[part])
    return way


def _inside(data: Any) -> dict[str, Any]:
    """What `encode` wrote, part by part: the fields of a class, the keys of a dict, the places of a tuple."""
    if isinstance(data, list):
        return {str(place): part for place, part in enumerate(data)}
    return {name: part for name, part in data.items() if name not in TAGS} if isinstance(data, dict) else {}

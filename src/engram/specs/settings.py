"""Fields of a Spec: how a page asks for them, and how they are overridden by their dotted names, as in task.K=3."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic.fields import FieldInfo

from engram.errors import EngramError, did_you_mean
from engram.specs.encode import TAGS, decode, encode, user_code
from engram.tasks.corpus import carried_by, carrying
from engram.values import NAMED, Value, class_named, classes_in, import_rooms

Described = TypeVar("Described", bound=Value)  # a Spec
Plain = str | int | float | bool
POWER = re.compile(r"[1-9]\d?e\+?(\d|1[0-5])", re.IGNORECASE)  # of ten: a float holds these exactly
TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number"}  # all else is text


@dataclass(frozen=True)
class Offer:
    """What a form proposes for a field, and what can be chosen there; None: whatever its type allows."""

    value: Any = None
    choices: tuple[Plain, ...] | None = None


@dataclass(frozen=True)
class Ask:
    """The label of a field, and what is offered there in a run: offer(spec).

    Where this depends on another field, `after` names that field, which has choices: offer(spec, chosen).
    """

    label: str
    offer: Callable[..., Offer]
    after: str | None = None


@dataclass(frozen=True)
class Filled:
    """Marks a field that no form asks for: `completed` of its class fills it in."""


def form(kind: type[Value], spec: Value) -> list[dict[str, Any]] | None:
    """The fields of a class besides the step, as JSON; None where a run has nothing to choose from.

    A page draws the form from what is said here, and knows nothing else.
    """
    fields = {name: field for name, field in kind.model_fields.items() if name != "step" and not _filled(field)}
    offers = {name: _ask(name, field).offer(spec) for name, field in fields.items() if not _ask(name, field).after}
    if any(offer.choices == () for offer in offers.values()):
        return None
    return [_described(name, field, spec, offers) for name, field in fields.items()]


def _filled(field: FieldInfo) -> bool:
    return any(isinstance(part, Filled) for part in field.metadata)


def _ask(name: str, field: FieldInfo) -> Ask:
    """As its class says, or by its name and its default."""
    said = (part for part in field.metadata if isinstance(part, Ask))
    default = None if field.is_required() else field.default
    return next(said, Ask(name, lambda spec: Offer(default, choices_of(field))))


def choices_of(field: FieldInfo) -> tuple[Plain, ...] | None:
    """Of a Literal all that it allows."""
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else None


def _described(name: str, field: FieldInfo, spec: Value, offers: dict[str, Offer]) -> dict[str, Any]:
    ask = _ask(name, field)
    about = {"name": name, "label": ask.label}
    if ask.after is None:
        return about | offered(offers[name], field.annotation)
    by = {str(c): offered(ask.offer(spec, c), field.annotation) for c in offers[ask.after].choices or ()}
    return about | {"after": ask.after, "by": by}


def offered(offer: Offer, annotation: Any = None) -> dict[str, Any]:
    """One field as JSON. Where its class does not say one plain type, it is of the type that it has now."""
    kind = annotation if annotation in (*TYPES, str) else type(offer.value)
    value = offer.choices[0] if offer.value is None and offer.choices else offer.value
    return {"type": TYPES.get(kind, "text"), "value": value, "choices": offer.choices and list(offer.choices)}


def with_settings(spec: Described, settings: dict[str, Any]) -> Described:
    """The Spec with dotted fields replaced: {"task.K": 3, "model.layers.0.heads": 2}; without any, the Spec itself."""
    _refuse_no_dict(settings)
    if not settings:
        return spec
    data = encode(spec)
    for path, value in settings.items():
        _refuse_unknown(path, [data])
        _set(data, path.split("."), value, path)
    with carrying(carried_by(spec)):
        return decode(data, user_code(spec))


def _refuse_no_dict(settings: object) -> None:
    if not (isinstance(settings, Mapping) and all(isinstance(path, str) for path in settings)):
        raise EngramError(f'settings: give fields with their values, as in {{"task.K": 3}}; got {settings!r:.60}')


def setting(spec: Value, path: str) -> Offer | None:
    """The value of a dotted field and, of a Literal, what else it may be; None if the Spec has no such field."""
    *way, name = path.split(".")
    holder = reduce(lambda part, inner: getattr(part, inner, None), way, spec)
    field = type(holder).model_fields.get(name) if isinstance(holder, Value) else None
    return None if field is None else Offer(getattr(holder, name), choices_of(field))


def all_with_settings(specs: Sequence[Described], settings: dict[str, Any]) -> list[Described]:
    """Each setting goes to the Specs that have its field; one that none has is refused where it led furthest."""
    _refuse_no_dict(settings)
    for path in settings:
        _refuse_unknown(path, [encode(spec) for spec in specs])
    known = {path: [len(_way(encode(spec), path.split("."))) for spec in specs] for path in settings}
    return [
        with_settings(spec, {path: settings[path] for path, parts in known.items() if parts[i] == max(parts)})
        for i, spec in enumerate(specs)
    ]


def full_name(path: str, specs: Sequence[Value]) -> str:
    """task.K for K where only one field of the Specs ends so; where several do, they are named."""
    data = [encode(spec) for spec in specs]
    if any(path.partition(".")[0] in (*_inside(one), *TAGS) for one in data):
        return path
    same = list(dict.fromkeys(name for one in data for name in _paths(one) if name.endswith(f".{path}")))
    if len(same) > 1:
        raise EngramError(f"--set {path}: could be {', '.join(same)}; write one of them")
    return same[0] if same else path


def tells_apart(groups: Iterable[Sequence[Value]], path: str) -> bool:
    """Whether a field has other values in one group of Specs than in another."""
    parts = path.split(".")
    ways = ([_way(encode(spec), parts) for spec in group] for group in groups)
    found = {frozenset(json.dumps(way[-1], sort_keys=True) for way in of if len(way) > len(parts)) for of in ways}
    return len(found - {frozenset()}) > 1


def parse_settings(words: tuple[str, ...]) -> dict[str, Any]:
    """task.K=3 … as a dict; values are JSON, or else plain words. 1e6 is a whole number, 1.0e6 is not."""
    settings = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise EngramError(f"--set {word!r}: write FIELD=VALUE, as in --set task.K=3")
        settings[name] = read_value(text)
    return settings


def read_value(text: str) -> Any:
    """JSON, a power of ten such as 1e6 as a whole number, or else a plain word."""
    try:
        return int(float(text)) if POWER.fullmatch(text) else json.loads(text)
    except json.JSONDecodeError:
        return text


def short_hash(settings: Any) -> str:
    """A name for these settings in the name of a file."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:6]


def _refuse_unknown(path: str, specs: Sequence[dict[str, Any]]) -> None:
    """A name that begins with no field of any Spec: says where there is one of this name, or a similar one."""
    first = path.partition(".")[0]
    if not any(first in (*_inside(data), *TAGS) for data in specs):
        paths = list(dict.fromkeys(name for data in specs for name in _paths(data)))
        same = [name for name in paths if name.lower().endswith(f".{path.lower()}")]
        hint = f"did you mean {' or '.join(same[:3])}? " if same else did_you_mean(path, paths)
        allowed = ", ".join(dict.fromkeys(name for data in specs for name in _inside(data)))
        where = f"`engram fields NAME` lists all; allowed first parts: {allowed}"
        raise EngramError(f"--set {path}: no such field; {hint}{where}")


def _paths(data: Any, before: str = "") -> Iterator[str]:
    """The dotted names of all fields, those of the outer parts first."""
    for name in _inside(data):
        yield f"{before}{name}"
    for name, part in _inside(data).items():
        yield from _paths(part, f"{before}{name}.")


def _set(data: dict[str, Any], path: list[str], value: Any, whole: str) -> None:
    """A whole number counts into a tuple, from 0. A class that has no such field says so itself."""
    if set(path) & set(TAGS):
        raise EngramError(f"--set {whole}: this is not a field of a Spec")
    way = _way(data, path)
    holder = way[len(path) - 1] if len(way) >= len(path) else None
    new = _fitting(value, way[-1] if len(way) > len(path) else None, _annotation(holder, path[-1]), whole)
    if isinstance(holder, dict):
        holder[path[-1]] = new
    elif isinstance(holder, list) and len(way) > len(path):
        holder[int(path[-1])] = new
    else:
        known, last = path[: len(way) - 1], _inside(way[-1])
        where = f"allowed in {'.'.join(known)}" if known else "allowed first parts"
        hint = did_you_mean(path[len(known)], last)
        raise EngramError(f"--set {whole}: no such field; {hint}{where}: {', '.join(last) or 'nothing'}")


def _annotation(holder: Any, name: str) -> Any:
    """The type of a field, as the class of Engram that has it says; None where none does."""
    kind = class_named(holder["class"]) if isinstance(holder, dict) and "class" in holder else None
    field = kind.model_fields.get(name) if kind else None
    return field.annotation if field else None


def _fitting(value: Any, before: Any, annotation: Any, path: str) -> Any:
    """A word where a class stands is the name of another."""
    if isinstance(value, str) and isinstance(before, dict) and "class" in before and "file" not in before:
        return _of_class(value, before, annotation, path)
    return value


def _of_class(word: str, before: dict[str, Any], annotation: Any, path: str) -> dict[str, Any]:
    """Another class in the place of one, with the fields that both have: plan.optimiser=Adam keeps lr."""
    allowed = {kind.__name__: kind for kind in (classes_in(annotation) or _neighbours(before["class"]))}
    found = next((kind for name, kind in allowed.items() if name.lower() == word.lower()), None)
    if found is None:
        raise EngramError(f"--set {path}: no {word!r} here; {did_you_mean(word, allowed)}allowed: {', '.join(allowed)}")
    return {"class": found.stable_name} | {name: before[name] for name in found.model_fields if name in before}


def _neighbours(name: str) -> list[type[Value]]:
    """Classes that live in the same room as the one of this stable name."""
    import_rooms()
    room = name.partition(".")[0]
    return [kind for known, kind in NAMED.items() if known.partition(".")[0] == room]


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

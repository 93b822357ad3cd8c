"""How a page asks for the fields of a Value: it draws the form from what is said here, and knows nothing else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from engram.values import Value

if TYPE_CHECKING:
    from engram.specs.spec import Train

Plain = str | int | float | bool
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


def form(kind: type[Value], spec: "Train") -> list[dict[str, Any]] | None:
    """The fields of a class besides the step, as JSON; None where a run has nothing to choose from."""
    fields = {name: field for name, field in kind.model_fields.items() if name != "step"}
    offers = {name: _ask(name, field).offer(spec) for name, field in fields.items() if not _ask(name, field).after}
    if any(offer.choices == () for offer in offers.values()):
        return None
    return [_described(name, field, spec, offers) for name, field in fields.items()]


def _ask(name: str, field: FieldInfo) -> Ask:
    """As its class says, or by its name and its default."""
    said = (part for part in field.metadata if isinstance(part, Ask))
    default = None if field.is_required() else field.default
    return next(said, Ask(name, lambda spec: Offer(default, choices_of(field))))


def choices_of(field: FieldInfo) -> tuple[Plain, ...] | None:
    """Of a Literal all that it allows."""
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else None


def _described(name: str, field: FieldInfo, spec: "Train", offers: dict[str, Offer]) -> dict[str, Any]:
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

"""What every room shares: frozen values and laws under their stable names, and random streams that depend on nothing
but their key."""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_args
from zlib import crc32

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic._internal._model_construction import ModelMetaclass

from engram.errors import EngramError, did_you_mean

Rows = Iterator[dict[str, float]]  # what a law yields
LawFunction = Callable[..., Rows]
Marked = TypeVar("Marked", bound=LawFunction)
Built = TypeVar("Built")
NAMED: dict[str, "type[Value]"] = {}
LAWS: dict[str, LawFunction] = {}
OWN_FILE = "engram_file_"  # how the modules of users' files are called (engram.specs.encode)
OF_A_UNION = re.compile(r"(tuple|literal|list|dict)\[|function-")  # how pydantic tags a member of a union
PARTS = {  # what a user's own class must have
    "Task": ("task", ("N", "T", "groups", "sample")),
    "Architecture": ("model", ("names", "init", "forward")),
}
ROOMS = ("tasks", "models", "theory", "learning", "probes", "laws", "specs")  # where values and laws are defined


class BadValue(EngramError, ValueError):
    """A field that a description cannot have. A ValueError, too: pydantic reports one that a validator meets."""


class Explained(ModelMetaclass):
    """Whoever writes a description by hand is told in one line what is wrong with it.

    A metaclass, since an __init__ of our own would hide from pydantic where in a nested description the field is, and
    from editors what the fields are.
    """

    def __call__(cls: type[Built], /, *given: Any, **fields: Any) -> Built:  # noqa: N805 (a class)
        if given:
            example = f"{cls.__name__}({next(iter(cls.model_fields), 'field')}=…)"  # type: ignore[attr-defined]
            raise BadValue(f"{cls.__name__}: name the fields, as in {example}; got {given[0]!r:.80} without a name")
        return build(cls, fields, cls.__name__)  # type: ignore[type-var]


class Value(BaseModel, metaclass=Explained):
    """A frozen description (task, model, plan, Spec) whose non-default fields and `revision` are its identity.

    `name` is what records call the class. It never changes, wherever the file is moved and whatever the class is called
    in Python: class Bigram(Value, name="tasks.bigram.Bigram"). A class in a user's own file needs none.

    Raise `revision` when the same fields come to give other numbers: older records become stale.
    Fields named in `unhashed` are not part of the identity: they say where something lies, not what it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    revision: ClassVar[int] = 1
    unhashed: ClassVar[frozenset[str]] = frozenset()
    stable_name: ClassVar[str | None] = None

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except ValidationError:
            raise BadValue(_of_frozen(type(self), name)) from None

    def __eq__(self, other: object) -> bool:
        """By fields: what a value keeps besides, such as tables that it has drawn, is no part of it."""
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in type(self).model_fields
        )

    if TYPE_CHECKING:  # pydantic gives frozen classes one, by their fields

        def __hash__(self) -> int: ...

    def __init_subclass__(cls, *, name: str | None = None, **config: Any) -> None:
        super().__init_subclass__(**config)
        cls.stable_name = name  # never inherited: a subclass is another class
        if name is not None and cls.__module__.startswith(OWN_FILE):
            raise TypeError(f"class {cls.__name__}: leave name={name!r} out; the record carries your file instead")
        if name is not None:
            _take(NAMED, name, cls)


def _of_frozen(kind: "type[Value]", name: str) -> str:
    if name not in kind.model_fields:
        hint = did_you_mean(name, kind.model_fields)
        return f"{kind.__name__}.{name}: no such field; {hint}allowed: {', '.join(kind.model_fields)}"
    return f"{kind.__name__}.{name}: it is frozen, since its fields are its name; make another with {name}=…"


def build(kind: type[Built], fields: dict[str, Any], at: str = "") -> Built:
    """kind(**fields), with pydantic's report turned into one line, which says that the value is to stand at `at`."""
    try:
        return type.__call__(kind, **fields)
    except ValidationError as error:
        raise BadValue(explain(error, kind, at)) from None  # type: ignore[arg-type]


def explain(error: ValidationError, kind: "type[Value]", at: str = "") -> str:
    """What is wrong with the first bad field: its name, what was given, what is allowed, the nearest name."""
    first = min(error.errors(), key=lambda one: one["type"] == "missing")  # what is misspelt is missing, too
    names, owner = _place(kind, first["loc"])
    field, called = ".".join([at, *names] if at else names), error.title if owner is Value else owner.__name__
    if first["type"] == "extra_forbidden":
        hint = did_you_mean(names[-1], owner.model_fields)
        allowed = f"; {hint}allowed: {', '.join(owner.model_fields)}" if owner.model_fields else ""
        return f"{field}: no such field in {called}{allowed}"
    wanted = first.get("ctx", {}).get("class")
    if first["type"] == "is_instance_of" and wanted in PARTS:
        called, parts = PARTS[wanted]
        lacking = [part for part in parts if not hasattr(first["input"], part)]
        return f"{field}: {type(first['input']).__name__} is not a {called}: it lacks {', '.join(lacking)}"
    if first["type"] == "missing":
        needed = [name for name, of in owner.model_fields.items() if of.is_required()]
        return f"{field}: {called} needs this field; it has no default for {', '.join(needed)}"
    if first["type"] == "value_error":
        own = str(first.get("ctx", {})["error"])
        return (f"{field}.{own}" if re.match(r"[\w.]+: ", own) else f"{field}: {own}") if field else own
    return f"{field}: {_complaint(first)}; got {' '.join(repr(first['input']).split()):.200}"


def _complaint(error: Any) -> str:
    """What a value must be, in plain words."""
    about = error.get("ctx", {})
    if about.get("gt") == 0 or about.get("ge") == 1:
        return "must be positive"
    if error["type"] in ("int_type", "int_from_float"):
        return "must be an integer"
    message = error["msg"].replace("Input should be", "must be")
    return message[0].lower() + message[1:]


def _place(kind: "type[Value]", place: Iterable[int | str]) -> "tuple[list[str], type[Value]]":
    """Where pydantic found something, without its tags for the members of a union; and the class of the last name."""
    names, owner, inside = [], kind, list["type[Value]"]()
    for part in place:
        tagged = [c for c in inside if part == c.__name__ or (OF_A_UNION.match(str(part)) and c.__name__ in str(part))]
        if tagged:
            kind = tagged[0]
        elif not OF_A_UNION.match(str(part)):
            names, owner = [*names, str(part)], kind
            inside = classes_in(kind.model_fields[str(part)].annotation) if part in kind.model_fields else inside
            kind = inside[0] if len(inside) == 1 else kind
    return names, owner


def classes_in(annotation: Any) -> "list[type[Value]]":
    """The Values that a field may hold, also within tuples, dicts and unions."""
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return [annotation]
    return [found for inner in get_args(annotation) for found in classes_in(inner)]


def law(name: str) -> Callable[[Marked], Marked]:
    """Marks a function as a law that a Check can name; the name never changes, wherever the function is moved.

    A law is called as law(draws=…, seed=…, **sizes) and yields rows: dicts of numbers. Its sizes are annotated with
    int, float, str or bool, which is what a Check then accepts.
    """

    def mark(function: Marked) -> Marked:
        _take(LAWS, name, function)
        return function

    return mark


def _take(table: dict[str, Any], name: str, new: Any) -> None:
    """A name stands for one thing; a module that is loaded again brings the same thing once more."""
    old = table.get(name, new)
    if (old.__module__, old.__qualname__) != (new.__module__, new.__qualname__):
        raise TypeError(f"the name {name!r} is taken by {old.__module__}.{old.__qualname__}; choose another")
    table[name] = new


def class_named(name: str) -> "type[Value] | None":
    """The class that records call by this name; None if there is none."""
    if name not in NAMED:
        import_rooms()
    return NAMED.get(name)


def law_named(name: str) -> LawFunction | None:
    """The law of this name; None if there is none."""
    if name not in LAWS:
        import_rooms()
    return LAWS.get(name)


def import_rooms() -> None:
    """Imports every module in which values and laws are defined, so that all names are known."""
    for room in ROOMS:
        import_room(room)


@lru_cache
def import_room(room: str) -> None:
    """Imports every module of a room, so that a new file need not be listed anywhere."""
    package = importlib.import_module(f"engram.{room}")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def generator(seed: int, purpose: str, step: int = 0) -> np.random.Generator:
    """The random stream of (seed, purpose, step), a Philox generator: no other draw, worker or restart can shift it."""
    key, counter = [seed, crc32(purpose.encode())], [0, 0, step, 0]
    return np.random.Generator(np.random.Philox(key=key, counter=counter))

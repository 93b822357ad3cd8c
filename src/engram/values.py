"""What every room shares: frozen values and laws under their stable names, and random streams that depend on nothing
but their key."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, ClassVar, TypeVar
from zlib import crc32

import numpy as np
from pydantic import BaseModel, ConfigDict

Rows = Iterator[dict[str, float]]  # what a law yields
LawFunction = Callable[..., Rows]
Marked = TypeVar("Marked", bound=LawFunction)
NAMED: dict[str, "type[Value]"] = {}
LAWS: dict[str, LawFunction] = {}
OWN_FILE = "engram_file_"  # how the modules of users' files are called (engram.specs.encode)
ROOMS = ("tasks", "models", "theory", "learning", "probes", "laws", "specs")  # where values and laws are defined


class Value(BaseModel):
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

    def __init_subclass__(cls, *, name: str | None = None, **config: Any) -> None:
        super().__init_subclass__(**config)
        cls.stable_name = name  # never inherited: a subclass is another class
        if name is not None and cls.__module__.startswith(OWN_FILE):
            raise TypeError(f"class {cls.__name__}: leave name={name!r} out; the record carries your file instead")
        if name is not None:
            _take(NAMED, name, cls)


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

"""The checker that conftest applies to the whole package: beartype, for which an int is a float (PEP 484)."""

from collections.abc import Callable
from dataclasses import is_dataclass
from inspect import isclass
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, install_import_hook

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
jaxtyped = jaxtyping.jaxtyped


def check_package(name: str) -> None:
    """From now on every function of a package is checked as soon as it is imported."""
    jaxtyping.jaxtyped = checked  # what the hook calls
    install_import_hook(name, "typecheck.check")


def checked(*, typechecker: Callable[..., Any]) -> Callable[[Any], Any]:
    """jaxtyping's decorator where shapes are named, which is slow; beartype alone checks all other annotations."""

    def decorate(it: Any) -> Any:
        if not isclass(it):
            return jaxtyped(it, typechecker=typechecker) if names_shapes(it) else check(it)
        if is_dataclass(it):
            it.__init__ = decorate(it.__init__)
        return it

    return decorate


def names_shapes(function: Callable[..., Any]) -> bool:
    """Whether an axis is named in its annotations; it may be, if they cannot be read before all is imported."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        return True
    return any(map(holds_shape, hints.values()))


def holds_shape(hint: Any) -> bool:
    return (isclass(hint) and issubclass(hint, AbstractArray)) or any(map(holds_shape, get_args(hint)))

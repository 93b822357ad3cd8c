"""What memories accept: names, whole numbers, sizes that fit into the machine. Anything else is refused."""

import os
from collections.abc import Iterable
from math import inf, prod
from numbers import Integral, Real
from typing import Any

from torch import Tensor

from engram.errors import EngramError, did_you_mean

LARGEST_SEED = 2**63 - 1


def check_whole_number(field: str, value: Any, least: int, most: int | None = None) -> None:
    if not is_whole(value) or value < least or (most is not None and value > most):
        allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise EngramError(f"{field}: must be a whole number {allowed}; got {shown(value)}")


def is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_size(d: object, seed: object, least: int = 1) -> None:
    """The two numbers that every memory is made from."""
    check_whole_number("d", d, least)
    check_whole_number("seed", seed, 0, LARGEST_SEED)


def check_rank(field: str, rank: int, d: int) -> None:
    check_whole_number(field, rank, 1)
    if rank > d:
        raise EngramError(f"{field}: must be at most d={d}, the largest rank of a d×d matrix; got {rank}")


def check_finite(field: str, value: Any, above: float = -inf) -> None:
    if not (is_real(value) and above < value < inf):
        allowed = "a finite number" if above == -inf else f"a finite number above {above:g}"
        raise EngramError(f"{field}: must be {allowed}; got {shown(value)}")


def check_plan(lr: float, steps: int) -> None:
    check_finite("lr", lr, above=0)
    check_whole_number("steps", steps, 1)


def check_one_of(field: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        hint = did_you_mean(str(value), allowed)
        raise EngramError(f"{field}: unknown {shown(value)}; {hint}allowed: {', '.join(allowed)}")


def check_names(*names: object) -> None:
    """Refuse names that a table could not find again."""
    for name in names:
        if not hashable(name):
            given = f"{shown(name)} is a {type(name).__name__}, which cannot be hashed by its content"
            raise EngramError(f"name: {given}; use strings, numbers, tuples or frozensets")
        if name != name:
            raise EngramError(f"name: {shown(name)} is not equal to itself and could never be found again; use another")


def hashable(name: object) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return not isinstance(name, Tensor)  # its hash is its address


def several(what: str, names: object) -> list[Any]:
    """Names, or whatever stands for them, one by one."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise EngramError(f"{what}: got {shown(names)}, which is not a list of names; write {what}([name, …])")
    listed = list(names)
    if not listed:
        raise EngramError(f"{what}: no names were given; write {what}([name, …])")
    return listed


def shown(value: object) -> str:
    """A value in one short line."""
    return " ".join(f"{value!r:.80}".split())


def machine_bytes() -> float:
    """Memory of this machine; infinite where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return inf


def check_room(what: str, *shape: int) -> None:
    """Refuse float64 numbers that do not fit into the machine, before they are allocated."""
    needed, there = 8 * prod(shape), machine_bytes()
    if needed > there:
        size = " × ".join(f"{n:,}" for n in shape)
        why = f"{what} ({size} numbers) would take {needed / 1e9:,.1f} GB, but this machine has {there / 1e9:,.1f} GB"
        raise EngramError(f"memory: {why}; lower d or m, store fewer pairs, or ask about fewer keys at a time")

"""One-line errors. Light to import: the command line needs them before anything else."""

import re
from collections.abc import Iterable
from contextlib import ContextDecorator
from difflib import get_close_matches
from numbers import Integral
from traceback import walk_tb
from types import UnionType
from typing import Any


class EngramError(Exception):
    """Bad input or a broken record, explained in one line that ends with a remedy. Exit code 2."""


class Interrupted(Exception):
    """Stopped on request after a whole step; what was done is saved. Exit code 128 + the number of the signal."""

    number = 2  # SIGINT, unless it was another one

    def __init__(self, runs: list[str], step: int | None = None):
        where = f" at step {step}" if step is not None else ""
        how = f"engram runs resume {runs[0]}" if len(runs) == 1 else "the same command"
        super().__init__(f"stopped{where} and saved; resume with: {how}")
        self.runs, self.step = runs, step


class in_python_words(ContextDecorator):  # noqa: N801  # `@in_python_words()`
    """Where a function is called from Python, errors speak of its parameters: scale, where a command has --scale."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, EngramError) and str(error).startswith("--"):
            error.args = (_as_parameters(str(error)), *error.args[1:])


PARAMETERS = {"set": "settings", "metric": "metrics"}  # that are not called as their options


def _as_parameters(message: str) -> str:
    """
    >>> _as_parameters("--device cuda: no such device here; use --device auto")
    'device cuda: no such device here; use device auto'
    """

    def parameter(option: re.Match[str]) -> str:
        return PARAMETERS.get(option[1], option[1].replace("-", "_"))

    return re.sub(r"(?<!\S)--([a-z][a-z-]*)", parameter, message)


def refuse_other(kinds: type | UnionType, given: object, needed: str) -> None:
    """In Python anything can be given, where a command has words only. True is no number, what numpy counts is one."""
    allowed = Integral if kinds is int else kinds
    if not isinstance(given, allowed) or (kinds is int and isinstance(given, bool)):
        raise EngramError(f"{needed}; got {given!r:.60}")


def did_you_mean(given: object, allowed: Iterable[str]) -> str:
    """'did you mean X? ' for the nearest allowed name, ignoring case; nothing if none is near."""
    if not isinstance(given, str):
        return ""
    by_lower = {name.lower(): name for name in allowed}
    near = get_close_matches(given.lower(), by_lower, n=1, cutoff=0.6)
    return f"did you mean {by_lower[near[0]]}? " if near else ""


def explain_crash(error: BaseException) -> str:
    """Any exception in one line: our own as it is, one from a user's file with its place, others as what they are."""
    message = " ".join(str(error).split())
    if isinstance(error, EngramError):
        return message
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate memory" in message):
        return "not enough memory; lower plan.batch, task.T or model.d"
    if isinstance(error, OSError) and error.filename:
        return f"cannot use {error.filename} ({error.strerror}); check it, or set ENGRAM_HOME to another folder"
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        if "__content__" in frame.f_globals:  # a user's file: see specs/encode.py
            place = f"{frame.f_globals['__file_name__']}, line {line}, in {frame.f_code.co_name}"
            return f"{place}: {type(error).__name__}: {message}"
    return f"unexpected {type(error).__name__}: {message}; please report it with the output of --debug"

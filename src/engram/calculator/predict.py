"""`engram.predict`: one function for all questions; what makes no sense is told in a sentence."""

from collections.abc import Mapping
from math import inf, isfinite

import numpy as np

from engram.calculator.answers import Answer, error_of, held_by, size_needed
from engram.calculator.kinds import FACTS, KINDS, MLP, Kind
from engram.calculator.shapes import UNITS, transformer
from engram.calculator.zipf import Tail
from engram.errors import EngramError, did_you_mean

MOST = 10**15  # beyond it nothing is stored on any machine, and floats begin to miss whole numbers
MOST_TOKENS = 10**7
MEASURED_ANSWERS = 8  # for each relation, in all records on facts


def predict(
    memory: str = "linear",
    *,
    pairs: float | None = None,
    facts: float | tuple[int, int, int] | None = None,
    width: int | None = None,
    units: int | None = None,
    heads: int | None = None,
    head_width: int | None = None,
    alpha: float | None = None,
    samples: int | None = None,
    tokens: int = 1000,
    answers: int = 5,
    error: float | None = None,
) -> Answer | Tail:
    """The size that a memory needs, or what a size holds, by theory and by our records; `to_json()` has the numbers.

    memory               hebb, linear, mlp, facts or zipf
    pairs, facts         what is to be stored; facts also as (S, R, D): subjects, relations, answers for each relation
    width, units         d of the memory, m of its MLP; heads and head_width of a transformer
    alpha, samples, tokens, answers, error    of heavy-tailed data: zipf

    >>> predict("hebb", pairs=1000).theory
    193
    """
    if memory == "zipf":
        _refuse_given(
            memory, {"pairs": pairs, "facts": facts, "units": units, "heads": heads, "head_width": head_width}
        )
        return _tail(alpha, samples, tokens, answers, width, error)
    kind = _kind(memory)
    _refuse_given(memory, {"alpha": alpha, "samples": samples, "error": error})
    wanted, notes = _wanted(kind, pairs, facts)
    size = _size(kind, width, units, heads, head_width)
    if wanted is not None and size is not None:
        return error_of(kind, wanted, size, notes)
    if wanted is not None:
        return size_needed(kind, wanted, notes)
    if size is not None:
        return held_by(kind, size, notes)
    raise EngramError(f"predict: nothing is asked; say how many {kind.stores} to store, or a width")


def _refuse_given(memory: str, parts: Mapping[str, object]) -> None:
    given = [name for name, value in parts.items() if value is not None]
    if given:
        raise EngramError(f"{given[0]}: is not asked of {memory}; leave it out")


def _kind(memory: str) -> Kind:
    if memory not in KINDS:
        allowed = [*KINDS, "zipf"]
        raise EngramError(f"memory: unknown {memory!r}; {did_you_mean(memory, allowed)}allowed: {', '.join(allowed)}")
    return KINDS[memory]


def _wanted(
    kind: Kind, pairs: float | None, facts: float | tuple[int, int, int] | None
) -> tuple[float | None, tuple[str, ...]]:
    given, other = (facts, pairs) if kind is FACTS else (pairs, facts)
    if other is not None:
        raise EngramError(f"predict: {kind.about} stores {kind.stores}; say {kind.stores}=…")
    if isinstance(given, tuple):
        for name, value in zip("SRD", given, strict=True):
            _refuse_outside(name, value, 1)
        S, R, D = given
        note = f"measured with {MEASURED_ANSWERS} answers for each relation, not {D}"
        return _refuse_outside("S·R", S * R, 1), (note,) if D != MEASURED_ANSWERS else ()
    return (None if given is None else _refuse_outside(kind.stores, given, 1)), ()


def _refuse_outside(name: str, value: float, least: float, most: float = MOST) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise EngramError(f"{name}: must be a number; got {value!r:.60}")
    if not (isfinite(value) and least <= value <= most):
        raise EngramError(f"{name}: must lie between {least:g} and {most:g}; got {value:g}")
    return value


def _size(kind: Kind, width: int | None, units: int | None, heads: int | None, head_width: int | None) -> float | None:
    parts = {"width": width, "units": units, "heads": heads, "head_width": head_width}
    used = {FACTS.name: set(parts), MLP.name: {"width", "units"}}.get(kind.name, {"width"})
    for name, value in parts.items():
        if value is not None and name not in used:
            raise EngramError(f"{name}: {kind.about} has none; it has {', '.join(n for n in parts if n in used)}")
        if value is not None:
            _refuse_outside(name, value, 0 if kind is FACTS and name == "units" else 1, 10**7)
    if width is None:
        if any(value is not None for value in parts.values()):
            raise EngramError("width: is missing; say it together with units and heads")
        return None
    if kind is FACTS:
        return float(transformer(width, *(() if heads is None else (heads,)), d_h=head_width, m=units).parameters)
    return float(width * (units or UNITS * width) if kind is MLP else width)


def _tail(
    alpha: float | None, samples: int | None, tokens: int, answers: int, width: int | None, error: float | None
) -> Tail:
    if alpha is None:
        raise EngramError("alpha: is missing; tokens come with probability p(z) ∝ z^−α, as in alpha=2")
    if not 0 < alpha < inf:
        raise EngramError(f"alpha: must be > 0; got {alpha:g}")
    _refuse_outside("tokens", tokens, 1, MOST_TOKENS)
    _refuse_outside("answers", answers, 1, tokens)
    for name, value in (("samples", samples), ("width", width)):
        if value is not None:
            _refuse_outside(name, value, 1)
    if error is not None and not 0 < error < 1:
        raise EngramError(f"error: must lie between 0 and 1; got {error:g}")
    if (error is None) == (samples is None and width is None):
        raise EngramError("predict: say samples, width or both, or else the error that is wanted")
    return Tail(alpha, tokens, answers, samples, width, error)

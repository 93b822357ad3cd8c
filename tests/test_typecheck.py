"""While tests run, every annotation of the package is checked: types everywhere, shapes where axes are named."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float, TypeCheckError

from engram.claims.intervals import cumulated
from engram.claims.registration import Band
from engram.claims.seeds import seeds_in_words
from typecheck import check, checked, names_shapes

Vector = Float[np.ndarray, " n"]
decorate = checked(typechecker=check)


def dot(a: Vector, b: Vector) -> float:
    return float(a @ b[: len(a)])


def test_the_package_is_checked() -> None:
    wrong: Any = "1"
    for call in (lambda: seeds_in_words(wrong * 3 + wrong), lambda: Band("slope", wrong, 2.0)):
        with pytest.raises(BeartypeCallHintViolation):
            call()
    with pytest.raises(TypeCheckError):
        cumulated(np.zeros(3))


def test_an_axis_has_one_length_in_a_call() -> None:
    """Beartype alone would not see that two vectors differ in length."""
    assert decorate(dot)(np.ones(2), np.ones(2)) == 2
    with pytest.raises(TypeCheckError):
        decorate(dot)(np.ones(2), np.ones(3))
    assert check(dot)(np.ones(2), np.ones(3)) == 2


def test_shapes_are_found_wherever_they_stand() -> None:
    def inside(a: "dict[str, list[Vector | None]]") -> None: ...
    def returned() -> tuple[Vector, ...]: ...
    def unknown(a: object) -> None: ...
    def plain(a: dict[str, np.ndarray]) -> float: ...

    unknown.__annotations__["a"] = "Unheard"
    assert [names_shapes(one) for one in (dot, inside, returned, unknown, plain)] == [True, True, True, True, False]


def test_fields_of_a_dataclass_are_checked() -> None:
    @decorate
    @dataclass
    class Pair:
        a: Vector
        b: Vector

    assert Pair(np.ones(2), np.ones(2)).a.shape == (2,)
    with pytest.raises(TypeCheckError):
        Pair(np.ones(2), np.ones(3))

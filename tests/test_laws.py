"""A law says which sizes it needs and of which types; anything else is refused by name."""

import re
from typing import Any

import pytest

from engram.specs import Check


@pytest.mark.parametrize("law", ["hopfield.CHUNK", "lemmas.lemma1_gradient", "nothing.here", "hopfield.norm"])
def test_what_is_no_law_is_refused(law: str) -> None:
    with pytest.raises(ValueError, match="law"):
        Check(law=law)


def test_law_says_which_size_it_needs() -> None:
    with pytest.raises(ValueError, match="needs m"):
        Check(law="collapse.tangent", sizes={"d": 4})


WRONG: list[tuple[str, Any, str]] = [
    ("d", 4.0, "sizes.d: collapse.tangent needs a whole number; got 4.0"),
    ("d", True, "sizes.d: collapse.tangent needs a whole number; got True"),
    ("load", "much", "sizes.load: collapse.tangent needs a number; got 'much'"),
    ("load", None, "sizes.load: collapse.tangent needs a number; got None"),
]


@pytest.mark.parametrize(("name", "size", "says"), WRONG, ids=[says for *_, says in WRONG])
def test_a_size_has_the_type_that_the_law_says(name: str, size: Any, says: str) -> None:
    sizes = {"d": 4, "m": 8, "degree": 2, "load": 0.5}
    with pytest.raises(ValueError, match=re.escape(says)):
        Check(law="collapse.tangent", sizes=sizes | {name: size})
    assert Check(law="collapse.tangent", sizes=sizes | {"load": 1}).sizes["load"] == 1

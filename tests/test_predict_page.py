"""The answers on docs/predict.md are those of the calculator as it is."""

from pathlib import Path
from typing import Any

import engram
from engram.calculator.answers import Answer, Range
from engram.calculator.words import transformer_in_words
from engram.facts.learn import shape_of, spec_of_file

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "predict.md").read_text()


def answered(memory: str, **asked: Any) -> Answer:
    found = engram.predict(memory, **asked)
    assert isinstance(found, Answer)
    return found


def told(found: Range) -> str:
    assert found.low is not None
    assert found.high is not None
    return f"{found.value:.0f} ({found.low:.0f} … {found.high:.0f})"


def test_answers_of_the_page_are_those_of_the_command() -> None:
    for memory, size, pairs, width in (
        ("linear", {"width": 48}, 300, "theory d = {}; measured {}: take d = 48, which holds {}"),
        ("mlp", {"width": 9, "units": 36}, 150, "theory md = {}; measured {}: take d = 9, m = 36, which holds {}"),
    ):
        needed, held = answered(memory, pairs=pairs), answered(memory, **size)
        assert list((needed.to_json()["proposal"]).values()) == list(size.values())
        assert width.format(f"{needed.theory:.0f}", told(needed.measured), told(held.measured)) in PAGE
    facts = answered("facts", width=24, heads=8)
    assert f"theory {facts.theory:.0f}; measured {told(facts.measured)}" in PAGE


def test_the_model_for_countries_is_the_one_that_is_trained() -> None:
    spec = spec_of_file(ROOT / "examples" / "countries.csv")
    said = f"for eight times as many {transformer_in_words(shape_of(spec))}"
    assert said in PAGE, said

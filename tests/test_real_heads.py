"""Laws that ask the heads of a real model: right on a planted circuit, at chance on random weights."""

from pathlib import Path
from typing import Any

import pytest

from engram.adapters import Pretrained
from engram.errors import EngramError
from engram.experiments import find
from engram.experiments.real import SMOLLM2, qk_recall
from engram.laws import real_heads, registered_model
from engram.laws.real_heads import (
    RANDOM,
    TOP,
    WHOLE,
    WRITER,
    ablation,
    copied,
    heads_of,
    key_recalls,
    keys_without,
    scores,
)
from engram.models import Network
from engram.runner.execute import execute
from planted_heads import INDUCTION, PREVIOUS, planted

TOKENS = 40


@pytest.fixture(scope="module")
def circuit() -> Network:
    return planted()


def of(rows: list[dict[str, float]], head: tuple[int, int]) -> dict[str, float]:
    return next(row for row in rows if (row["layer"], row["head"]) == head)


def test_scores_of_a_planted_circuit(circuit: Network) -> None:
    rows = list(scores(circuit, 2, 990, 20))
    assert len(rows) == 4
    assert of(rows, PREVIOUS)["previous"] > 0.95
    assert of(rows, INDUCTION)["induction"] > 0.95
    assert rows[0]["first"] - rows[0]["repeat"] > 5


def test_what_is_left_of_a_planted_circuit(circuit: Network) -> None:
    left = {row["without"]: row["left"] for row in ablation(circuit, 2, 990, 20, 1, PREVIOUS)}
    assert left[WHOLE] == 1
    assert left[TOP] < 0.35
    assert left[RANDOM] > 0.9
    assert left[WRITER] < 0.35


def test_keys_of_a_planted_circuit(circuit: Network) -> None:
    rows = list(keys_without(circuit, 2, 990, 20, PREVIOUS))
    assert of(rows, INDUCTION)["whole"] > 0.9 > 0.1 > of(rows, INDUCTION)["induction"]
    assert max(row["left"] for row in rows) < 0.35


@pytest.mark.parametrize("embedding", ["effective", "raw"])
def test_recall_of_a_planted_circuit(circuit: Network, embedding: str) -> None:
    rows = list(key_recalls(circuit, TOKENS, 990, heads_of("2.1 2.2"), embedding))
    found = {(r["layer"], r["head"], r["writer_layer"], r["writer_head"]): r["recall"] for r in rows}
    assert found[(*INDUCTION, *PREVIOUS)] > 0.95
    assert max(value for pair, value in found.items() if pair != (*INDUCTION, *PREVIOUS)) < 0.3


def test_copies_of_a_planted_circuit(circuit: Network) -> None:
    rows = list(copied(circuit, TOKENS, 990, heads_of("2.1 2.2")))
    assert of(rows, INDUCTION)["raw"] > 0.95
    assert of(rows, (2, 2))["raw"] < 0.2


def test_random_weights_are_at_chance() -> None:
    network = real_heads.stand_in()
    assert max(row["induction"] for row in scores(network, 2, 990, 12)) < 0.2
    assert max(row["recall"] for row in key_recalls(network, TOKENS, 990, heads_of("18.4"), "raw")) < 0.2


def test_another_model_than_the_registered_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registered_model, "read_model", lambda name: Pretrained(planted(), None))
    registered_model.registered.cache_clear()
    with pytest.raises(EngramError, match=rf"smollm2: its SHA-256 is …, and {SMOLLM2[:12]}… was registered"):
        registered_model.registered(SMOLLM2)


def test_measures_by_hand(home: Path) -> None:
    """A record whose recalls are known: the writer's, and the best other."""
    experiment: Any = find("real.qk-recall")
    labelled = experiment.labelled("smoke", [990])
    (record,) = (execute(spec, home) for spec in labelled["raw"])
    found = qk_recall.recalls(record.rows, "L19H7")
    assert len(found) == 18 * 9
    assert found[17, 1] == next(
        row["recall"]
        for row in record.rows
        if (row["layer"], row["head"], row["writer_layer"], row["writer_head"]) == (19, 7, 17, 1)
    )

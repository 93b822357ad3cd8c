"""Singular values and truncations of the lab are those of the Python interface."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engram.asking import truncation_map
from engram.errors import EngramError
from engram.lab.inquiries import Inquiries
from engram.lab.protocol import Cut, Spectra, Spectrum
from engram.lab.spectra import LEADING, SEQUENCES, by_parts, coarse_first, one_by_one, unseen
from engram.learning import SGD, Plan
from engram.memory.truncation import effective_rank
from engram.models import Layer, Transformer
from engram.models.factual import Factual
from engram.records import Record
from engram.records.fork import steered
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Truncate
from engram.tasks import NoisyRecall
from engram.tasks.facts import Facts

Tiny = Callable[..., Train]
SHARES = (0.0, 0.25, 1.0)


def inquiries(home: Path) -> Inquiries:
    return Inquiries(home, lambda run: {})


def noisy() -> Train:
    model = Transformer(d=8, hidden=16, layers=(Layer(heads=2), Layer(heads=2, feed_forward="mlp")))
    plan = Plan(optimiser=SGD(lr=0.1), steps=4, batch=4, loss="in_context", trained=("W_Q1", "W_K1", "W_I2", "W_F2"))
    return Train(task=NoisyRecall(T=24), model=model, plan=plan)


def facts() -> Train:
    task = Facts(S=6, R=3, D=4)
    plan = Plan(optimiser=SGD(lr=0.1), steps=4, batch=8, loss="answer", trained=("W_V", "W_O", "W_I", "b", "W_F"))
    return Train(task=task, model=Factual(d=8, heads=2, d_h=4, m=12, answers=task.answers), plan=plan)


def test_equal_singular_values_count_and_zeros_do_not() -> None:
    assert effective_rank(torch.tensor([3.0, 3.0, 3.0, 0.0])) == pytest.approx(3)
    assert effective_rank(torch.zeros(4)) == 0
    assert 1 < effective_rank(torch.tensor([3.0, 1.0])) < 2


def test_singular_values_are_those_of_the_weights(home: Path, tiny: Tiny) -> None:
    record = execute(tiny(), home)
    told = inquiries(home).answer(Spectrum(t="spectrum", id=1, run=record.id, step=4))
    assert told["step"] == 4
    weights = record.model(4).weights
    assert [one["name"] for one in told["matrices"]] == ["W_K1", "W_V1", "W_O1", "W_K2", "W_V2", "W_O2"]
    for one in told["matrices"]:
        values = torch.linalg.svdvals(weights[one["name"]].double())
        assert one["values"] == pytest.approx(values.tolist(), rel=1e-5)
        assert one["effective"] == pytest.approx(effective_rank(values), rel=1e-5)
    memory = record.model(4).memories["W_O2"]
    of_memory = next(one for one in told["matrices"] if one["name"] == "W_O2")
    assert of_memory["values"] == pytest.approx(memory.spectrum().tolist(), rel=1e-4)


def test_a_curve_has_the_values_of_every_stored_step(home: Path, tiny: Tiny) -> None:
    record = execute(tiny(), home)
    told = inquiries(home).answer(Spectra(t="spectra", id=1, run=record.id, matrix="W_K2"))
    assert (told["steps"], told["left"]) == (record.snapshot_steps, 0)
    for step, values in zip(told["steps"], told["values"], strict=True):
        exact = torch.linalg.svdvals(record.snapshot(step)["W_K2"].double())[:LEADING]
        assert values == pytest.approx(exact.tolist(), rel=1e-5)


def test_a_long_history_is_told_in_parts(home: Path, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other questions come in between; what is computed once is kept."""
    monkeypatch.setattr("engram.lab.spectra.SECONDS_AT_ONCE", 0.0)
    record, home_of = execute(tiny(steps=40), home), inquiries(home)
    asked = Spectra(t="spectra", id=1, run=record.id, matrix="W_K2")
    first = home_of.answer(asked)
    assert first["left"] == len(record.snapshot_steps), "there was no time"
    monkeypatch.setattr("engram.lab.spectra.SECONDS_AT_ONCE", 60.0)
    assert home_of.answer(asked)["left"] == 0
    monkeypatch.setattr("engram.lab.spectra.SECONDS_AT_ONCE", 0.0)
    assert home_of.answer(asked)["left"] == 0


def test_the_ends_come_first() -> None:
    for n in (1, 2, 3, 8, 17):
        found = coarse_first(list(range(0, 10 * n, 10)))
        assert sorted(found) == list(range(0, 10 * n, 10))
        assert {found[0], found[min(1, n - 1)]} == {0, 10 * (n - 1)}


@pytest.mark.parametrize(("spec", "matrix"), [(noisy(), "W_I2"), (noisy(), "W_Q1")])
def test_a_truncation_is_that_of_the_command(spec: Train, matrix: str, home: Path) -> None:
    """`engram truncate` on as many sequences: the same numbers, p(noise) among them."""
    record = execute(spec, home)
    told = inquiries(home).answer(Cut(t="cut", id=1, run=record.id, step=4, matrix=matrix, shares=(0.0, 0.5, 1.0)))
    _, known, _ = truncation_map(record.id, "in_context", SEQUENCES)
    assert told["whole"] == pytest.approx(known.full, rel=1e-5)
    assert "p_noise" in told["whole"]
    for row in told["rows"]:
        expected = known.at(matrix, row["share"])
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-5)
        assert row["rank"] == int(row["share"] * told["of"])
    assert told["positions"] == known.positions


def test_by_parts_and_one_by_one_are_the_same(home: Path) -> None:
    record = execute(noisy(), home)
    arguments = record.train, record.model(4), unseen(record.train), "W_I2", SHARES
    (fast, whole), (slow, other) = by_parts(*arguments), one_by_one(*arguments)
    assert whole == pytest.approx(other, rel=1e-5)
    for one, two in zip(fast, slow, strict=True):
        assert one == pytest.approx(two, rel=1e-5)


def test_a_truncation_is_that_of_an_intervention(home: Path) -> None:
    """Facts and all else: what is told of a share is what a fork says whose matrix has that rank."""
    record = execute(facts(), home)
    told = inquiries(home).answer(Cut(t="cut", id=1, run=record.id, step=4, matrix="W_F", shares=(0.5,)))
    (row,) = told["rows"]
    fork = execute(steered(record.train, Truncate(step=4, matrix="W_F", rank=row["rank"])), home)
    again = inquiries(home).answer(Cut(t="cut", id=1, run=fork.id, step=4, matrix="W_F", shares=(1.0,)))
    assert {name: row[name] for name in again["whole"]} == pytest.approx(again["whole"], rel=1e-4)


def test_answers_are_json_and_unknown_matrices_are_refused(home: Path, tiny: Tiny) -> None:
    record = execute(tiny(), home)
    told = inquiries(home).answer(Spectrum(t="spectrum", id=1, run=record.id))
    json.dumps(told, allow_nan=False)
    with pytest.raises(EngramError, match=r"matrix: no matrix 'W_X' here; .*allowed: W_K1"):
        inquiries(home).answer(Cut(t="cut", id=1, run=record.id, matrix="W_X", shares=(1.0,)))
    with pytest.raises(EngramError, match="matrix: no matrix 'E' here"):
        inquiries(home).answer(Spectra(t="spectra", id=1, run=record.id, matrix="E"))
    assert Record(home / record.id).finished

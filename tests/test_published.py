"""A published run beside ours: where its file is read from, what is compared with what, and how often the test errs."""

import hashlib
import json
import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from engram import api
from engram.claims import Runs
from engram.claims.ledger import entries_of
from engram.claims.prediction import largest, limit, standardised
from engram.errors import EngramError
from engram.experiments import find
from engram.experiments.birth import in_context, official
from engram.laws.published import BEFORE, BEHIND, COLUMNS, GAP, OFFICIAL, official_joint, our_readings, stand_in
from engram.records.files import COMMITTED
from engram.records.shelf import all_records
from engram.reference import VARIABLE, read_reference
from engram.runner.training import measured_steps

SMALL = {"T": 32, "d": 16, "batch": 4}


@pytest.fixture
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of published data with a curve that is 1, or 0.5, everywhere."""
    rows = [{"step": 10 * i} | dict.fromkeys(COLUMNS, 0.5) | {"loss": 1.0} for i in range(3)]
    (tmp_path / "birth").mkdir()
    (tmp_path / OFFICIAL).write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / OFFICIAL).read_bytes()).hexdigest()


def test_data_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(EngramError, match=r"birth/official_joint\.jsonl are needed.*set ENGRAM_REFERENCE"):
        read_reference(OFFICIAL, "0" * 64)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(EngramError, match=f"ENGRAM_REFERENCE={tmp_path} has no such file"):
        read_reference(OFFICIAL, "0" * 64)


def test_another_file_under_the_same_name_is_refused(reference: Path) -> None:
    assert read_reference(OFFICIAL, digest(reference)) == (reference / OFFICIAL).read_bytes()
    with pytest.raises(EngramError, match="not the file that was registered: its SHA-256 is"):
        next(official_joint(3, 0, sha256="0" * 64, **SMALL))


def test_a_file_with_other_steps_is_refused(reference: Path) -> None:
    with pytest.raises(EngramError, match="its first 4 rows are not those of the steps 0, 10, 20"):
        next(official_joint(4, 0, sha256=digest(reference), **SMALL))


def test_the_gap_is_the_published_value_minus_ours(reference: Path) -> None:
    rows = list(official_joint(3, 0, sha256=digest(reference), **SMALL))
    assert [row["at"] for row in rows] == [0, 10, 20]
    for row in rows:
        assert row["loss"] + row["loss" + GAP] == pytest.approx(1.0)
        assert all(row[column] + row[column + GAP] == pytest.approx(0.5) for column in COLUMNS if column != "loss")


def test_a_run_has_no_gap_to_itself_and_one_to_another() -> None:
    same, other = (list(stand_in(3, 0, other=seed, **SMALL)) for seed in (0, 1))
    assert all(row[column + GAP] == 0 for row in same for column in COLUMNS)
    assert all(row["loss" + GAP] for row in other)


def test_recalls_are_read_behind_the_update_and_losses_before_it() -> None:
    """As the authors' code logs them; the training is the one of birth.joint."""
    training = in_context((32, 16, 4), 5, 0.2, 21, probe_every=1)
    rows = [row for _, row in measured_steps(training)]
    for t, reading in zip((0, 10, 20), our_readings(3, 5, 0.2, *SMALL.values()), strict=True):
        assert {c: reading[c] for c in BEFORE} == pytest.approx({c: rows[t][c] for c in BEFORE}, rel=1e-5)
        assert {c: reading[c] for c in BEHIND} == {c: rows[t + 1][c] for c in BEHIND}


def rising(rng: np.random.Generator, runs: int, delay: float = 0.0) -> np.ndarray:
    """Means over three stretches of curves that rise slowly, each at its own time and to its own height."""
    turn, top = 7 + delay + 0.7 * rng.normal(size=(runs, 1)), 0.9 + 0.02 * rng.normal(size=(runs, 1))
    curves = top / (1 + np.exp((turn - np.arange(30)) / 2.5)) + 0.01 * rng.normal(size=(runs, 30))
    return curves.reshape(runs, 3, 10).mean(axis=-1)


def test_a_run_that_is_ours_passes_with_probability_095_and_one_that_is_not_fails() -> None:
    rng, most = np.random.default_rng(1), limit(8, 3)
    passed = [largest(rising(rng, 8), rising(rng, 1)[0], 0.0) < most for _ in range(4000)]
    assert 0.94 < np.mean(passed) < 0.98
    late = [largest(rising(rng, 8), rising(rng, 1, delay=6.0)[0], 0.0) < most for _ in range(400)]
    assert np.mean(late) < 0.1


def test_the_limit_of_independent_readings_is_exact() -> None:
    """Bonferroni gives away next to nothing at 5 %."""
    rng, most = np.random.default_rng(2), limit(8, 18)
    assert most == pytest.approx(4.51, abs=0.005)
    passed = [largest(rng.normal(size=(8, 18)), rng.normal(size=18), 0.0) < most for _ in range(8000)]
    assert np.mean(passed) == pytest.approx(0.95, abs=0.01)


def test_equal_runs_differ_by_no_less_than_one_answer() -> None:
    z = standardised(np.ones((8, 2)), np.array([1.0, 64 / 65]), 1 / 65)
    assert z == pytest.approx([0, -1 / np.sqrt(1 + 1 / 8)])


def test_readings_come_as_they_are_made() -> None:
    assert len(list(islice(our_readings(30, 0, 0.2, *SMALL.values()), 2))) == 2


@pytest.fixture(scope="module")
def committed() -> Runs:
    experiment = find("birth.official")
    specs = experiment.labelled("paper", range(10_000, 10_008))
    return Runs.of(specs, {record.id: record for record in all_records(COMMITTED)}, "paper")


def test_committed_records_decide_where_the_data_are_not(committed: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    (entry,) = entries_of(find("birth.official"), committed)
    assert entry.claim is not None
    assert entry.claim.n == 8
    assert len(entry.claim.measures) == len(COLUMNS)
    assert all(measure.high == pytest.approx(4.51, abs=0.005) for measure in entry.claim.measures)


def stretches(committed: Runs, column: str, late: int = 0) -> np.ndarray:
    """Readings of our runs; or of the same runs `late` logged steps later, which stand still until they begin."""
    curves, _ = official.curves(committed["beside"], column)
    delayed = np.hstack([curves[:, :1]] * late + [curves[:, : curves.shape[1] - late]])
    return delayed.reshape(len(curves), official.STRETCHES, -1).mean(axis=-1)


def farthest(committed: Runs, seed: int, late: int = 0) -> float:
    """The largest |z| of all columns: one of our runs, perhaps too late, beside the seven others."""
    found = []
    for column in COLUMNS:
        others, one = np.delete(stretches(committed, column), seed, axis=0), stretches(committed, column, late)[seed]
        found.append(largest(others, one, official.RESOLUTION.get(column, 0.0)))
    return max(found)


def test_each_of_our_runs_beside_the_others_passes_and_one_that_comes_late_does_not(committed: Runs) -> None:
    most = limit(7, official.STRETCHES * len(COLUMNS))
    passed = [farthest(committed, seed) < most for seed in range(8)]
    assert sum(passed) >= 7
    assert not any(farthest(committed, seed, late=2) < most for seed in range(8))


def test_a_record_can_be_computed_again_only_where_the_data_are(
    committed: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = committed["beside"][0]
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(EngramError, match="are needed, which Engram does not carry; set ENGRAM_REFERENCE"):
        api.recheck(record, steps=1)


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"no published data: {VARIABLE} is not set")
def test_a_record_agrees_with_a_fresh_run(committed: Runs) -> None:
    assert api.recheck(committed["beside"][0], steps=1)["ok"]

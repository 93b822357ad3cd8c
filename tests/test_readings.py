"""Readings of rows by hand, and the ledger's care: no survivors, no verdict on too few seeds."""

import json
from math import log
from pathlib import Path

import numpy as np
import pytest

from engram import api
from engram.errors import EngramError
from engram.experiments import find
from engram.experiments.birth import joint
from engram.ledger import entries_of, ledger
from engram.records import Claim, Measure, Record
from engram.records.encode import encode
from engram.records.files import line_of, sha256
from engram.records.readings import birth, fallen, late_mean, mean_between, mean_difference, reached, value_at
from engram.records.shelf import all_records
from engram.records.spec import run_id


def record_of(home: Path, seed: int, curves: dict[str, list[float]], steps: int = 12) -> Record:
    """A finished record of birth.joint at smoke scale with columns made up."""
    spec = joint.specs("smoke", [seed])[0]
    folder = home / run_id(spec)
    folder.mkdir(parents=True)
    rows = b"".join(line_of({"step": s} | {n: float(v[s]) for n, v in curves.items()}) for s in range(steps + 1))
    (folder / "rows.jsonl").write_bytes(rows)
    (folder / "spec.json").write_text(json.dumps(encode(spec)))
    spec_sum = sha256((folder / "spec.json").read_bytes())
    digest = {"end": "finished", "spec.json": spec_sum, "rows.jsonl": sha256(rows)}
    (folder / "digest.json").write_text(json.dumps(digest))
    return Record(folder)


def step_at(step: float, low: float = 0.0, high: float = 1.0) -> list[float]:
    return [high if s >= step else low for s in range(13)]


def test_births_and_means(tmp_path: Path) -> None:
    ramp = [s / 12 for s in range(13)]
    record = record_of(tmp_path, 0, {"a": ramp, "b": [0.5] * 13, "c": step_at(4)})
    assert birth(record, "a") == 7  # 6/12 is not above one half
    assert birth(record, "b") is None
    assert birth(record, "c") == birth(record, "c", 0.9) == 4
    assert late_mean(record, "a", 12, width=3) == pytest.approx(np.mean([10, 11, 12]) / 12)
    assert late_mean(record, "a", 6, width=2) == pytest.approx(np.mean([5, 6]) / 12)
    assert mean_difference(record, "a", "b", 10) == pytest.approx(np.mean([10, 11, 12]) / 12 - 0.5)
    with pytest.raises(EngramError, match="no a at step 400"):
        late_mean(record, "a", 400)


def joint_record(home: Path, seed: int, output: float, key2: float, key1: float) -> Record:
    columns = {"recall.W_O2": output, "recall.W_K2": key2, "recall.W_K1.t<64": key1, "recall.W_K1": 99}
    return record_of(home, seed, {n: step_at(s) for n, s in columns.items()} | {"accuracy.in_context": step_at(0)})


def verdicts(records: list[Record]) -> dict[str, list[str]]:
    return {claim.id: [measure.verdict for measure in claim.measures] for claim in joint.claims(records)}


def test_output_first_is_decided_by_births(tmp_path: Path) -> None:
    early = [joint_record(tmp_path / "a", s, 2, 5 + s % 2, 6) for s in range(5)]
    assert verdicts(early)["birth.output-first"] == ["agrees"] * 3
    (claim,) = [claim for claim in joint.claims(early) if claim.id == "birth.output-first"]
    assert claim.measures[1].measured == pytest.approx(log(6 / 2))
    late = [joint_record(tmp_path / "b", s, 7, 5, 8) for s in range(5)]
    assert verdicts(late)["birth.output-first"] == ["disagrees", "agrees", "agrees"]
    unborn = [joint_record(tmp_path / "c", s, 2, 5, 6 if s else 99) for s in range(5)]
    assert verdicts(unborn)["birth.output-first"] == ["agrees", "inconclusive", "agrees"]
    never = [joint_record(tmp_path / "d", s, 99, 5, 6) for s in range(5)]
    assert set(verdicts(never)["birth.output-first"]) == {"disagrees"}


def test_too_few_seeds_do_not_agree() -> None:
    claim = Claim("x", "", "", (Measure.over_seeds("a", [0.93, 0.931, 0.932], low=0.9),))
    exact = Claim("x", "", "", (Measure.exact("a", 0.0, 0.1),))
    assert claim.verdict == "agrees"
    assert [claim.has_seeds(3), claim.has_seeds(5), exact.has_seeds(5)] == [True, False, True]


def test_a_diverged_seed_does_not_leave_the_mean_unseen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five finished seeds and a sixth that diverged: the ledger names it and cannot agree."""
    monkeypatch.setitem(joint.SIZES, "quick", joint.SIZES["smoke"])
    for seed in range(6):
        joint_record(home, seed, 2, 5, 6)
    experiment = find("birth.joint")
    assert {entry.verdict for entry in ledger([experiment], [home]) if entry.id == "birth.output-first"} == {"agrees"}
    sixth = next(record for record in all_records(home) if "-s5-" in record.id)
    digest = sixth.folder / "digest.json"
    digest.write_text(digest.read_text().replace("finished", "the loss is not finite at step 9"))
    entries = {entry.id: entry for entry in ledger([experiment], [home])}
    assert entries["birth.output-first"].diverged == (5,)
    assert entries["birth.output-first"].verdict == "inconclusive"
    with pytest.raises(EngramError, match="not finite at step 9"):
        api.run("birth.joint", seeds=6)


def test_fields_set_otherwise_are_said(home: Path) -> None:
    claims = api.run("birth.joint", scale="smoke", seeds=2, settings={"task.K": 2}).claims
    assert claims[0]["settings"] == {"task.K": 2}
    assert claims[0]["command"] == "engram run birth.joint --scale smoke --seeds 2 --set task.K=2"


def test_a_stale_record_is_said_to_be_stale(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = joint_record(home, 0, 2, 5, 6)
    monkeypatch.setattr(type(record.train.model), "revision", 2)
    stale = Record(record.folder)
    assert all(entry.stale for entry in entries_of(find("birth.joint"), [stale], "smoke"))


def test_first_steps_above_and_below(tmp_path: Path) -> None:
    """A column that falls from 4 to 1 in a straight line, and one that rises: steps that can be read off."""
    record = record_of(tmp_path, 0, {"down": [4 - s / 4 for s in range(13)], "up": [s / 12 for s in range(13)]})
    assert fallen(record, "down", 0.5, 0.0, width=1) == 9  # below 2, not at it
    assert fallen(record, "down", 0.5, 2.0, width=1) == 5
    assert fallen(record, "down", 0.5, 0.0, width=3) == 10  # the mean of three lags by one
    assert reached(record, "up", 0.5, width=1) == 7
    assert np.isnan(reached(record, "up", 2.0))
    assert value_at(record, "up", 3) == pytest.approx(0.25)
    assert mean_between(record, "up", 0.25, 0.75) == pytest.approx(0.5)

"""`engram runs check` computes rows again: a forged row under a mended digest is found wherever it looks."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engram.api import recheck
from engram.cli.main import main
from engram.errors import EngramError
from engram.learning import SGD, Moment
from engram.records import Record, files
from engram.records.bundle import bundle, pack
from engram.records.shelf import all_records
from engram.records.state import State, digest_of_lines
from engram.records.writer import Writer
from engram.runner.execute import execute
from engram.runner.recheck import Comparison
from engram.runner.stretches import stretches
from engram.specs import Check, Train
from engram.values import LAWS
from test_search import trained_search

Tiny = Callable[..., Train]
FORGED = 27  # not a step whose weights are stored


def squares(draws: int, seed: int) -> Iterator[dict[str, float]]:
    return ({"square": float((seed + i) ** 2)} for i in range(draws))


@pytest.fixture(autouse=True)
def a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a while."""
    monkeypatch.setitem(LAWS, "test.squares", squares)


def every_tenth(writer: Writer, moment: Moment) -> None:
    """States as the lab keeps them."""
    if moment.step % 10 == 0:
        writer.checkpoint(moment.step, moment.state)


def forge(folder: Path, step: int = FORGED, column: str = "loss", by: float = 1.01) -> None:
    """One number of one row; whatever carries a digest of it is mended, as a careful forger would."""
    lines = (folder / "rows.jsonl").read_bytes().splitlines()
    row = json.loads(lines[step])
    lines[step] = json.dumps(row | {column: round(row[column] * by, 6)}).encode()
    (folder / "rows.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    digest = json.loads((folder / "digest.json").read_text())
    sums = {"rows.jsonl": files.sha256((folder / "rows.jsonl").read_bytes())}
    files.write_digest(folder, {name: value for name, value in (digest | sums).items() if name != "digest"})
    for file in files.numbered(folder / "states").values():
        state = State.read(folder, f"states/{file.name}")
        file.write_bytes(replace(state, rows=digest_of_lines(lines[: state.step])).to_bytes())


@pytest.fixture
def forged(tiny: Tiny, tmp_path: Path) -> Path:
    folder = execute(tiny(steps=60), tmp_path / "home", on_moment=every_tenth).folder
    forge(folder)
    return folder


def test_a_whole_record_is_recomputed_as_far_as_the_time_goes(tiny: Tiny, tmp_path: Path) -> None:
    record = execute(tiny(steps=60), tmp_path, on_moment=every_tenth)
    found = recheck(record, steps=5)
    assert (found["ok"], found["recomputed"], found["not_recomputed"]) == (True, [[0, 60]], [])
    assert "all 61 rows recomputed in" in found["message"]
    short = recheck(record, steps=5, seconds=0)
    assert (short["ok"], short["recomputed"], short["not_recomputed"]) == (True, [[0, 4]], [[5, 60]])
    assert "rows 0 … 4 of 61 recomputed in" in short["message"]
    assert "not recomputed: rows 5 … 60" in short["message"]


def test_the_first_rows_alone_do_not_see_a_forged_one(forged: Path) -> None:
    """Which is why there is more."""
    found = recheck(Record(forged), steps=20, seconds=0)
    assert found["ok"]
    assert [FORGED, FORGED] not in found["recomputed"]
    assert any(first <= FORGED <= last for first, last in found["not_recomputed"])


def test_a_forged_row_is_found_from_a_state_in_the_middle(forged: Path, tiny: Tiny) -> None:
    """Not by way of the beginning: the stretch begins at the state before it."""
    record = Record(forged)
    part = next(p for p in stretches(record, tiny(steps=60), "reference", 61, 5) if p.begin <= FORGED < p.end)
    assert (part.begin, part.end) == (20, 30)
    now = Comparison(record.rows, to_the_byte=False, sealed=True)
    now.compare(part, 1e9)
    assert now.found is not None
    assert (now.found.step, now.found.column, now.seen) == (FORGED, "loss", set(range(20, FORGED + 1)))


@pytest.mark.parametrize("form", ["folder", "packed", "bundle"])
def test_all_rows_find_it_always_and_the_default_within_its_time(forged: Path, tmp_path: Path, form: str) -> None:
    record = Record(forged)
    if form == "packed":
        record = Record(pack(record, tmp_path / "packed", weights=True))
    if form == "bundle":
        bundle([record], tmp_path / "shelf" / "one.zip")
        (record,) = all_records(tmp_path / "shelf")
    for found in (recheck(record, everything=True), recheck(record, seconds=60)):
        assert not found["ok"]
        assert found["mismatch"]["step"] == FORGED
        assert f"differs at step {FORGED}, loss: stored" in found["message"]


def test_chance_chooses_and_can_be_repeated(forged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time for one stretch beyond the first rows: some draws cover the forged row; the same pick does again."""
    found = {}
    for pick in range(12):
        calls: list[int] = []
        monkeypatch.setattr(Comparison, "elapsed", property(lambda self, calls=calls: _after(calls, 14)))
        monkeypatch.setattr("engram.runner.recheck.snapshot_rows", lambda *given: [])
        found[pick] = recheck(Record(forged), steps=2, seconds=1, pick=pick)
        calls.clear()
        assert recheck(Record(forged), steps=2, seconds=1, pick=pick) == found[pick]
        assert found[pick]["pick"] == pick
    assert {one["ok"] for one in found.values()} == {True, False}
    seen = {str(one["recomputed"]) for one in found.values()}
    assert len(seen) > 3
    lucky = next(one for one in found.values() if one["ok"])
    assert f"chosen by --pick {lucky['pick']}" in lucky["message"]


def _after(calls: list[int], n: int) -> float:
    """A clock that strikes when it has been looked at often enough."""
    calls.append(1)
    return 0.0 if len(calls) < n else 2.0


def test_the_row_of_a_snapshot_is_measured_at_its_weights(tiny: Tiny, tmp_path: Path) -> None:
    """Without states: momentum is not stored, but loss and probes of that very step need only the weights."""
    folder = execute(tiny(steps=60), tmp_path).folder
    forge(folder, 32)
    found = recheck(Record(folder), steps=2, seconds=60)
    assert (found["ok"], found["mismatch"]["step"]) == (False, 32)
    assert len(found["recomputed"]) > 1


def test_without_momentum_a_snapshot_is_a_state(tiny: Tiny, tmp_path: Path) -> None:
    record = execute(tiny(steps=20, optimiser=SGD(lr=0.2)), tmp_path)
    parts = stretches(record, record.spec, "fast", 21, 1)
    assert [part.begin for part in parts] == [0, 1, 2, 4, 8, 16, 20]
    assert recheck(record, 1)["ok"]
    assert len(stretches(execute(tiny(steps=20), tmp_path), tiny(steps=20), "fast", 21, 1)) == 1


def test_a_record_that_was_cut_is_noticed(tiny: Tiny, tmp_path: Path) -> None:
    """Fewer rows than the Spec makes, under a valid digest."""
    for spec in (tiny(steps=9), Check(law="test.squares", draws=9), trained_search(votes=1)):
        folder = execute(spec, tmp_path).folder
        rows = (folder / "rows.jsonl").read_bytes().splitlines(keepends=True)
        (folder / "rows.jsonl").write_bytes(b"".join(rows[:-2]))
        forge(folder, 0, "step")  # 0 stays 0: only digests are mended
        found = recheck(Record(folder), 1)
        assert not found["ok"], spec
        assert "a fresh run has a row there and the record has none" in found["message"]


def test_any_size_of_a_search_is_tried_again(tmp_path: Path) -> None:
    spec = trained_search(votes=3)
    record = execute(spec, tmp_path)
    n = len(record.rows)
    assert [part.begin for part in stretches(record, spec, "reference", n, 1)] == list(range(0, n, 3))
    assert recheck(record, 1)["recomputed"] == [[0, n - 1]]
    forge(record.folder, n - 2, "accuracy")
    found = recheck(Record(record.folder), 1)
    assert found["mismatch"]["step"] == n - 2


def test_rows_of_a_check_come_in_their_order(tmp_path: Path) -> None:
    record = execute(Check(law="test.squares", draws=30, seed=3), tmp_path)
    assert recheck(record, 4, seconds=0)["recomputed"] == [[0, 3]]
    forge(record.folder, 12, "square")
    for everything in (False, True):
        assert recheck(Record(record.folder), 4, 60, everything)["mismatch"]["step"] == 12


def test_on_another_machine_only_what_is_near_its_start_is_compared(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = execute(tiny(steps=60), tmp_path, on_moment=every_tenth)
    monkeypatch.setattr("engram.runner.recheck._what_rounds", lambda env: object())
    monkeypatch.setattr("engram.runner.recheck.snapshot_rows", lambda *given: [])
    found = recheck(record, steps=2)
    assert found["recomputed"] == [[at, at + 1] for at in range(0, 60, 10)] + [[60, 60]]
    assert found["to_the_byte"]  # they are equal all the same
    assert recheck(record, everything=True)["recomputed"] == [[0, 60]]


def test_a_record_of_another_processor_agrees_up_to_rounding(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = execute(tiny(steps=40), tmp_path)
    forge(record.folder, by=1 + 1e-5)
    assert not recheck(Record(record.folder))["ok"]
    monkeypatch.setattr("engram.runner.execute.processor", lambda: "another one")
    found = recheck(Record(record.folder), steps=40)
    assert (found["ok"], found["to_the_byte"]) == (True, False)
    assert "to 0.1 % (the versions, processor or threads" in found["message"]


def test_the_command_says_what_it_did(forged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(["runs", "check", str(forged), *words])
        return int(end.value.code or 0), "".join(capsys.readouterr())

    code, said = run("--steps", "3", "--seconds", "0", "--json", "--pick", "7")
    told = json.loads(said)
    assert (code, told["compared"], told["rows"], told["pick"], told["budget"]) == (0, 3, 61, 7, 0.0)
    code, said = run("--all")
    assert (code, f"differs at step {FORGED}" in said) == (1, True)
    assert run("--seconds", "-1") == (2, "engram: --seconds: must be a number of seconds, 0 or more; got -1.0\n")
    assert run("--pick", "x")[0] == 2
    with pytest.raises(EngramError, match="--steps"):
        recheck(Record(forged), 0)

"""What an engine promises: every row told once, and a Spec that fails does not stop the others."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from engram import api
from engram.engines import Failed
from engram.engines.local import Local
from engram.engines.pool import TRIES, Died, Pool
from engram.engines.worker import AUTOGROUP, Worker
from engram.errors import EngramError
from engram.experiments import find
from engram.records import Record
from engram.records.files import Row
from engram.runner.execute import execute
from engram.specs import Check, Spec, Train
from engram.specs.spec import run_id

Tiny = Callable[..., Train]


def told(engine: Local, specs: list[Spec]) -> Counter[tuple[str, int]]:
    seen: Counter[tuple[str, int]] = Counter()

    def on_row(spec: Spec, row: Row) -> None:
        seen[run_id(spec), row["step"]] += 1

    engine.run(specs, on_row)
    return seen


def test_every_row_is_told_once(tiny: Tiny, home: Path) -> None:
    """Of runs in processes, of one that had ended before, and of a Spec that is asked for twice."""
    before, *others = specs = [tiny(seed=seed) for seed in range(3)]
    assert set(told(Local(home), [before]).values()) == {1}
    seen = told(Local(home), [*specs, others[0]])
    assert seen == {(run_id(spec), step): 1 for spec in specs for step in range(7)}
    assert told(Local(home), [*specs]) == seen


def test_a_spec_that_fails_does_not_stop_the_others(tiny: Tiny, home: Path) -> None:
    """In this process and in processes: what finished is kept, what failed is listed with its reason."""
    good, diverges = [tiny(seed=1), tiny(seed=2)], tiny(seed=3, steps=60, lr=1e9)
    fails = Check(law="lemmas.closed_forms", sizes={"A": 5, "M": 5, "d": -1})
    outcome = Local(home).run([diverges, good[0], fails, good[1]], lambda spec, row: None)
    assert [record.id for record in outcome.records] == [run_id(spec) for spec in good]
    assert set(outcome.failed) == {run_id(diverges), run_id(fails)}
    assert "not finite" in str(outcome.failed[run_id(diverges)])
    with pytest.raises(Failed, match=r"^2 of 4 runs failed, the others are kept: .*not finite"):
        outcome.all_records()
    again = Local(home).run([diverges, *good], lambda spec, row: None)  # all have ended: they are only read
    assert list(again.failed) == [run_id(diverges)]
    with pytest.raises(EngramError, match="not finite"):
        Local(home).run([diverges], lambda spec, row: None).all_records()


def test_damage_to_one_run_does_not_stop_the_others(tiny: Tiny, home: Path) -> None:
    """Neither to one that has ended nor to one that was begun; each failure is told when it happens."""
    ended, begun, good = specs = [tiny(seed=seed) for seed in range(3)]
    (Local(home).run([ended], lambda spec, row: None).records[0].folder / "rows.jsonl").write_text("{}\n")
    (home / run_id(begun)).mkdir()
    (home / run_id(begun) / "env.json").write_text("{")
    heard: dict[str, Exception] = {}
    for asked in (specs, specs[:2]):
        heard.clear()
        outcome = Local(home, on_failure=heard.__setitem__).run(asked, lambda spec, row: None)
        assert set(outcome.failed) == set(heard) == {run_id(ended), run_id(begun)}
        assert "rows.jsonl" in str(heard[run_id(ended)])
        assert "env.json" in str(heard[run_id(begun)])
    assert Record(home / run_id(good)).finished


def test_a_run_that_is_alone_takes_the_threads_that_are_set(tiny: Tiny, home: Path) -> None:
    (record,) = Local(home, threads=1).run([tiny()], lambda spec, row: None).records
    assert record.env["sittings"][0]["threads"] == 1


def kill_workers_of(spec: Spec, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the first workers that get this Spec is killed when the run has begun."""
    left, give = [times], Worker.give

    def kill(worker: Worker, folder: Path) -> None:
        while not (folder / "rows.jsonl").exists():
            time.sleep(0.01)
        os.kill(worker._process.pid, signal.SIGKILL)

    def notice(worker: Worker, given: Spec, threads: int) -> None:
        give(worker, given, threads)
        if given == spec and left[0]:
            left[0] -= 1
            folder = Path(str(worker._common["home"])) / run_id(spec)
            threading.Thread(target=kill, args=(worker, folder), daemon=True).start()

    monkeypatch.setattr(Worker, "give", notice)


def test_a_worker_that_is_killed_costs_nothing(tiny: Tiny, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker takes its run up again; every row is told once all the same."""
    long, short = tiny(seed=0, steps=300), [tiny(seed=seed) for seed in (1, 2, 3)]
    kill_workers_of(long, 1, monkeypatch)
    seen = told(Local(home), [long, *short])
    assert set(seen.values()) == {1}
    assert sum(id == run_id(long) for id, _ in seen) == 301
    assert all(Record(home / run_id(spec)).finished for spec in (long, *short))


def test_a_run_that_kills_its_workers_is_given_up(tiny: Tiny, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After three tries it has failed, and the others have gone on."""
    long, short = tiny(seed=0, steps=100_000), [tiny(seed=seed) for seed in (1, 2, 3)]
    kill_workers_of(long, TRIES, monkeypatch)
    outcome = Local(home).run([long, *short], lambda spec, row: None)
    assert "out of memory?" in str(outcome.failed[run_id(long)])
    assert len(outcome.records) == 3


def test_verify_prints_the_ledger_although_a_run_fails(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engram.cli.main import main

    broken = Check(law="lemmas.closed_forms", sizes={"A": 5, "M": 5, "d": -1})
    good = Check(law="lemmas.closed_forms", sizes={"A": 5, "M": 5, "d": 4})
    monkeypatch.setattr("engram.claims.ledger.missing_specs", lambda *found: [broken, good])
    with pytest.raises(SystemExit) as ended:
        main(["verify", "memory.lemmas"])
    out, err = capsys.readouterr()
    assert ended.value.code == 2
    assert "memory.overlaps  agrees" in out
    assert "1 of 2 runs failed, the others are kept: check-lemmas.closed_forms" in err


def test_an_experiment_whose_only_run_fails_says_why(home: Path) -> None:
    with pytest.raises(EngramError, match="not finite"):
        api.run("birth.joint", "smoke", settings={"plan.optimiser.lr": 1e9, "plan.steps": 60})


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this system does not group processes by session")
def test_a_worker_steps_back_with_its_whole_session() -> None:
    code = "import os; os.nice(7); from engram.engines import worker; worker.step_back()"
    code += "; print(worker.AUTOGROUP.read_text())"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, start_new_session=True, capture_output=True, text=True, check=True).stdout
    assert said.strip().endswith(f"nice {os.nice(0) + 7}")


CHATTY = """
import os, subprocess, sys
from engram.experiments.birth.joint import specs

if __name__ != "__main__":
    print("hello"); os.system("echo from below; cat > /dev/null"); subprocess.run(["echo", "once more"])
"""


def test_what_a_file_prints_is_no_answer_and_what_it_begins_eats_no_job(home: Path, monkeypatch: Any) -> None:
    Path("chatty.py").write_text(CHATTY)
    outcome = Local(home).run(find("./chatty.py").specs("smoke", [0, 1, 2]), lambda spec, row: None)
    assert len(outcome.all_records()) == 3


class Gone:
    """A worker that dies when its record is complete, before it can say so."""

    def __init__(self, home: Path):
        self.home, self.given = home, dict[str, Spec]()

    def give(self, spec: Spec, threads: int) -> None:
        execute(spec, self.home)
        self.given[run_id(spec)] = spec

    def failures(self) -> dict[str, Exception]:
        return {id: Died("it was killed") for id in self.given if len(self.told) > len(self.given)}

    told: list[int]

    def alive(self) -> bool:
        return len(self.told) <= len(self.given)

    def busy(self) -> bool:
        return self.alive() and bool(self.given)

    def idle(self) -> bool:
        return not self.given

    def stop(self) -> None: ...
    def close(self) -> None: ...
    def wait(self) -> None: ...
    def kill(self) -> None: ...


def test_a_worker_that_dies_when_all_is_written_costs_nothing(tiny: Tiny, home: Path) -> None:
    spec, hired = tiny(steps=3), list[Gone]()

    class Crew:
        def hire(self, workers: Sequence[Any]) -> Any:
            if not hired:
                hired.append(Gone(home))
                hired[0].told = []
                return hired[0]
            return None

        def wait(self, workers: Sequence[Any]) -> None: ...

    see = lambda spec, row: hired[0].told.append(row["step"])  # noqa: E731
    assert Pool(Local(home), Crew(), [spec], see, lambda: False, 1).run() == {}
    assert hired[0].told == [0, 1, 2, 3]

"""Whatever was promised is there after a power cut; where no power can be cut, the order of system calls is checked."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engram.errors import Interrupted
from engram.learning import Moment
from engram.records import Record
from engram.records.shelf import all_records
from engram.records.writer import Writer
from engram.runner.execute import execute
from engram.specs import Train
from power import Disk, disk

Tiny = Callable[..., Train]


@pytest.fixture
def powered(tmp_path: Path) -> Iterator[Disk]:
    with disk(tmp_path) as found:
        if found is None:
            pytest.skip("no loop devices here: the order of system calls is tested instead")
        yield found


def as_in_the_lab(writer: Writer, moment: Moment) -> None:
    writer.snapshot(moment.step, moment.weights, durable=False)
    writer.checkpoint(moment.step, moment.state)


def test_a_finished_run_is_there_after_a_power_cut(tiny: Tiny, powered: Disk, tmp_path: Path) -> None:
    for seed in range(6):
        expected = execute(tiny(seed), tmp_path / "quiet")
        record = execute(tiny(seed), powered.path / "runs", on_moment=as_in_the_lab if seed % 2 else lambda *_: None)
        powered.cut()
        found = Record(record.folder)
        assert found.finished
        assert found.rows == expected.rows
        assert all(found.snapshot(step) for step in found.snapshot_steps)
        assert set(found.snapshot_steps) >= set(expected.snapshot_steps)


def test_a_saved_run_goes_on_after_a_power_cut(tiny: Tiny, powered: Disk, tmp_path: Path) -> None:
    """What Ctrl-C has saved is promised too: no step is taken again."""
    home, steps = powered.path / "runs", iter(range(100))
    with pytest.raises(Interrupted):
        execute(tiny(), home, stop=lambda: next(steps) == 4)
    powered.cut()
    (record,) = all_records(home)
    assert len(record.rows) == 4
    assert execute(tiny(), home).rows == execute(tiny(), tmp_path / "quiet").rows


RUNS = """
import sys
from pathlib import Path
from engram.learning import SGD, Plan
from engram.models import Simplified
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks import Bigram

plan = Plan(optimiser=SGD(lr=0.2, momentum=0.9, weight_decay=1e-4), steps=40, batch=4)
for seed in range(1000):
    execute(Train(task=Bigram(K=3, T=24), model=Simplified(d=16), plan=plan, seed=seed), Path(sys.argv[1]))
    print(seed, flush=True)
"""


def test_a_cut_at_any_moment_loses_no_run_that_has_ended(powered: Disk) -> None:
    home, chance = powered.path / "runs", random.Random(0)
    for _ in range(3):
        command = [sys.executable, "-c", RUNS, str(home)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writing:
            assert writing.stdout is not None
            promised = [int(writing.stdout.readline()) for _ in range(3)]
            time.sleep(chance.random() / 4)
            writing.kill()
        powered.cut()
        finished = {record.train.seed for record in all_records(home) if record.finished}
        assert set(promised) <= finished


def test_every_promise_is_on_disk_before_the_next_is_made(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data, folder, digest, folder; only then the state goes."""
    calls: list[str] = []
    real_fsync, real_replace, real_unlink = os.fsync, Path.replace, Path.unlink

    def fsync(fd: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{fd}")) if sys.platform == "linux" else Path(str(fd))
        calls.append(f"fsync {'folder' if name.is_dir() else name.name.lstrip('.').split('.')[0]}")
        real_fsync(fd)

    def replace(self: Path, target: Path) -> Path:
        calls.append(f"rename {Path(target).name.split('.')[0]}")
        return real_replace(self, target)

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if self.exists():
            calls.append(f"unlink {self.name.split('.')[0]}")
        real_unlink(self, missing_ok)

    steps = iter(range(100))
    with pytest.raises(Interrupted):
        execute(tiny(), tmp_path, stop=lambda: next(steps) == 4)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    monkeypatch.setattr(Path, "unlink", unlink)
    execute(tiny(), tmp_path)
    end = calls.index("rename digest")
    before, after = calls[:end], calls[end + 1 :]
    rows = len(before) - 1 - before[::-1].index("fsync rows")
    assert "fsync folder" in before[rows:], calls
    assert before[-1] == "fsync digest", calls
    assert after.index("fsync folder") < after.index("unlink state"), calls

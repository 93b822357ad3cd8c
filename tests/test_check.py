"""`engram runs check` looks at everything that a record holds: one flipped byte anywhere is named."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from engram.api import recheck
from engram.cli.main import main
from engram.errors import EngramError
from engram.records import Record
from engram.records.bundle import bundle, pack
from engram.records.shelf import all_records
from engram.records.writer import note
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import load_code
from lab import MINE
from test_part_done import as_in_the_lab, stopped

Tiny = Callable[..., Train]
KINDS = ("spec.json", "env.json", "rows.jsonl", "timing.jsonl", "events.jsonl", "code/mine.py")
WEIGHTS = ("snapshots/000002.safetensors", "states/000003.safetensors")


def own(seed: int = 0) -> Train:
    """A training that carries code, as short as it can be."""
    (spec,) = load_code("mine.py", MINE.encode()).specs("quick", [seed])
    plan = spec.plan.model_copy(update={"steps": 6, "batch": 4, "at_end": ()})
    return spec.model_copy(update={"plan": plan})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the lab makes it."""
    folder = execute(own(), tmp_path_factory.mktemp("finished"), on_moment=as_in_the_lab).folder
    note(folder, 3, {"op": "limit", "value": 2.0})
    return folder


@pytest.fixture(scope="module")
def part_done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = stopped(own(), tmp_path_factory.mktemp("part_done"), 4)
    note(folder, 3, {"op": "pause"})
    return folder


def flipped(folder: Path, name: str, into: Path, chance: random.Random) -> Path:
    """A copy with a flipped byte: its highest bit, which makes no valid text of valid text."""
    copy = Path(shutil.copytree(folder, into / folder.name))
    content = bytearray((copy / name).read_bytes())
    content[chance.randrange(len(content))] ^= 0x80
    (copy / name).write_bytes(bytes(content))
    return copy


def refused(folder: Path) -> str:
    with pytest.raises(EngramError) as error:
        recheck(Record(folder), 2)
    return str(error.value)


def test_what_is_whole_passes(finished: Path, part_done: Path) -> None:
    for folder in (finished, part_done):
        found = recheck(Record(folder), 6)
        assert found["ok"], found


@pytest.mark.parametrize("name", [*KINDS, *WEIGHTS, "digest.json"])
def test_a_flipped_byte_in_a_finished_record_is_named(finished: Path, tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    for trial in range(4):
        assert name in refused(flipped(finished, name, tmp_path / str(trial), chance))


@pytest.mark.parametrize("name", [*KINDS, *WEIGHTS, "state.safetensors"])
def test_a_flipped_byte_in_a_part_done_record_is_named(part_done: Path, tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    for trial in range(4):
        assert name in refused(flipped(part_done, name, tmp_path / str(trial), chance))


def test_any_bit_of_what_carries_a_digest(finished: Path, part_done: Path, tmp_path: Path) -> None:
    """Not only such flips as make text unreadable."""
    chance = random.Random(0)
    names = [*KINDS[:4], "code/mine.py", *WEIGHTS]
    for trial, name in enumerate([*names, "digest.json"] * 3):
        copy = Path(shutil.copytree(finished, tmp_path / str(trial) / finished.name))
        content = bytearray((copy / name).read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        (copy / name).write_bytes(bytes(content))
        assert name in refused(copy)


def test_the_command_exits_with_an_error(finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for trial, name in enumerate(("timing.jsonl", "states/000003.safetensors")):
        copy = flipped(finished, name, tmp_path / str(trial), random.Random(1))
        with pytest.raises(SystemExit) as end:
            main(["runs", "check", str(copy), "--steps", "1"])
        assert end.value.code in (1, 2)
        said = capsys.readouterr().err
        assert name in said
        assert len(said.strip().splitlines()) == 1


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file of one's own": (lambda folder: (folder / "thesis.tex").touch(), "thesis.tex"),
    "a folder of one's own": (lambda folder: (folder / "notes").mkdir(), "notes"),
    "among the snapshots": (lambda folder: (folder / "snapshots" / "x.txt").touch(), "snapshots/x.txt"),
    "among the states": (lambda folder: (folder / "states" / "7.safetensors").touch(), "states/7.safetensors"),
    "a link": (lambda folder: (folder / "live.safetensors").symlink_to("nothing"), "live.safetensors"),
    "times lost": (lambda folder: (folder / "timing.jsonl").unlink(), "timing.jsonl"),
    "a snapshot lost": (lambda folder: (folder / "snapshots" / "000002.safetensors").unlink(), "snapshots/000002"),
    "code lost": (lambda folder: (folder / "code" / "mine.py").unlink(), "mine.py"),
    "two states changed places": (
        lambda folder: shutil.copy(folder / "states" / "000002.safetensors", folder / "states" / "000003.safetensors"),
        "states/000003.safetensors",
    ),
    "other rows beside the packed ones": (
        lambda folder: (
            pack(Record(folder), folder.parent, False),
            shutil.rmtree(folder / "snapshots"),  # of which the packed record no longer speaks
            (folder / "rows.jsonl").write_text("{}\n"),
        ),
        "rows.jsonl",
    ),
}


@pytest.mark.parametrize(("put", "says"), ODD.values(), ids=ODD)
def test_what_does_not_belong_to_a_run_is_named(
    finished: Path, tmp_path: Path, put: Callable[[Path], object], says: str
) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / finished.name))
    put(copy)
    assert says in refused(copy)


def test_states_of_other_rows_are_named(finished: Path, tmp_path: Path) -> None:
    """Whole and with a valid digest, but of another run."""
    other = execute(own(seed=1), tmp_path / "other", on_moment=as_in_the_lab).folder
    copy = Path(shutil.copytree(finished, tmp_path / finished.name))
    shutil.copy(other / "states" / "000003.safetensors", copy / "states" / "000003.safetensors")
    assert "states/000003.safetensors" in refused(copy)


def test_what_a_kill_leaves_behind_is_no_damage(part_done: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(part_done, tmp_path / part_done.name))
    (copy / ".env.json.17.part").write_bytes(b"half")
    with (copy / "rows.jsonl").open("ab") as rows:
        rows.write(b'{"step": 4, "lo')
    assert recheck(Record(copy), 2)["ok"]


def test_packed_and_bundled_records_are_looked_at_too(finished: Path, tmp_path: Path) -> None:
    packed = pack(Record(finished), tmp_path / "packed", weights=True)
    assert recheck(Record(packed), 2)["ok"]
    bundle([Record(finished)], tmp_path / "shelf" / "one.zip")
    (found,) = all_records(tmp_path / "shelf")
    assert recheck(found, 2)["ok"]
    (packed / "code" / "mine.py").write_text(MINE + "# a comment\n")
    assert "code/mine.py" in refused(packed)


def test_records_of_older_versions_pass(finished: Path, tmp_path: Path) -> None:
    """Which had no digests of code, times, environment and of the digests themselves."""
    copy = Path(shutil.copytree(finished, tmp_path / finished.name))
    for name, new in (("digest.json", ("digest", "code/mine.py")), ("env.json", ("digest", "timing.jsonl"))):
        data = json.loads((copy / name).read_text())
        (copy / name).write_text(json.dumps({key: value for key, value in data.items() if key not in new}))
    assert recheck(Record(copy), 2)["ok"]

"""Texts, tables and bundles that are not what they seem are refused in one line, and nothing waits for them."""

import json
import os
import shutil
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engram.cli.main import main
from engram.errors import EngramError
from engram.records import Record, files, places
from engram.records.follow import Follower
from engram.records.index import overview
from engram.records.kept import Kept
from engram.records.places import in_bundle
from engram.records.writer import write_spec
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import encode
from engram.specs.events import Freeze
from engram.specs.spec import run_id
from engram.tasks import Bigram, corpus
from engram.tasks.facts import OwnFacts

Tiny = Callable[..., Train]
pytestmark = pytest.mark.timeout(60)  # a pipe that is opened waits forever


def pipe(path: Path) -> None:
    os.mkfifo(path)


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": pipe,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": lambda path: path.mkdir(),
    "a link to nothing": lambda path: path.symlink_to(path.with_name("nothing")),
}


@pytest.mark.parametrize("put", ODD.values(), ids=ODD)
def test_an_odd_text_or_table_is_refused(tmp_path: Path, put: Callable[[Path], object]) -> None:
    put(tmp_path / "odd")
    with pytest.raises(EngramError, match=r"task.corpus: cannot read .*odd.* give a text file"):
        Bigram.model_validate({"corpus": str(tmp_path / "odd"), "K": 2})
    with pytest.raises(EngramError, match=r"odd: cannot be read as CSV"):
        OwnFacts.read(tmp_path / "odd")


def test_a_link_that_the_user_names_himself_is_followed(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abracadabra")
    (tmp_path / "table").write_text("subject,relation,answer\nBach,born,Eisenach\nHaydn,born,Rohrau\n")
    for name in ("text", "table"):
        (tmp_path / f"{name}.link").symlink_to(tmp_path / name)
    task = Bigram.model_validate({"corpus": str(tmp_path / "text.link"), "K": 2})
    assert task.N == 5
    assert len(OwnFacts.read(tmp_path / "table.link").facts) == 2


def test_texts_and_tables_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MOST_TEXT", 1 << 20)
    monkeypatch.setattr("engram.tasks.facts.MOST_TABLE", 1 << 20)
    (tmp_path / "long").write_bytes(b"ab" * (1 << 20))
    with pytest.raises(EngramError, match="larger than 1 MB"):
        Bigram.model_validate({"corpus": str(tmp_path / "long"), "K": 2})
    with pytest.raises(EngramError, match="larger than 1 MB"):
        OwnFacts.read(tmp_path / "long")


def forget_texts() -> None:
    """As in a new process."""
    corpus._known.clear()


def without_tables(folder: Path) -> None:
    """As older versions wrote it: the record names its text, and carries nothing of it."""
    shutil.rmtree(folder / "texts")
    digest = json.loads((folder / "digest.json").read_text())
    files.write_digest(folder, {name: value for name, value in digest.items() if not name.startswith("texts/")})


def foreign(tiny: Tiny, home: Path, text: Path) -> Path:
    """A finished record of somebody else that names a text on this machine."""
    task = Bigram.model_validate({"corpus": str(text), "K": 3, "T": 24})
    spec = tiny().model_copy(update={"task": task, "events": (Freeze(step=3, matrix="W_O2"),), "tests": {"same": task}})
    return execute(spec, home).folder


def test_a_text_that_a_record_names_is_not_read_when_it_is_only_looked_at(
    tiny: Tiny, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    text = home.parent / "text"
    text.write_text("abracadabra")
    folder = foreign(tiny, home, text)
    without_tables(folder)
    text.unlink()
    os.mkfifo(text)  # whoever opens it waits, and the test fails
    forget_texts()
    (line,) = overview(home)
    assert line["state"] == "finished"
    for words in (["runs", "ls"], ["runs", "show", folder.name], ["runs", "diff", folder.name, folder.name]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 0, capsys.readouterr().err
    with pytest.raises(EngramError, match=r"cannot read .*not a plain file"):
        Record(folder).model()


def test_a_record_cannot_have_a_text_read_by_its_bare_path(tiny: Tiny, tmp_path: Path) -> None:
    folder = execute(tiny(), tmp_path / "runs").folder
    os.mkfifo(tmp_path / "text")
    spec = json.loads((folder / "spec.json").read_text())
    spec["task"]["corpus"] = str(tmp_path / "text")
    (folder / "spec.json").write_text(json.dumps(spec))
    with pytest.raises(EngramError, match="a record names a text by its path and its SHA-256"):
        _ = Record(folder).spec


def test_a_text_that_was_changed_is_named_without_a_word_about_what_it_is_now(tiny: Tiny, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("abracadabra")
    folder = foreign(tiny, tmp_path / "runs", text)
    without_tables(folder)
    text.write_text("open sesame")
    forget_texts()
    with pytest.raises(EngramError, match="text changed") as error:
        Record(folder).model()
    assert files.sha256(b"open sesame")[:12] not in str(error.value)


def test_a_record_that_asks_for_more_triggers_than_its_text_has_letters_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("abracadabra")
    data = encode(Bigram.model_validate({"corpus": str(tmp_path / "text"), "K": 2}))["corpus"]
    forget_texts()
    with corpus.as_a_record_says():
        task = Bigram(K=9, corpus=corpus.TextFile(path=data["path"], sha256=data["sha256"]))
    with pytest.raises(EngramError, match=r"task.K: K=9 needs more than the 5 tokens"):
        task.sample(0, 0, 2)


def archive(path: Path, *names: str, content: bytes = b"{}") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in names:
            made.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return path


ZIPS = {
    "up": (("../a/spec.json",), "leads out of it"),
    "up within": (("a/../../spec.json",), "leads out of it"),
    "absolute": (("/tmp/spec.json",), "leads out of it"),
    "backslash": (("a\\spec.json",), "leads out of it"),
    "twice": (("a/spec.json", "a/spec.json"), "twice"),
    "many": (tuple(f"a/{i}" for i in range(9)), "more than 8 files"),
    "much": (("a/spec.json", "a/rows.jsonl"), "more than 1 MB"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("names", "says"), ZIPS.values(), ids=ZIPS)
def test_an_odd_bundle_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], says: str
) -> None:
    monkeypatch.setattr(places, "MOST_ENTRIES", 8)
    monkeypatch.setattr(places, "MOST_UNPACKED", 1 << 20)
    path = archive(tmp_path / "odd.zip", *names, content=bytes(1 << 20) if says.endswith("MB") else b"{}")
    with pytest.raises(EngramError, match=rf"odd.zip .*{says}"):
        in_bundle(path)
    (line,) = overview(tmp_path)
    assert says in line["state"]


def test_a_bundle_unpacks_no_more_than_it_claims(tmp_path: Path) -> None:
    """A small claim before a large file: what is unpacked ends at the claim, and the checksum does not fit."""
    path = archive(tmp_path / "bomb.zip", "a/spec.json", content=bytes(64 << 20))
    content = path.read_bytes()
    path.write_bytes(content.replace((64 << 20).to_bytes(4, "little"), (100).to_bytes(4, "little")))
    record = Kept(in_bundle(path)[0])
    tracemalloc.start()
    with pytest.raises(EngramError, match=r"spec.json is missing or unreadable"):
        _ = record.spec_json
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 << 20


@pytest.mark.parametrize("put", [ODD["a pipe"], ODD["a device"]], ids=["a pipe", "a device"])
def test_a_bundle_that_is_no_plain_file_is_listed_with_the_reason(
    tmp_path: Path, put: Callable[[Path], object]
) -> None:
    put(tmp_path / "odd.zip")
    (line,) = overview(tmp_path)
    assert "not a plain file" in line["state"]


def test_rows_have_limits(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = execute(tiny(), tmp_path).folder
    monkeypatch.setattr(files, "MOST_ROWS", 3)
    with pytest.raises(EngramError, match=r"rows.jsonl has more than 3 rows"):
        _ = Record(folder).rows
    with pytest.raises(EngramError, match=r"at most 3 rows"):
        execute(tiny(seed=1), tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(files, "MOST_LINE", 20)
    with pytest.raises(EngramError, match=r"rows.jsonl has a line of more than"):
        _ = Record(folder).rows
    with pytest.raises(EngramError, match=r"at most .* rows of"):
        execute(tiny(seed=2), tmp_path)


@pytest.mark.parametrize("name", ["rows.jsonl", "live.safetensors"])
def test_whoever_follows_a_run_does_not_wait_for_a_pipe(tiny: Tiny, tmp_path: Path, name: str) -> None:
    folder = tmp_path / run_id(tiny())
    write_spec(tiny(), folder)
    os.mkfifo(folder / name)
    follower = Follower(folder)
    follower.look_for_weights()
    assert follower.live == {}
    if name == "rows.jsonl":
        with pytest.raises(EngramError, match=r"rows.jsonl is missing or unreadable"):
            list(follower.poll())


def test_a_pipe_for_rows_or_times_does_not_make_a_run_wait(tiny: Tiny, tmp_path: Path) -> None:
    for name in ("rows.jsonl", "timing.jsonl", "events.jsonl", "lock", "state.safetensors"):
        folder = tmp_path / name / run_id(tiny())
        write_spec(tiny(), folder)
        os.mkfifo(folder / name)
        with pytest.raises(EngramError, match=rf"{name} is .*not a plain file"):
            execute(tiny(), folder.parent)
        assert json.loads((folder / "spec.json").read_text())

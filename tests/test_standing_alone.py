"""A record stands alone: it carries what it needs of a user's text or table, and is read wherever these have gone."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engram.errors import EngramError
from engram.facts.learn import spec_of_file
from engram.records import Record
from engram.records.audit import refuse_damaged
from engram.records.bundle import bundle, pack
from engram.records.shelf import all_records
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.settings import with_settings
from engram.specs.spec import run_id
from engram.tasks import Bigram, corpus
from engram.tasks.corpus import corpus_of
from engram.tasks.counts import Counts, NoTable

Tiny = Callable[..., Train]
Said = Callable[..., tuple[int, str, str]]
TEXT = "abracadabra, said the wizard, and nothing happened\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "my.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(autouse=True)
def _new_process() -> None:
    corpus._known.clear()


def on(path: Path, tiny: Tiny, **plan: object) -> Train:
    return tiny(**plan).model_copy(update={"task": Bigram.model_validate({"corpus": str(path), "K": 3, "T": 24})})


def test_a_run_on_a_text_is_readable_after_the_text_has_gone(tiny: Tiny, home: Path, text: Path) -> None:
    record = execute(on(text, tiny), home)
    before = record.model()([0, 1, 2]).logits
    text.unlink()
    corpus._known.clear()
    again = Record(record.folder)
    assert again.train.task.alphabet == "".join(sorted(set(TEXT)))  # type: ignore[attr-defined]
    assert (again.model()([0, 1, 2]).logits == before).all()
    assert again.train == record.train
    refuse_damaged(again)
    changed = with_settings(again.train, {"task.K": 2})
    assert len(set(TEXT)) == changed.task.N, "what is made of it needs no file either"


def test_the_laws_of_a_carried_table_are_those_of_the_text_to_the_bit(tiny: Tiny, home: Path, text: Path) -> None:
    read = corpus_of(on(text, tiny).task.corpus)  # type: ignore[attr-defined]
    folder = execute(on(text, tiny), home).folder
    corpus._known.clear()
    carried = Record(folder).train.task.table  # type: ignore[attr-defined]
    assert carried is not read
    assert carried.alphabet == read.alphabet
    assert np.array_equal(carried.unigram, read.unigram)
    assert np.array_equal(carried.bigram, read.bigram)


def test_a_copy_of_the_same_bytes_is_the_same_run(home: Path, tmp_path: Path, text: Path, said: Said) -> None:
    smoke = ("run", "birth.joint", "--scale", "smoke", "--json", "--set", "task.K=3")
    code, out, err = said(*smoke, f"task.corpus={text}")
    assert code == 0, err
    text.rename(tmp_path / "copy.txt")
    corpus._known.clear()
    code, again, err = said(*smoke, f"task.corpus={tmp_path / 'copy.txt'}")
    assert code == 0, err
    assert json.loads(again)["records"] == json.loads(out)["records"]


def test_an_older_record_is_read_with_a_copy_of_its_text(tiny: Tiny, home: Path, tmp_path: Path, text: Path) -> None:
    """Such records name their text and carry nothing of it."""
    folder = execute(on(text, tiny), home).folder
    digest = json.loads((folder / "digest.json").read_text())
    kept = {name: value for name, value in digest.items() if not name.startswith(("texts/", "digest"))}
    (folder / "digest.json").write_text(json.dumps(kept))
    for file in (folder / "texts").iterdir():
        file.unlink()
    (folder / "texts").rmdir()
    text.rename(tmp_path / "copy.txt")
    corpus._known.clear()
    with pytest.raises(EngramError, match=r"my\.txt.*put the same text there"):
        Record(folder).model()
    assert run_id(on(tmp_path / "copy.txt", tiny)) == folder.name
    assert Record(folder).model().weights


def test_a_part_done_run_goes_on_without_its_text(tiny: Tiny, home: Path, text: Path) -> None:
    whole = execute(on(text, tiny), home / "whole")
    spec, stop = on(text, tiny), iter([False] * 3 + [True])
    with pytest.raises(BaseException, match="stopped"):
        execute(spec, home, stop=lambda: next(stop))
    text.unlink()
    corpus._known.clear()
    record = execute(Record(home / run_id(spec)).spec, home)
    assert record.rows == whole.rows


def test_packed_and_bundled_records_stand_alone_too(tiny: Tiny, home: Path, tmp_path: Path, text: Path) -> None:
    record = execute(on(text, tiny), home)
    packed = pack(record, tmp_path / "packed", weights=True)
    bundle([record], tmp_path / "shelf" / "one.zip")
    text.unlink()
    corpus._known.clear()
    for found in (Record(packed), *all_records(tmp_path / "shelf")):
        refuse_damaged(found)
        assert len(set(TEXT)) == found.train.task.N


def test_what_a_record_says_of_a_text_is_believed_of_that_record_only(tiny: Tiny, home: Path, text: Path) -> None:
    folder = execute(on(text, tiny), home).folder
    (file,) = (folder / "texts").iterdir()
    (folder / "digest.json").unlink()
    file.write_bytes(Counts.of("abcabd", "abcd").to_bytes())
    corpus._known.clear()
    assert Record(folder).train.task.N == 4
    assert len(set(TEXT)) == on(text, tiny).task.N


def test_a_changed_table_is_named(tiny: Tiny, home: Path, text: Path) -> None:
    folder = execute(on(text, tiny), home).folder
    (file,) = (folder / "texts").iterdir()
    file.write_bytes(Counts.of("abcabd", "abcd").to_bytes())
    corpus._known.clear()
    with pytest.raises(EngramError, match=r"texts/.* does not match the digest"):
        Record(folder).model()
    with pytest.raises(EngramError, match=r"texts/.* does not match the digest"):
        refuse_damaged(Record(folder))


GOOD = json.loads(Counts.of("abcabd", "abcd").to_bytes())


@pytest.mark.parametrize(
    "table",
    [
        [],
        {},
        GOOD | {"alphabet": "abdc"},
        GOOD | {"alphabet": "abcc"},
        GOOD | {"alphabet": 4},
        GOOD | {"letters": [2, 2, 1]},
        GOOD | {"letters": [2, 2, 1, -1]},
        GOOD | {"letters": [2, 2, 1, 2.0]},
        GOOD | {"letters": [2, 2, 1, 7]},
        GOOD | {"letters": [2, 2, 1, 10**30]},
        GOOD | {"pairs": [[0], [9], [1]]},
        GOOD | {"pairs": [[0, 1], [1], [1]]},
        GOOD | {"pairs": [[0], [1]]},
        GOOD | {"pairs": "none"},
    ],
)
def test_what_is_no_table_is_refused(table: object) -> None:
    assert Counts.of_bytes(json.dumps(GOOD).encode()).pairs.sum() == 5
    with pytest.raises(NoTable):
        Counts.of_bytes(json.dumps(table).encode())


def test_a_run_on_a_table_of_facts_holds_the_facts(tmp_path: Path, home: Path) -> None:
    table = tmp_path / "facts.csv"
    table.write_text("subject,relation,answer\nFrance,capital,Paris\nPeru,capital,Lima\n")
    record = execute(spec_of_file(table, steps=1), home)
    table.unlink()
    assert Record(record.folder).train.task.names["subject"] == ["France", "Peru"]  # type: ignore[attr-defined]

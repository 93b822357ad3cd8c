"""The data of a report that is the page of the lab: those of the Python interface, as far as there is room for them."""

import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engram.lab.protocol import VERSION
from engram.lab.still import packed, spread, still
from engram.lab.whole import LARGEST, page, whole_report
from engram.models import Model
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from lab import picture_of


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


@pytest.fixture
def record(home: Path, tiny: Callable[..., Train]) -> Record:
    return execute(tiny(steps=20), home)


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=60, unique=True), st.lists(st.integers(0, 10**6), max_size=4)
)
def test_the_most_telling_steps_come_first_and_all_come_once(steps: list[int], marked: list[int]) -> None:
    steps.sort()
    order = spread(steps, marked)
    assert sorted(order) == steps
    assert order[:2] == [steps[-1], *([steps[0]] if len(steps) > 1 else [])]


def shown_by(model: Model, tokens: np.ndarray, kind: str, name: str) -> torch.Tensor:
    """A picture as Python has it."""
    if kind == "memory":
        return model.memories[name].scores()
    if kind == "raw":
        return torch.atleast_2d(model.weights[name])
    layer, head = map(int, name.split("."))
    return model(tokens).attention[layer - 1][0, head - 1]


def test_pictures_are_those_of_the_python_interface(record: Record) -> None:
    """To half of one of 256 levels; predictions to five digits."""
    found = still([record], LARGEST)
    pictures = found.pictures[record.id]
    assert sorted(pictures) == record.snapshot_steps
    assert found.told == []
    for step, of in pictures.items():
        model = record.model(step)
        tokens = record.train.task.sample(record.train.seed, 2**41, 1).tokens[0]
        for name, frame in of.items():
            header, values = picture_of(unpacked(frame))
            exact = shown_by(model, tokens, *name.split(":"))
            assert np.abs(values - exact.numpy()).max() <= (header["hi"] - header["lo"]) / 509
        reading = json.loads(unpacked(found.readings[record.id][step]))
        p = model(tokens).logits[0].softmax(dim=1)
        assert [line[0]["token"] for line in reading["predictions"]] == p.argmax(dim=1).tolist()


def test_news_are_what_a_lab_would_say(record: Record) -> None:
    messages = json.loads(unpacked(still([record], LARGEST).news))
    told = {message["t"]: message for message in messages}
    assert set(told) == {"runs", "about", "columns", "rows", "state"}
    assert told["state"]["snapshots"] == record.snapshot_steps
    for name, values in told["rows"]["columns"].items():
        known = np.array([np.nan if value is None else value for value in values], dtype=float)
        np.testing.assert_array_equal(known, record.column(name))
    assert told["runs"]["runs"][0]["id"] == record.id


def test_what_there_is_no_room_for_is_told(home: Path, tiny: Callable[..., Train]) -> None:
    """First and last step stay; a page is never larger than its room but for one step."""
    record = execute(tiny(steps=60, snapshot_every=2), home)
    whole = still([record], LARGEST)
    size = sum(len(frame) for of in whole.pictures[record.id].values() for frame in of.values())
    few = still([record], size // 3)
    kept = sorted(few.pictures[record.id])
    assert kept[0] == 0
    assert kept[-1] == 60
    assert 3 < len(kept) < len(record.snapshot_steps)
    assert few.told == [
        f"{record.id}: pictures of {len(kept)} of its {len(record.snapshot_steps)} stored steps are in this file: "
        "the first, the last, those of births, and others evenly between them."
    ]
    used = sum(len(frame) for of in few.pictures[record.id].values() for frame in of.values())
    assert used + sum(map(len, few.readings[record.id].values())) <= size // 3
    least = still([record], 1000)
    names = {name for of in least.pictures[record.id].values() for name in of}
    assert len(names) == 1
    assert "too large for this file" in least.told[0]
    heard: list[str] = []
    html = whole_report("A", [(record, [])], [], tell=heard.append)
    assert len(html.encode()) < LARGEST
    assert heard == []


def test_the_command_says_what_is_left_out(
    home: Path, record: Record, said: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.lab.whole.LARGEST", 1)
    monkeypatch.setattr("engram.lab.whole.LEAST", 4000)
    code, out, err = said("report", record.id, "-o", "r.html")
    assert code == 0
    assert "too large for this file" in err
    assert "too large" not in out
    code, out, err = said("report", record.id, "-o", "r.html", "--json")
    assert json.loads(out)["left_out"] == err.splitlines()
    assert Path("r.html").read_text().count("engram-data") == 2  # in the page, and in its script


def test_the_data_are_of_this_protocol(record: Record) -> None:
    (data,) = re.findall(r'id="engram-data">(.*?)</script>', page("A", [record]))
    assert json.loads(data)["v"] == VERSION
    assert unpacked(packed(b"abc")) == b"abc"

"""What must not happen in the lab: strangers, tricks, floods and nonsense are refused, and it goes on."""

import json
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from engram.lab.protocol import LARGEST_MESSAGE, frame, schema
from engram.records import Record
from lab import Page, Served, picture_of, served


def test_the_token_and_the_origin_are_asked_for(lab: Served) -> None:
    def get(path: str, **headers: str) -> int:
        connection = HTTPConnection("127.0.0.1", lab.port)
        connection.request("GET", path, headers=headers)
        with closing(connection):
            return connection.getresponse().status

    assert get("/") == get("/?token=wrong") == get("/?token=%FF%FE") == 403
    assert (
        get(f"/?token={lab.token}", Origin="http://evil.example")
        == get(f"/?token={lab.token}", Origin="http://[")
        == 403
    )
    assert len(lab.token) > 20
    assert get(f"/?token={lab.token}") == 200
    assert get(f"/../../etc/passwd?token={lab.token}") == 404
    address = f"ws://127.0.0.1:{lab.port}/ws"
    for path, origin in (("", None), ("?token=no", None), (f"?token={lab.token}", "http://evil.example")):
        with pytest.raises(InvalidStatus), connect(address + path, origin=origin):  # type: ignore[arg-type]
            pass
    with lab.page(Origin=f"http://127.0.0.1:{lab.port}") as page:
        assert "runs" in page.runs()


NO_RUNS = ["../../etc", "..", ".", "", "a/b", "lab", "nul\0l", "<img src=x onerror=alert(1)>", "x" * 200]


def test_names_that_are_no_runs_are_refused(page: Page) -> None:
    for run in NO_RUNS:
        page.say("view", run=run, pictures=["memory:W_O2"])
        assert "run" in page.hear("error")["message"]
        assert not page.ask("start", run=run)["ok"]


def test_a_thousand_commands_a_second_are_too_many(lab: Served, page: Page) -> None:
    run = page.start(**{"plan.steps": 3000})
    began = time.monotonic()
    for i in range(1000):
        page.say("control", id=1000 + i, op="resume")
    answers = [page.hear("answer") for _ in range(1000)]
    assert sum(answer["ok"] for answer in answers) <= 20 * (2 + time.monotonic() - began)
    assert sum("too many" in answer.get("error", "") for answer in answers) > 500
    with lab.page() as other:  # the limit is the lab's: a flood does not get more by opening more pages
        for i in range(100):
            page.say("control", id=i, op="resume")
            other.say("control", id=i, op="resume")
        answers = [tab.hear("answer") for tab in (page, other) for _ in range(100)]
        assert sum(answer["ok"] for answer in answers) <= 20 * (2 + time.monotonic() - began)
    page.until(run, len(Record(lab.home / run).rows) + 3)


def test_no_process_has_the_token_on_its_command_line(lab: Served) -> None:
    lab.backend.mailbox.start_trainer()
    found = [command for path in Path("/proc").glob("[0-9]*/cmdline") if (command := _read(path))]
    assert [command for command in found if b"engram.lab.trainer" in command and str(lab.home).encode() in command]
    assert not [command for command in found if lab.token.encode() in command]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""


KINDS = {kind: name.rpartition("/")[2] for kind, name in schema()["discriminator"]["mapping"].items()}
FIELDS = sorted({field for name in KINDS.values() for field in schema()["$defs"][name]["properties"]} - {"t"})
MALFORMED = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    ).map(json.dumps),
    st.fixed_dictionaries(
        {"t": st.sampled_from([*sorted(KINDS.keys() - {"start"}), "x"])},  # a start may be right
        optional={
            name: st.none() | st.integers() | st.text(max_size=12) | st.lists(st.integers(-9, 9), max_size=3)
            for name in FIELDS
        },
    ).map(json.dumps),
)


def test_ten_thousand_malformed_messages_do_not_kill_the_server(tmp_path: Path) -> None:
    with served(tmp_path / "runs") as lab:

        @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(MALFORMED, min_size=50, max_size=50))
        def throw(messages: list[str | bytes]) -> None:
            with lab.page() as page:
                for message in messages:
                    page.ws.send(message)
                assert page.runs()["runs"] == []

        throw()
        with lab.page() as page:
            page.ws.send("x" * (LARGEST_MESSAGE + 1))
            with pytest.raises(ConnectionClosed):
                page.hear("answer")
        with lab.page() as page:
            assert page.runs()["presets"]


def test_frames_hold_their_values() -> None:
    values = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    assert np.array_equal(picture_of(frame({}, values, "f4"))[1], values.astype(float))
    rough = picture_of(frame({"t": "picture"}, values))[1]
    assert np.abs(rough - values).max() <= (values.max() - values.min()) / 255
    values[2, 3] = 0
    assert abs(picture_of(frame({}, values))[1][2, 3]) < 1e-7, "what is nothing is shown as nothing"
    constant = picture_of(frame({}, np.full((2, 2), 3.0)))[1]
    assert np.array_equal(constant, np.full((2, 2), 3.0))


def test_the_schema_of_the_protocol_is_published() -> None:
    """To write it anew: json.dumps(engram.lab.protocol.schema(), indent=1)."""
    path = Path(__file__).parent / "lab-schema.json"
    assert json.loads(path.read_text()) == schema()

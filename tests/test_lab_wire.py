"""Connections that bring nonsense, half of something or nothing end themselves, and the log stays short."""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from engram.lab import wire
from engram.lab.protocol import LARGEST_MESSAGE
from engram.lab.quiet_log import MOST_LINES, FewLines
from lab import Served, served

UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PATIENCE = 60.0  # seconds, for a busy machine


@contextmanager
def connection(lab: Served, content: bytes = b"") -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", lab.port), timeout=PATIENCE)) as made:
        made.sendall(content)
        yield made


def ends(lab: Served, *contents: bytes) -> bool:
    """Whether a connection that sends these, each after an answer to the one before, is cut."""
    with suppress(ConnectionError), connection(lab) as made:
        for content in contents[:-1]:
            made.sendall(content)
            made.recv(1 << 16)
        made.sendall(contents[-1])
        return is_cut(made)
    return True


def is_cut(made: socket.socket) -> bool:
    """Whether the other side ends it; what it says before is read."""
    with suppress(ConnectionError):
        while made.recv(1 << 16):
            pass
    return True


def page_comes(lab: Served) -> bool:
    with closing(HTTPConnection("127.0.0.1", lab.port, timeout=PATIENCE)) as asked:
        asked.request("GET", f"/?token={lab.token}")
        return asked.getresponse().status == 200


def head(lab: Served, first: str, *more: str) -> bytes:
    return "\r\n".join([first, f"Host: 127.0.0.1:{lab.port}", *more, ""]).encode("latin-1")


def test_half_requests_are_cut_and_keep_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent, half a line, half of the headers, half a body, half of a second request: a hundred, then all are gone."""
    assert wire.SECONDS_FOR_A_REQUEST <= 10
    monkeypatch.setattr(wire, "SECONDS_FOR_A_REQUEST", 1.0)
    with served(tmp_path / "runs") as lab, ExitStack() as all_of_them:
        halves = [
            b"",
            b"GET /",
            head(lab, "GET / HTTP/1.1"),
            head(lab, "POST / HTTP/1.1", "Content-Length: 9", "", "a"),
        ]
        halves.append(head(lab, "GET / HTTP/1.1", "") + b"GET / HT")
        opened = [all_of_them.enter_context(connection(lab, half)) for half in halves * 20]
        assert page_comes(lab)
        assert all(map(is_cut, opened))
        assert page_comes(lab)


def test_a_request_that_comes_letter_by_letter_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is not set back by what is sent."""
    monkeypatch.setattr(wire, "SECONDS_FOR_A_REQUEST", 0.3)
    with served(tmp_path / "runs") as lab, connection(lab, head(lab, "GET / HTTP/1.1", "X: ")) as slow:
        slow.settimeout(0.02)
        end = time.monotonic() + PATIENCE
        with pytest.raises(ConnectionError):
            drip(slow, end)


def drip(slow: socket.socket, end: float) -> None:
    while time.monotonic() < end:
        slow.sendall(b"a")
        with suppress(TimeoutError):
            if not slow.recv(1):
                raise ConnectionError("it was cut")


def test_open_pages_are_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path / "runs") as lab, lab.page() as page:  # the page itself has all the time that it needs
        monkeypatch.setattr(wire, "SECONDS_FOR_A_REQUEST", 0.1)
        with connection(lab) as silent:
            assert is_cut(silent)
            assert page.runs()["runs"] == []


def frame(first: int, content: bytes, masked: bool = True) -> bytes:
    """A frame of WebSockets, right or wrong; the mask is zero."""
    mask, n = 0x80 * masked, len(content)
    size = bytes([mask | n]) if n < 126 else bytes([mask | 127]) + n.to_bytes(8, "big")
    return bytes([first]) + size + bytes(4 * masked) + content


FRAMES = {
    "an opcode that is none": frame(0x85, b"x"),
    "reserved bits": frame(0xF1, b"x"),
    "no mask": frame(0x81, b"x", masked=False),
    "no UTF-8": frame(0x81, b"\xff\xfe") * 5,
    "no UTF-8 in two parts": frame(0x01, b"\xc3") + frame(0x80, b"\x28"),
    "too large": frame(0x81, b"x" * (LARGEST_MESSAGE + 1)),
    "larger than anything": b"\x82\xff" + b"\xff" * 8,
    "a long ping": frame(0x89, b"x" * 200),
    "half a close": frame(0x88, b"\0"),
    "no code to close with": frame(0x88, b"\0\1"),
    "close without UTF-8": frame(0x88, b"\x03\xe8\xff"),
    "goes on with nothing": frame(0x80, b"x"),
    "begins twice": frame(0x01, b"a") + frame(0x81, b"b"),
}


def requests(lab: Served) -> dict[str, bytes]:
    """What is no request, or none that can be answered."""
    upgrade = ("Connection: Upgrade", "Upgrade: websocket")
    return {
        "garbage": b"\x16\x03\x01\x02\x1b]0;title\x07\r\n\r\n",
        "a body that is none": head(lab, "POST / HTTP/1.1", "Transfer-Encoding: chunked", "", "zz", ""),
        "a line without end": b"GET /" + b"a" * (1 << 17),
        "letters that are none": head(lab, "GET /ws?token=\xff HTTP/1.1", UPGRADE),
        "two hosts": head(lab, "GET / HTTP/1.1", "Host: a", ""),
        "another upgrade": head(lab, "GET / HTTP/1.1", "Connection: Upgrade", "Upgrade: h2c", ""),
        "a WebSocket without a key": head(lab, "GET /ws HTTP/1.1", *upgrade, ""),
        "a WebSocket that is posted": head(lab, "POST /ws HTTP/1.1", *upgrade, "Content-Length: 3", "", "abc"),
    }


def test_each_bad_connection_is_one_line_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wire, "SECONDS_FOR_A_REQUEST", 1.0)
    with served(tmp_path / "runs") as lab:
        shake = head(lab, f"GET /ws?token={lab.token} HTTP/1.1", UPGRADE)
        for name, content in (requests(lab) | FRAMES).items():
            assert ends(lab, *([shake] if name in FRAMES else []), content), name
            told = capsys.readouterr().err
            assert told.count("\n") <= 1, f"{name}: {told}"
            assert told.removesuffix("\n").isprintable(), name
            assert lab.token not in told
        assert page_comes(lab)


def test_a_flood_of_bad_frames_does_not_fill_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(tmp_path / "runs") as lab:
        shake = head(lab, f"GET /ws?token={lab.token} HTTP/1.1", UPGRADE)
        for _ in range(40):
            assert ends(lab, b"nonsense\r\n\r\n")
            assert ends(lab, shake, FRAMES["reserved bits"])
            assert ends(lab, shake, FRAMES["no UTF-8"])
        lines = capsys.readouterr().err.splitlines()
        assert 3 <= len(lines) <= 3 * MOST_LINES
        assert not [line for line in lines if "Traceback" in line]


def test_ten_thousand_lines_are_a_few_and_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    few, log, told = FewLines(), logging.getLogger("uvicorn.error"), list[str]()
    passed = [few.filter(log.makeRecord(log.name, 30, "", 0, f"kind {i % 2}", (), None)) for i in range(10_000)]
    assert sum(passed) == 2 * MOST_LINES
    monkeypatch.setattr(log, "warning", lambda line, n: told.append(line % n))
    few.tell()
    few.tell()
    assert told == [f"{10_000 - 2 * MOST_LINES} more lines like these were left out"]
    assert few.filter(log.makeRecord(log.name, 30, "", 0, "kind 0", (), None)), "a new minute"

"""A lab for tests: a server in a thread, and a page without a browser."""

import json
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from websockets.sync.client import ClientConnection, connect

from engram.lab.address import Address, listen
from engram.lab.backend import Backend
from engram.lab.lesson import Lesson
from engram.lab.protocol import VERSION
from engram.lab.server import config
from engram.lab.watched_model import WatchedModel
from engram.records.writer import write_spec
from engram.specs.encode import load_code
from engram.specs.settings import with_settings
from engram.specs.spec import run_id

SEEDS = count()
MINE = (Path(__file__).parent.parent / "examples" / "own_task.py").read_text()
SMALL = {"task.T": 24, "task.K": 3, "model.d": 16, "plan.steps": 40, "plan.batch": 4}
SCALE = """

from typing import Annotated, Literal

from pydantic import Field

from engram.specs.events import OfMatrix


class Scale(OfMatrix):
    \"\"\"All entries of the matrix are multiplied by a factor.\"\"\"

    title = "Scale a matrix"
    words = "scale {matrix} by {factor:g}"
    factor: Annotated[float, Field(gt=0)] = 2.0
    times: int = 1
    sign: Literal["as it is", "turned"] = "as it is"
    forget: bool = False

    def act(self, w, moments, past, stream):
        w[self.matrix] *= self.factor**self.times * (-1 if self.sign == "turned" else 1)
        if self.forget:
            moments.clear()

    def refuse(self, now, silent):
        super().refuse(now, silent)
        if self.factor == 1:
            raise ValueError("factor: 1 changes nothing")
"""


@dataclass
class Served:
    backend: Backend
    address: Address
    server: uvicorn.Server

    def drop(self) -> None:
        """All connections are lost."""
        for connection in list(self.server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                connection.loop.call_soon_threadsafe(transport.abort)  # the server runs in another thread

    @property
    def home(self) -> Path:
        return self.backend.reader.home

    @property
    def token(self) -> str:
        return self.backend.token

    @property
    def host(self) -> str:
        return self.address.host

    @property
    def port(self) -> int:
        return self.address.port

    @property
    def url(self) -> str:
        return self.address.url(self.token)

    @contextmanager
    def page(self, **headers: str) -> Iterator["Page"]:
        address = self.url.replace("http", "ws", 1).replace("/?", "/ws?", 1)
        with connect(address, max_size=None, additional_headers=headers) as ws:
            page = Page(ws)
            assert page.hear("hello")["v"] == VERSION
            yield page


@dataclass
class Page:
    """Speaks the protocol; keeps what it has not been asked for."""

    ws: ClientConnection
    frames: list[tuple[dict[str, Any], np.ndarray]] = field(default_factory=list)
    rows: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    columns: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=count)

    def say(self, t: str, /, **fields: Any) -> None:
        self.ws.send(json.dumps({"t": t, **fields}))

    def hear(self, kind: str, timeout: float = 120.0) -> dict[str, Any]:
        """The next message of a kind; all others are taken in."""
        end = time.monotonic() + timeout
        while (told := self.hear_any(max(0.01, end - time.monotonic())))["t"] != kind:
            pass
        return told

    def hear_any(self, timeout: float = 120.0) -> dict[str, Any]:
        """The next message of whatever kind, taken in."""
        message = self.ws.recv(timeout=timeout)
        if isinstance(message, bytes):
            self.frames.append(picture_of(message))
            return self.frames[-1][0] | {"t": "frame"}
        told = json.loads(message)
        self._take_in(told)
        return told

    def _take_in(self, told: dict[str, Any]) -> None:
        if told["t"] == "state":
            self.state = told
        if told["t"] == "about":
            self.about[told["run"]] = told
        if told["t"] == "columns":
            self.columns[told["run"]] = told["columns"]
        if told["t"] == "rows":
            columns = told["columns"]
            known = self.rows.setdefault(told["run"], {})
            for step in [step for step in known if step >= told["from"]]:
                del known[step]
            for i, step in enumerate(columns["step"]):
                known[step] = {name: values[i] for name, values in columns.items()}

    def ask(self, t: str, /, **fields: Any) -> dict[str, Any]:
        """A command or a question, and its answer."""
        id = next(self._ids)
        self.say(t, id=id, **fields)
        while True:
            answer = self.hear(t if t in ("cell", "sequence", "tokens") else "answer")
            if answer["id"] == id:
                return answer

    def runs(self) -> dict[str, Any]:
        self.say("runs")
        return self.hear("runs")

    def start(self, **settings: Any) -> str:
        """A small run with a seed of its own."""
        answer = self.ask("start", preset="birth.joint", seed=next(SEEDS), settings=SMALL | settings)
        assert answer["ok"], answer
        return answer["run"]

    def until(self, run: str, step: int, **view: Any) -> None:
        """Looks at a run until its rows reach a step."""
        self.say("view", run=run, hz=20.0, rows_from={run: len(self.rows.get(run, {}))}, **view)
        while len(self.rows.get(run, {})) <= step:
            self.hear("rows")

    def finish(self, run: str) -> None:
        self.say("view", run=run, hz=20.0, rows_from={run: len(self.rows.get(run, {}))})
        while not (self.state.get("run") == run and self.state["state"] == "finished"):
            self.hear("state")


def own_run(home: Path, code: str, **settings: Any) -> str:
    """A run of a file of one's own that has not begun; its record carries the code."""
    (spec,) = load_code("mine.py", code.encode()).specs("quick", [next(SEEDS)])
    spec = with_settings(spec, {"plan.batch": 8, "plan.steps": 3000} | settings)
    write_spec(spec, home / run_id(spec))
    return run_id(spec)


def answers(address: str) -> bool:
    """Whether somebody can connect to it."""
    try:
        with connect(address):
            return True
    except OSError:
        return False


def picture_of(message: bytes) -> tuple[dict[str, Any], np.ndarray]:
    """Header and values of a frame."""
    (length,) = struct.unpack("<I", message[:4])
    header = json.loads(message[4 : 4 + length])
    assert (4 + length) % 4 == 0
    raw = np.frombuffer(message[4 + length :], dtype={"u8": np.uint8, "f4": "<f4"}[header["dtype"]])
    values = raw.reshape(header["shape"]).astype(float)
    return header, header["lo"] + values * (header["hi"] - header["lo"]) / 255 if header["dtype"] == "u8" else values


@contextmanager
def served(
    home: Path, host: str = "127.0.0.1", model: WatchedModel | None = None, lessons: Sequence[Lesson] = ()
) -> Iterator[Served]:
    """A lab in a thread; at the end its trainer is asked to leave."""
    backend = Backend(home, model, lessons)
    address, sockets = listen(host, None)
    server = uvicorn.Server(config(backend, address))
    thread = threading.Thread(target=server.run, args=[sockets], daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Served(backend, address, server)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        leave(backend)


def leave(backend: Backend) -> None:
    with suppress(OSError):
        while backend.mailbox.has_trainer():
            backend.mailbox.write("orders", {"id": None, "op": "quit"})
            time.sleep(0.1)

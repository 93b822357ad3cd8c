"""The server of the lab: one page, one WebSocket a tab. It binds to this machine, and every request shows the token."""

import asyncio
import base64
import hashlib
import json
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from engram.errors import EngramError, explain_crash
from engram.lab.hub import Hub, Made
from engram.lab.presets import listed
from engram.lab.protocol import LARGEST_MESSAGE, VERSION, Cell, Control, Intervene, Runs, Said, Start, View, parse
from engram.lab.protocol import Sequence as SequenceOf
from engram.records.follow import NoWeights

PAGE = files("engram") / "lab/static/lab.html"
COMMANDS_A_SECOND = 20
MOST_AT_ONCE = 64  # questions of a page that have no answer yet
SECONDS_FOR_AN_ANSWER = 30.0
SECONDS_BETWEEN_WATCHES = 4.0
FORBIDDEN = 4403


class Lab:
    """The application, for one home and one token."""

    def __init__(self, home: Path):
        self.hub = Hub(home)
        self.token = self.hub.desk.token()
        self.waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next = int(time.time() * 1000)  # ids of orders are new after a restart, too
        self._watched = 0.0
        self._answers = 0
        self._commands: list[float] = []
        self._worker = ThreadPoolExecutor(1)  # one thread draws: caches need no locks, and training keeps its cores
        self.presets = ThreadPoolExecutor(1).submit(listed)
        routes = [Route("/", self.page), WebSocketRoute("/ws", self.socket)]
        self.app = Starlette(routes=routes)

    def allowed(self, connection: HTTPConnection) -> bool:
        """The token must be right; a page of another origin is refused even if it has it."""
        given, origin = connection.query_params.get("token", ""), connection.headers.get("origin")
        own = origin is None or origin.partition("://")[2] == connection.headers.get("host")
        return own and secrets.compare_digest(given.encode(), self.token.encode())

    async def page(self, request: Request) -> Response:
        if not self.allowed(request):
            return PlainTextResponse("The lab needs the token of its URL: copy the whole line that was printed.", 403)
        html = PAGE.read_bytes()
        return Response(html, media_type="text/html", headers=_headers(html))

    async def socket(self, socket: WebSocket) -> None:
        if not self.allowed(socket):
            await socket.close(FORBIDDEN)
            return
        await socket.accept()
        await Client(self, socket).serve()

    async def thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work, *arguments)

    async def order(self, order: dict[str, Any]) -> dict[str, Any]:
        """The trainer's answer to an order; without a trainer at work one is called."""
        await asyncio.to_thread(self.hub.desk.staff)  # a new one takes seconds to come: pages go on meanwhile
        id = self._next = self._next + 1
        answer = self.waiting[id] = asyncio.get_running_loop().create_future()
        self.hub.desk.write("orders", order | {"id": id})
        try:
            return await asyncio.wait_for(self._answered(answer), SECONDS_FOR_AN_ANSWER)
        except TimeoutError:
            return {"ok": False, "error": "the trainer did not answer in time; it may be in a very long step"}
        finally:
            del self.waiting[id]

    async def _answered(self, answer: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
        looks = count()
        while not answer.done():
            if next(looks) % 50 == 49 and not self.hub.desk.staffed():
                raise EngramError("the trainer has left; ask again, and another one comes")
            lines, self._answers = self.hub.desk.read("answers", self._answers)
            for line in lines:
                future = self.waiting.get(line.pop("id", None))
                if future is not None and not future.done():
                    future.set_result(line)
            await asyncio.sleep(0.02)
        return answer.result()

    def not_too_many(self) -> None:
        now = time.monotonic()
        self._commands = [*(then for then in self._commands if now - then < 1), now]
        if len(self._commands) > COMMANDS_A_SECOND:
            raise EngramError(f"too many commands; at most {COMMANDS_A_SECOND} a second are taken")

    def watch(self, hz: float) -> None:
        """Asks the trainer, if there is one, to show its newest weights for a while."""
        if time.monotonic() - self._watched > SECONDS_BETWEEN_WATCHES and self.hub.desk.staffed():
            self.hub.desk.write("orders", {"id": None, "op": "watch", "hz": min(hz, 10.0)})
            self._watched = time.monotonic()


def _headers(html: bytes) -> dict[str, str]:
    """Only the script of the page itself may run, and it may speak to this server only."""
    scripts = re.findall(rb"<script[^>]*>(.*?)</script>", html, re.S)
    sums = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in scripts)
    policy = {
        "default-src": "'none'",
        "script-src": sums or "'none'",
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }


class Client:
    """One tab: what it looks at, and what it has been sent."""

    def __init__(self, lab: Lab, socket: WebSocket):
        self.lab, self.ws = lab, socket
        self.view: View | None = None
        self.changed = asyncio.Event()
        self._sent: dict[Any, Any] = {}  # the last of each kind
        self._rows: dict[str, int] = {}  # rows sent, by run
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        await self.send({"t": "hello", "v": VERSION})
        pump = asyncio.create_task(self.pump())
        try:
            while True:
                message = await self.ws.receive()
                if message["type"] == "websocket.disconnect":
                    return
                await self.hear(message.get("text") or message.get("bytes") or "")
        except WebSocketDisconnect:
            pass  # the page has left; its run goes on
        finally:
            for task in (pump, *self._tasks):
                task.cancel()

    async def hear(self, text: str | bytes) -> None:
        try:
            said = parse(text)
        except EngramError as error:
            await self.send({"t": "error", "message": str(error)})
            return
        if isinstance(said, View):
            self.look_at(said)
        elif len(self._tasks) >= MOST_AT_ONCE:
            await self.send(_refusal(getattr(said, "id", None), "too many questions at once"))
        else:
            self.later(self.answer(said))

    def later(self, work: Awaitable[None]) -> None:
        """Answers do not hold up what the page says next."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def look_at(self, view: View) -> None:
        if self.view is None or self.view.run != view.run:
            self._sent.clear()
        self._sent.pop("reading", None)  # a page takes in only what it asks for at that moment
        self._rows = {run: min(have, self._rows.get(run, have)) for run, have in view.rows_from.items()} | {
            run: sent for run, sent in self._rows.items() if run not in view.rows_from
        }
        self.view = view
        self.changed.set()

    async def send(self, message: dict[str, Any]) -> None:
        await self.ws.send_text(json.dumps(message, allow_nan=False))

    async def answer(self, asked: Said) -> None:
        """Every question and command gets an answer, whatever happens."""
        try:
            found = await self.found(asked)
        except Exception as error:
            found = _refusal(getattr(asked, "id", None), explain_crash(error))
        await self.send(found)

    async def found(self, asked: Said) -> dict[str, Any]:
        hub = self.lab.hub
        match asked:
            case Cell():
                return await self.lab.thread(hub.cell, asked)
            case SequenceOf():
                return await self.lab.thread(hub.sequence, asked)
            case Runs():
                return await self.runs()
            case Control():
                return await self.ordered(asked.id, {"op": asked.op, "value": asked.value})
            case Start() | Intervene():
                return await self.ordered(asked.id, await self.lab.thread(hub.order_of, asked))
        raise EngramError("this is no question")

    async def runs(self) -> dict[str, Any]:
        found = await self.lab.thread(self.lab.hub.runs)
        if not self.lab.presets.done():
            await self.send(found)  # experiments take a moment to import
        return found | {"presets": await asyncio.wrap_future(self.lab.presets)}

    async def ordered(self, id: int, order: dict[str, Any]) -> dict[str, Any]:
        self.lab.not_too_many()
        told = await self.lab.order(order)
        self.lab.hub.look_again()
        self.changed.set()  # what it did is seen at once
        return {"t": "answer", "id": id} | told if told["ok"] else _refusal(id, told["error"])

    async def pump(self) -> None:
        """Sends what is new of what the page looks at: as often as it asked for, at once when it looks elsewhere."""
        while True:
            wait = _to_next_tick(self.view.hz) if self.view else None
            with suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), wait)
            self.changed.clear()
            if self.view is not None:
                await self.refresh(self.view)

    async def refresh(self, view: View) -> None:
        """Rows, state and pictures; a bug or a broken run is told, and does not end the connection."""
        news = await self._tried(self.news, view) or ()
        if view.step is None:
            self.lab.watch(view.hz)
        reading = await self._tried(self.reading, view) if view.reads else None
        made = [await self._tried(self.picture, view, name) for name in view.pictures if self.view is view]
        for message in filter(None, (*news, reading)):
            await self.send(message)
        for picture in filter(None, made):
            await self.ws.send_bytes(picture)
        if news or reading or any(made):
            await self.send({"t": "tick"})  # a page draws once for all of it

    async def _tried(self, work: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return await self.lab.thread(work, *arguments)
        except NoWeights:
            return None
        except Exception as error:
            told = {"t": "error", "message": explain_crash(error)}
            if self._sent.get(("error", *arguments[1:])) != told:
                self._sent["error", *arguments[1:]] = told
                await self.send(told)
            return None

    def news(self, view: View) -> list[dict[str, Any]]:
        """What is known as sent is booked at the end: of a broken run nothing is lost."""
        hub, found, sent = self.lab.hub, list[dict[str, Any]](), dict[Any, Any]()
        for name in dict.fromkeys((view.run, *view.also)):
            run = hub.seen(name)
            found += [] if ("about", name) in self._sent else [run.about]
            rows = run.rows(min(self._rows.get(name, 0), len(run.follower.rows)))
            found += [rows] if rows else []
            sent["about", name] = True
            self._rows[name] = len(run.follower.rows)
        now = hub.run(view.run).now(hub.trainer())
        found += [now] if self._sent.get("state") != now else []
        self._sent |= sent | {"state": now}
        return found

    def picture(self, view: View, name: str) -> bytes | None:
        step = self.lab.hub.run(view.run).follower.stored_step(view.step)
        return self._unsent(("picture", name), *self.lab.hub.frame(view, name, step))

    def reading(self, view: View) -> dict[str, Any] | None:
        step = self.lab.hub.run(view.run).follower.stored_step(view.step)
        return self._unsent("reading", *self.lab.hub.reading(view, step))

    def _unsent(self, kind: Any, key: Any, content: Made) -> Made | None:
        """What was made, unless it is what was sent last of this kind."""
        if self._sent.get(kind) == key:
            return None
        self._sent[kind] = key
        return content


def _to_next_tick(hz: float) -> float:
    """Seconds; pages that ask for the same rate are served together, from one look at the run."""
    return 1 / hz - time.monotonic() % (1 / hz)


def _refusal(id: int | None, error: str) -> dict[str, Any]:
    return {"t": "answer", "id": id, "ok": False, "error": error, "field": _field(error)}


def _field(error: str) -> str | None:
    """The field that an error names first: task.K: …"""
    found = re.match(r"(?:events\.\d+[:.] ?)?([A-Za-z_][\w.]*): ", error)
    return found[1] if found else None


def free_port(host: str, wanted: int | None) -> int:
    """The port that was asked for, or one that nobody uses."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that has just left may come back
        try:
            probe.bind((host, wanted or 0))
        except OSError as error:
            raise EngramError(f"--port {wanted}: cannot be used here ({error.strerror}); leave it out") from None
        return probe.getsockname()[1]


def config(lab: Lab, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        lab.app,
        host=host,
        port=port,
        ws="websockets-sansio",
        ws_max_size=LARGEST_MESSAGE,
        ws_per_message_deflate=False,
        log_level="warning",
        access_log=False,  # URLs hold the token
        timeout_graceful_shutdown=1,
    )


def serve(lab: Lab, host: str, port: int) -> None:
    """Until Ctrl-C. One thread draws: training keeps its cores."""
    torch.set_num_threads(1)
    uvicorn.Server(config(lab, host, port)).run()

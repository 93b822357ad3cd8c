"""One tab of a browser: what it looks at, what it asks, and what it has been sent."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from threading import Event
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from engram.errors import EngramError, explain_crash
from engram.lab.backend import Backend, fields_said, order_of
from engram.lab.fact_messages import AddFacts, FactEdits, FactTable, FactWrite
from engram.lab.lesson_messages import AskedOfLessons
from engram.lab.model_messages import AskedOfModel, Compose, Copying, Edit, Heads, Truncate, Undo
from engram.lab.protocol import (
    VERSION,
    AskedOfPanels,
    AskedOfRun,
    Control,
    Fields,
    Intervene,
    Runs,
    Said,
    Start,
    Upload,
    View,
    Weights,
    parse,
)
from engram.lab.sent import Sent
from engram.lab.theory_messages import Predict
from engram.lab.uploads import written
from engram.records.follow import NoWeights

SECONDS_BETWEEN_BEATS = 3.0
MOST_AT_ONCE = 64  # questions of a page that have no answer yet
Message = dict[str, Any]


class Tab:
    """Listens (`serve`), answers questions, and tells what is new of the view (`pump`)."""

    def __init__(self, backend: Backend, socket: WebSocket):
        self.backend, self.ws = backend, socket
        self.view: View | None = None
        self.changed = asyncio.Event()
        self._sent = Sent()
        self._rows: dict[str, int] = {}  # rows sent, by run
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone = Event()  # set when nobody waits for a step that is computed

    async def serve(self) -> None:
        await self.send({"t": "hello", "v": VERSION})
        going = [asyncio.create_task(self.pump()), asyncio.create_task(self.beat())]
        try:
            while True:
                message = await self.ws.receive()
                if message["type"] == "websocket.disconnect":
                    return
                await self.hear(message.get("text") or message.get("bytes") or "")
        except WebSocketDisconnect:
            pass  # the page has left; its run goes on
        finally:
            self._gone.set()
            for task in (*going, *self._tasks):
                task.cancel()

    async def beat(self) -> None:
        """A page that hears nothing for a while believes that the server is gone."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_BEATS)
            await self.send({"t": "beat"})

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
        """A page takes in only pictures of the view it has sent last, so those sent before are forgotten."""
        same = self.view is not None and self.view.run == view.run
        if self.view is not None and (view.run, view.step) != (self.view.run, self.view.step):
            self._gone.set()
        before = list(self._sent.items())  # a thread may be writing there
        self._sent = Sent({kind: what for kind, what in before if same and kind[0] in ("about", "columns", "state")})
        self._rows = {run: min(have, self._rows.get(run, have)) for run, have in view.rows_from.items()} | {
            run: sent for run, sent in self._rows.items() if run not in view.rows_from
        }
        self.view = view
        self.changed.set()

    async def send(self, message: Message | bytes) -> None:
        if isinstance(message, bytes):
            await self.ws.send_bytes(message)
        else:
            await self.ws.send_text(json.dumps(message, allow_nan=False))

    async def answer(self, asked: Said) -> None:
        """Every question and command gets an answer, whatever happens."""
        try:
            found = await self.found(asked)
        except Exception as error:
            found = _refusal(getattr(asked, "id", None), explain_crash(error))
        await self.send(found)

    async def found(self, asked: Said) -> Message | bytes:
        if isinstance(asked, AskedOfPanels):
            return await self.of_panels(asked)
        if isinstance(asked, AskedOfRun):
            return await self.backend.inquire(asked)
        if isinstance(asked, AskedOfLessons | Fields | Upload):
            return await self.of_forms(asked)
        match asked:
            case Runs():
                return await self.runs()
            case Control():
                self.backend.not_too_many()
                return await self.ordered(asked.id, {"op": asked.op, "value": asked.value})
            case Start() | Intervene():
                self.backend.not_too_many()
                return await self.ordered(asked.id, await self.backend.thread(order_of, asked, self.backend.reader))
            case Weights():
                return await self.weights(asked)
            case Heads() | Compose() | Copying() | Truncate() | Edit() | Undo():
                return await self.of_model(asked)
        known = self.backend.reader_of(asked.run)  # type: ignore[union-attr]  # cell, array, sequence, tokens
        return await self.backend.thread_of(asked.run, getattr(known, asked.t), asked)  # type: ignore[union-attr]

    async def of_panels(self, asked: AskedOfPanels) -> Message:
        """What takes long is computed in the thread of probes; what hangs on a slider beside the pictures."""
        backend = self.backend
        if isinstance(asked, FactWrite | AddFacts):
            backend.not_too_many()
            return await self.ordered(asked.id, await backend.model_thread(backend.facts.order, asked))
        if isinstance(asked, Predict):
            return await backend.thread(backend.theory.predict, asked)
        reader = backend.facts if isinstance(asked, FactTable | FactEdits) else backend.theory
        return await backend.model_thread(reader.answer, asked)

    async def of_forms(self, asked: AskedOfLessons | Fields | Upload) -> Message:
        """The record of an upload begins here, with the data in it; the trainer goes on with it."""
        if not isinstance(asked, Upload):
            answer = fields_said if isinstance(asked, Fields) else self.backend.lessons.answer
            return await asyncio.to_thread(answer, asked)  # type: ignore[arg-type]
        self.backend.not_too_many()
        run, guessed = await asyncio.to_thread(written, asked, self.backend.reader.home)
        return await self.ordered(asked.id, {"op": "go", "run": run}) | ({"note": guessed} if guessed else {})

    async def of_model(self, asked: AskedOfModel) -> Message:
        found = await self.backend.answer_of_model(asked)
        self.changed.set()  # other panels show the edited model
        return found

    async def weights(self, asked: Weights) -> Message:
        """Of one step at a time: who asks for another no longer waits for the one before."""
        self._gone.set()
        self._gone = gone = Event()
        await self.backend.weights(asked.run, asked.step, gone)
        self.changed.set()
        return {"t": "answer", "id": asked.id, "ok": True, "run": asked.run, "step": asked.step}

    async def runs(self) -> Message:
        found = await self.backend.thread(self.backend.reader.runs)
        if self.backend.models is not None:
            found["runs"].insert(0, self.backend.models.model.listed())
        if not self.backend.presets.done():
            await self.send(found)  # experiments take a moment to import
        return found | {"presets": await asyncio.wrap_future(self.backend.presets)}

    async def ordered(self, id: int, order: Message) -> Message:
        told = await self.backend.order(order)
        self.changed.set()  # what it did is seen at once
        return {"t": "answer", "id": id} | told if told["ok"] else _refusal(id, told["error"])

    async def pump(self) -> None:
        """Sends what is new of what the page looks at: as often as it asked for, at once when it looks elsewhere."""
        while True:
            tick = _next_tick(self.view.hz) if self.view else None
            try:
                await asyncio.wait_for(self.changed.wait(), tick and tick - time.monotonic())
                tick = None  # this page alone
            except TimeoutError:
                pass
            self.changed.clear()
            if self.view is not None:
                await self.refresh(self.view, tick)

    async def refresh(self, view: View, tick: float | None) -> None:
        """Rows, state, pictures and predictions of one moment; a page draws once for all that a tick ends."""
        sent = self._sent
        messages = await self._tried(sent, "news", self.news, view, tick) or []
        if view.step is None:
            self.backend.watch(view.hz)
        if self.backend.reader_of(view.run) is self.backend.models:
            await self.refresh_model(sent, view, messages)
            return
        pictures = list[bytes]()
        step = await self._tried(sent, "step", self.step, view)
        if step is not None:
            made = [await self._tried(sent, n, self.picture, view, step, n) for n in view.pictures if self.view is view]
            pictures += filter(None, made)
            reading = await self._tried(sent, "reading", self.reading, view, step) if view.reads else None
            messages += [reading] if reading else []
        await self._told(view, [*messages, *pictures])

    async def refresh_model(self, sent: Sent, view: View, messages: list[str]) -> None:
        """Pictures of a large model take seconds: each is sent when it is there."""
        await self._told(view, messages)
        known = self.backend.reader_of(view.run)
        step = known.run(view.run).stored_step(known.shown(view).step)
        work = [(name, self.picture, name) for name in view.pictures] + [("reading", self.reading)] * view.reads
        for kind, make, *of in work:
            if self.view is view:
                found = await self._tried(sent, kind, make, view, step, *of, thread=self.backend.model_thread)
                await self._told(view, [found] if found else [])

    async def _told(self, view: View, messages: Sequence[str | bytes]) -> None:
        for message in messages:
            await (self.ws.send_text(message) if isinstance(message, str) else self.ws.send_bytes(message))
        if messages:
            await self.send({"t": "tick", "serial": view.serial})

    async def _tried(self, sent: Sent, kind: str, work: Callable[..., Any], *arguments: Any, thread: Any = None) -> Any:
        """A bug or a broken run is told once, and does not end the connection."""
        try:
            return await (thread or self.backend.thread)(work, sent, *arguments)
        except NoWeights:
            return None
        except Exception as error:
            told = {"t": "error", "message": explain_crash(error)}
            if sent.unless(("error", kind), told, told):
                await self.send(told)
            return None

    def news(self, sent: Sent, view: View, tick: float | None) -> list[str]:
        """About the runs, their rows, and the state of the one that is looked at."""
        found = list[Message | None]()
        run = self.backend.reader_of(view.run).seen(view.run, tick)
        other = view.minus_run or view.run
        for name in dict.fromkeys((view.run, other, *view.also)):
            found += self._news_of(sent, name, tick)
        now = run.now(self.backend.trainer(tick)) | {"waiting": list(self.backend.waiting_for_model)}
        found += [self._state_of(sent, other, tick) if other != view.run else None]
        found += [sent.unless(("state", view.run), now, now)]
        return [json.dumps(message, allow_nan=False) for message in found if message]

    def _state_of(self, sent: Sent, name: str, tick: float | None) -> Message | None:
        """Of a run that is compared with: which of its weights are stored."""
        try:
            now = self.backend.reader_of(name).seen(name, tick).now(self.backend.trainer(tick))
        except EngramError:
            return None  # its news say why
        return sent.unless(("state", name), now, now)

    def _news_of(self, sent: Sent, name: str, tick: float | None) -> list[Message | None]:
        """What cannot be read is told once; the rest is shown."""
        try:
            run = self.backend.reader_of(name).seen(name, tick)
            about = sent.unless(("about", name), (run.untrusted,), run.about)
        except EngramError as error:
            told = {"t": "error", "message": str(error)}
            return [sent.unless(("error", name), told, told)]
        rows, columns = run.rows_from(min(self._rows.get(name, 0), len(run.table))), run.columns()
        self._rows[name] = len(run.table)
        complaint = run.wrong or run.untrusted
        wrong = {"t": "error", "message": complaint} if complaint else None
        changed = [sent.unless((kind, name), now, now) for kind, now in (("columns", columns), ("error", wrong))]
        return [about, rows, *changed]

    def step(self, sent: Sent, view: View) -> int:
        """The step whose weights are shown."""
        view = self.backend.reader.shown(view)
        return self.backend.reader.run(view.run).stored_step(view.step)

    def picture(self, sent: Sent, view: View, step: int, name: str) -> bytes | None:
        known = self.backend.reader_of(view.run)
        return sent.unless(("picture", name), *known.frame(known.shown(view), name, step))

    def reading(self, sent: Sent, view: View, step: int) -> str | None:
        known = self.backend.reader_of(view.run)
        found = sent.unless(("reading", ""), *known.reading(known.shown(view), step))
        return None if found is None else json.dumps(found, allow_nan=False)


def _next_tick(hz: float) -> float:
    """Pages that ask for the same rate are served together, from one look at the run."""
    return (time.monotonic() * hz // 1 + 1) / hz


def _refusal(id: int | None, error: str) -> dict[str, Any]:
    """With the field that an error names first: task.K: …"""
    found = re.match(r"(?:events\.\d+[:.] ?)?([A-Za-z_][\w.]*): ", error)
    return {"t": "answer", "id": id, "ok": False, "error": error, "field": found[1] if found else None}

"""What the server does for all pages together: it draws, and carries orders to the trainer and answers back."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

from engram.errors import EngramError
from engram.lab.all_fields import described
from engram.lab.any_step import AnyStep
from engram.lab.fact_bench import FactReader
from engram.lab.inquiries import Inquiries
from engram.lab.lesson import Lesson
from engram.lab.lessons import Shelf
from engram.lab.mailbox import LEFT, NO_TRAINER, Mailbox, Order
from engram.lab.model_reader import ModelReader, answered
from engram.lab.presets import chosen, listed, preset_called, presets
from engram.lab.probed_run import ProbedRun
from engram.lab.protocol import AskedOfModel, AskedOfRun, Fields, Intervene, Start
from engram.lab.run_reader import RunReader
from engram.lab.theory import TheoryReader
from engram.lab.watched_model import WatchedModel
from engram.lab.watched_run import POLL, Cache
from engram.specs import Spec
from engram.specs.encode import message_of
from engram.specs.events import kind_called

COMMANDS_A_SECOND = 20
ASKED = {
    "heads": "scores of all heads",
    "compose": "composition",
    "copying": "copying",
    "truncate": "a truncation",
    "edit": "an edit",
    "undo": "an undo",
}
SECONDS_FOR_AN_ANSWER = 30.0
SECONDS_TO_LEAVE = 2.0
TRAINERS = 3  # that are asked to start a run, if each of them is about to leave
SECONDS_BETWEEN_WATCHES = 4.0
MOST_PROBED = 8  # runs whose probes are kept


class Backend:
    """One home and its token, and perhaps a model of others, or lessons of the user's own."""

    def __init__(self, home: Path, model: WatchedModel | None = None, lessons: Sequence[Lesson] = ()):
        self.mailbox = Mailbox(home)
        self.any_step = AnyStep(lambda: self.mailbox.status()["state"] == "running")
        self.reader = RunReader(home, self.any_step.of)
        self._prober = ThreadPoolExecutor(1, thread_name_prefix="prober")
        self.waiting_for_model: list[str] = []  # questions that the prober has not begun, in their order
        self.models = None if model is None else ModelReader(model, self._prober)
        self._probed, self._probed_reader = Cache(), RunReader(home)  # of the prober alone
        self.facts = FactReader(home, self.any_step.of)  # of the prober alone
        self.theory = TheoryReader(home, self.any_step.of)
        self._inquirer, self._inquiries = ThreadPoolExecutor(1), Inquiries(home, self.any_step.of)
        self.lessons = Shelf(lessons)
        self._token = self.mailbox.token()
        self.waiting: dict[int, asyncio.Future[Order]] = {}
        self._next = int(time.time() * 1000)  # ids of orders are new after a restart, too
        self._status, self._asked = NO_TRAINER, -POLL
        self._watched = 0.0
        self._answers = 0
        self._commands: deque[float] = deque(maxlen=COMMANDS_A_SECOND)  # when the last ones were taken
        self._worker = ThreadPoolExecutor(1)  # one thread draws: caches need no locks, and training keeps its cores
        self.presets = ThreadPoolExecutor(1).submit(listed)

    @property
    def token(self) -> str:
        """As it is now: `engram lab --new-token` changes it while this server runs."""
        with suppress(OSError, ValueError):  # a disk or a process at its limits shuts nobody out
            self._token = self.mailbox.token_now()
        return self._token

    async def thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work, *arguments)

    async def model_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """What may take seconds: pages that look at runs do not wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._prober, work, *arguments)

    async def inquire(self, question: AskedOfRun) -> dict[str, Any]:
        """The answer about a run; questions about models do not hold it up."""
        return await asyncio.get_running_loop().run_in_executor(self._inquirer, self._inquiries.answer, question)

    async def answer_of_model(self, question: AskedOfModel) -> dict[str, Any]:
        """In its turn; meanwhile pages are told what waits."""
        self.waiting_for_model.append(name := ASKED[question.t])
        return await self.model_thread(self._begin, name, question)

    def _begin(self, name: str, question: AskedOfModel) -> dict[str, Any]:
        self.waiting_for_model.remove(name)
        return self.asked_of_model(question)

    def asked_of_model(self, question: AskedOfModel) -> dict[str, Any]:
        """The answer about the model, or about a run."""
        if self.models is not None and question.run == self.models.model.id:
            return self.models.asked(question)
        folder = self._probed_reader.run(question.run).folder  # refuses what is no run of this home
        probed = self._probed.get_or(
            question.run, lambda: ProbedRun(folder, self.any_step.of(question.run)), most=MOST_PROBED
        )
        return answered(probed, question)

    async def weights(self, name: str, step: int, gone: Event) -> None:
        """Until those of a step are at hand: pages, and the runs that they look at, do not wait for it."""
        if self.reader_of(name) is self.models:
            raise EngramError("step: every revision of a model is at hand; none lies between them")
        run = await self.thread(self.reader.seen, name)
        if run.stored_step(None) != step and run.stored_step(step) != step:
            await asyncio.get_running_loop().run_in_executor(
                self.any_step.worker, self.any_step.compute, run, step, gone
            )

    def reader_of(self, name: str) -> RunReader:
        """Who knows this run, or the model."""
        return self.models if self.models is not None and name == self.models.model.id else self.reader

    async def thread_of(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
        known = self.model_thread if self.reader_of(name) is self.models else self.thread
        return await known(work, *arguments)

    def trainer(self, since: float | None = None) -> Order:
        """What the trainer does, asked unless it was since a moment; without one, at most every POLL seconds."""
        if self._asked < (time.monotonic() - POLL if since is None else since):
            self._status, self._asked = self.mailbox.status(), time.monotonic()
        return self._status

    async def order(self, order: Order) -> Order:
        """The trainer's answer to an order; without a trainer at work one is called.

        One that was about to leave has not done it: to start or go on with a run, the next one is asked.
        """
        told = await self._order(order)
        for _ in range(TRAINERS - 1):
            if not told.get("left") or order["op"] not in ("start", "go"):
                break
            await asyncio.to_thread(self._wait_until_it_left)
            told = await self._order(order)
        return {name: value for name, value in told.items() if name != "left"}

    def _wait_until_it_left(self) -> None:
        """Or until another one may have come."""
        end = time.monotonic() + SECONDS_TO_LEAVE
        while self.mailbox.has_trainer() and time.monotonic() < end:
            time.sleep(0.02)

    async def _order(self, order: Order) -> Order:
        await asyncio.to_thread(self.mailbox.start_trainer)  # a new one takes seconds to come: pages go on meanwhile
        id = self._next = self._next + 1
        answer = self.waiting[id] = asyncio.get_running_loop().create_future()
        self._hear()  # from here on the answer is new
        self.mailbox.write("orders", order | {"id": id})
        try:
            return await asyncio.wait_for(self._answered(id, answer), SECONDS_FOR_AN_ANSWER)
        except TimeoutError:
            return {"ok": False, "error": "the trainer did not answer in time; it may be in a very long step"}
        finally:
            del self.waiting[id]
            self._asked = -POLL  # what the trainer did before is old

    async def _answered(self, id: int, answer: asyncio.Future[Order]) -> Order:
        looks = count()
        while not answer.done():
            left = next(looks) % 50 == 49 and not self.mailbox.may_be_answered(id)  # first: it may have answered before
            self._hear()
            if left and not answer.done():
                return LEFT
            await asyncio.sleep(0.02)
        return answer.result()

    def _hear(self) -> None:
        lines, self._answers = self.mailbox.read("answers", self._answers)
        for line in lines:
            future = self.waiting.get(line.pop("id", None))
            if future is not None and not future.done():
                future.set_result(line)

    def not_too_many(self) -> None:
        """Commands that are refused do not count: a flood keeps nobody else from pausing for longer than it takes."""
        now = time.monotonic()
        if len(self._commands) == COMMANDS_A_SECOND and now - self._commands[0] < 1:
            raise EngramError(f"too many commands; at most {COMMANDS_A_SECOND} a second are taken")
        self._commands.append(now)

    def watch(self, hz: float) -> None:
        """Asks the trainer, if there is one, to show its newest weights for a while."""
        if time.monotonic() - self._watched > SECONDS_BETWEEN_WATCHES and self.mailbox.has_trainer():
            self._watched = time.monotonic()
            with suppress(EngramError):  # a full disk: the trainer tells
                self.mailbox.write("orders", {"id": None, "op": "watch", "hz": min(hz, 10.0)})


def order_of(asked: Start | Intervene, reader: RunReader) -> Order:
    """What the trainer is told. A Spec that cannot be is refused here, an event by the trainer: it knows when."""
    if isinstance(asked, Intervene):
        kind_called(asked.kind, reader.run(asked.run).spec)
        return {"op": "intervene"} | asked.model_dump(include={"run", "at", "kind", "fields"})
    if asked.run is not None:
        return {"op": "go", "run": reader.run(asked.run).id}
    return start_order(asked.preset or "birth.joint", asked.seed, asked.settings)


def fields_said(asked: Fields) -> dict[str, Any]:
    spec = preset_called(asked.preset).spec
    return {"t": "fields", "id": asked.id, "preset": asked.preset, "fields": described(spec)}


def start_order(name: str, seed: int, settings: Mapping[str, Any]) -> Order:
    """To start a preset with some fields set otherwise, and what to call it in lists."""
    spec, preset = chosen(name, seed, settings), presets()[name]
    label = preset.words if preset.experiment.name != name else ""
    purpose = {"experiment": preset.experiment.name, "scale": "quick", "label": label, "settings": settings}
    return spec_order(spec) | {"purpose": purpose}


def spec_order(spec: Spec) -> Order:
    return {"op": "start"} | message_of(spec)

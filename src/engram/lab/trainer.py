"""The trainer: a process that trains one run at a time and obeys orders between steps. It waits for nobody.

python -m engram.lab.trainer HOME
"""

import os
import re
import signal
import sys
import time
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any

import torch
from filelock import Timeout

from engram.engines.local import cores
from engram.engines.pool import threads_for
from engram.errors import EngramError, Interrupted, explain_crash
from engram.lab.mailbox import LEFT, Mailbox, Order
from engram.lab.sources import weights_of
from engram.learning import Moment
from engram.records import Record
from engram.records.about import Purpose, change, read
from engram.records.fork import fork, steered
from engram.records.writer import Writer, note, removed, write_spec
from engram.runner.execute import execute
from engram.signals import ENDING
from engram.specs import Train
from engram.specs.encode import build, decode, of_message
from engram.specs.events import Event, kind_called
from engram.specs.more_facts import AddFacts as _  # noqa: F401 (an intervention is known once its class is)
from engram.specs.rewrite import Rewrite as _Rewrite  # noqa: F401
from engram.specs.spec import run_id

LOOK = 0.05  # seconds between looks at the mailbox while there is nothing to train
TELL = 0.2  # seconds between words about the present step
WATCHED_FOR = 10.0  # seconds; whoever watches asks again before that
SHARE = 0.05  # of its time that it may spend on showing weights
AT_ONCE = ("watch", "limit", "pause", "resume", "step")  # orders that need not interrupt a step


def main() -> int:
    """Works until the server is gone and nothing is left to train."""
    mailbox = Mailbox(Path(sys.argv[1]))
    try:
        mailbox.lock.acquire(timeout=2, poll_interval=0.01)
    except Timeout:
        return 0  # another one was faster
    trainer = Trainer(mailbox, os.getppid())
    for number in ENDING:
        signal.signal(number, trainer.hear_signal)
    mailbox.clear()
    trainer.work()
    mailbox.lock.release()
    return trainer.explain_signal()


class Trainer:
    def __init__(self, mailbox: Mailbox, server: int):
        self.mailbox, self.home, self.server = mailbox, mailbox.home, server
        self.spec: Train | None = None  # what is being trained, or was
        self.paused = self.ended = self.quitting = False
        self.error: str | None = None
        self.rows = 0  # of the present run: the next step to be taken
        self.until: int | None = None  # a step before which to pause
        self.limit = 0.0  # steps a second; 0: as fast as it can
        self._orders: list[Order] = []
        self._signals: list[int] = []
        self._read = 0
        self._hz, self._watched, self._shown, self._told = 2.0, 0.0, 0.0, 0.0
        self._due = 0.0  # when the next step may be taken

    def hear_signal(self, number: int, frame: object) -> None:
        """It saves at the next step, as when it is asked to quit."""
        self._signals.append(number)
        self._orders.insert(0, {"id": None, "op": "quit"})

    def explain_signal(self) -> int:
        """The exit code; a signal that ended it is explained in its log."""
        if not self._signals:
            return 0
        kept = "stopped; nothing was being trained; begin again with: engram lab"
        if self.spec is not None and not self.ended and self.error is None:
            kept = str(Interrupted([run_id(self.spec)], self.rows))
        print(f"engram: {kept}", file=sys.stderr, flush=True)
        return 128 + self._signals[0]

    def work(self) -> None:
        self.tell()
        while not (self.quitting or (self.idle and os.getppid() != self.server)):
            self.look()
            while self._orders and not self.quitting:
                self.obey(self._orders.pop(0))
            if self.idle and not self.quitting:
                time.sleep(LOOK)
            elif not self.quitting:
                self.train()
        self.refuse_the_rest()

    def refuse_the_rest(self) -> None:
        """What came too late: obeyed now, it would be answered and then lost."""
        orders, self._read = self.mailbox.read("orders", self._read)
        for order in (*self._orders, *orders):
            with suppress(EngramError):
                self.mailbox.write("answers", {"id": order["id"]} | LEFT)

    @property
    def idle(self) -> bool:
        return self.spec is None or self.paused or self.ended or self.error is not None

    @property
    def state(self) -> str:
        if self.error is not None:
            return "failed"
        return "idle" if self.spec is None or self.ended else "paused" if self.paused else "running"

    def tell(self) -> None:
        """What it does, for the server to read; a full disk is told by what it keeps from being written."""
        run = None if self.spec is None else run_id(self.spec)
        now = {"run": run, "state": self.state, "step": max(0, self.rows - 1), "limit": self.limit, "error": self.error}
        with suppress(OSError):
            self.mailbox.set_status(now)
        self._told = time.monotonic()

    def look(self) -> None:
        """New orders; those that need not interrupt a step are obeyed at once."""
        orders, self._read = self.mailbox.read("orders", self._read)
        for order in orders:
            leaving = any(earlier["op"] == "quit" for earlier in self._orders)
            self._orders.append(order) if leaving or order["op"] not in AT_ONCE else self.obey(order)

    def obey(self, order: Order) -> None:
        """Every order gets an answer: where it took effect, or why it did not."""
        try:
            step = getattr(self, f"on_{order['op']}")(order)
            answer = {"ok": True, "run": run_id(self.spec) if self.spec else None, "step": step}
        except Exception as error:
            answer = {"ok": False, "error": re.sub(r"^events\.\d+(\.|: )", "", explain_crash(error))}
        if order["op"] == "watch":
            return
        if answer["ok"] and self.spec is not None:
            note(self.home / run_id(self.spec), answer["step"], order)
        self.tell()
        with suppress(EngramError):
            self.mailbox.write("answers", {"id": order["id"]} | answer)

    def train(self) -> None:
        assert self.spec is not None
        self.tell()
        folder = self.home / run_id(self.spec)
        try:
            if not (folder / "spec.json").exists():  # it was there when the run was taken
                raise removed(folder)
            torch.set_num_threads(threads_for(self.spec, self.home, cores(), cores()))
            execute(self.spec, self.home, on_row=self.see, stop=self.stop, on_moment=self.keep, on_stop=self.rest)
            self.ended = True
        except Interrupted:
            pass  # saved at a whole step; what interrupted it is an order, or a pause
        except Exception as error:
            self.error = explain_crash(error)
        self.tell()

    def see(self, row: dict[str, Any]) -> None:
        self.rows = row["step"] + 1
        if time.monotonic() - self._told > TELL:
            self.tell()

    def stop(self) -> bool:
        """Asked before every step."""
        self.look()
        if self.until is not None and self.rows >= self.until:
            self.paused, self.until = True, None
        while self.limit and time.monotonic() < self._due and not (self._orders or self.paused):
            time.sleep(min(LOOK, max(0.0, self._due - time.monotonic())))
            self.look()
        self._due = time.monotonic() + 1 / self.limit if self.limit else 0.0
        return bool(self._orders) or self.paused

    def keep(self, writer: Writer, moment: Moment) -> None:
        """Weights to scrub over, states to fork from; and, while somebody watches, the newest weights."""
        assert self.spec is not None
        if moment.step % ceil(self.spec.steps / 100) == 0:
            writer.snapshot(moment.step, moment.weights, durable=False)
        if moment.step % ceil(self.spec.steps / 20) == 0:
            writer.checkpoint(moment.step, moment.state)
        now = time.monotonic()
        if self._shown <= now < self._watched:
            writer.show(moment.step, moment.weights)
            self._shown = now + max(1 / self._hz, (time.monotonic() - now) / SHARE)

    def rest(self, writer: Writer, moment: Moment) -> None:
        """Where it stopped, the weights are shown: slider and pictures are then at the same step."""
        writer.show(moment.step, moment.weights)

    # Orders, by name: each returns the step at which it takes effect.

    def on_start(self, order: Order) -> int:
        spec = of_message(order)
        folder = self.home / run_id(spec)
        if not (folder / "spec.json").exists():  # whoever asked can look at it from now on
            write_spec(spec, folder)
        if "purpose" in order:
            change(folder, lambda about: about.with_purpose(Purpose.model_validate(order["purpose"])))
        return self.take(spec)

    def on_go(self, order: Order) -> int:
        return self.take(Record(self.home / order["run"]).train)

    def on_intervene(self, order: Order) -> int:
        """The run is forked at the event's step, and the fork goes on; paused if the run was."""
        record = Record(self.home / order["run"])
        if order["at"] is None and record.ended is not None:
            raise EngramError("at: the run has ended; say at which step")
        now = len(record.rows)
        step = now if order["at"] is None else order["at"]
        kind = kind_called(order["kind"], record.train)
        fields = kind.completed(decoded(order["fields"]), weights_of(self.home))
        event = build(kind, fields | {"step": step})
        assert isinstance(event, Event)
        _can_go_back(event, record.snapshot_steps)
        spec = steered(record.train, event, later=step >= now)
        paused = self.paused and self.spec is not None and run_id(self.spec) == record.id
        folder, purposes = fork(record, spec), read(record.folder).made_for
        change(folder, lambda about: about.model_copy(update={"made_for": about.made_for or purposes}))
        self.take(spec)
        self.paused = paused
        return step

    def take(self, spec: Train) -> int:
        """Nothing has changed if its record cannot be read."""
        rows = len(Record(self.home / run_id(spec)).rows)
        self.spec, self.paused, self.ended, self.error, self.until = spec, False, False, None, None
        self.rows = rows
        return rows

    def on_pause(self, order: Order) -> int:
        self.paused, self.until = True, None
        return self.present()

    def on_resume(self, order: Order) -> int:
        self.present()
        self.paused, self.error = False, None
        return self.rows

    def on_step(self, order: Order) -> int:
        step = self.on_resume(order)
        self.until = step + max(1, int(order["value"]))
        return step

    def present(self) -> int:
        if self.spec is None or self.ended:
            raise EngramError("nothing is being trained; start a run, or go on with one")
        return self.rows

    def on_limit(self, order: Order) -> int:
        self.limit, self._due = order["value"], 0.0
        return self.rows

    def on_watch(self, order: Order) -> int:
        now = time.monotonic()
        self._hz = max(order["hz"], self._hz if now < self._watched else 0.0)
        self._watched, self._shown = now + WATCHED_FOR, min(self._shown, now + 1 / self._hz)
        return self.rows

    def on_quit(self, order: Order) -> int:
        self.quitting = True
        return self.rows


def decoded(fields: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where events have tuples."""
    return {name: decode(value) if isinstance(value, list) else value for name, value in fields.items()}


def _can_go_back(event: Event, stored: list[int]) -> None:
    for field, step in event.earlier.items():
        if step not in stored:
            near = min(stored, key=lambda other: abs(other - step), default="none")
            raise EngramError(f"{field}: the weights of step {step} are not stored; the nearest that are: {near}")


if __name__ == "__main__":
    sys.exit(main())

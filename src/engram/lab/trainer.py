"""The trainer: a process that trains one run at a time and obeys orders between steps. It waits for nobody.

python -m engram.lab.trainer HOME
"""

import base64
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

from filelock import Timeout

from engram.lab.desk import Desk, Order

LOOK = 0.05  # seconds between looks at the desk while there is nothing to train
TELL = 0.2  # seconds between words about the present step
WATCHED_FOR = 10.0  # seconds; whoever watches asks again before that
SHARE = 0.05  # of its time that it may spend on showing weights


def main() -> int:
    """Works until the server is gone and nothing is left to train."""
    desk = Desk(Path(sys.argv[1]))
    try:
        desk.lock.acquire()
    except Timeout:
        return 0  # another one was faster
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: desk.write("orders", {"id": None, "op": "quit"}))
    Trainer(desk, os.getppid()).work()
    return 0


class Trainer:
    def __init__(self, desk: Desk, server: int):
        self.desk, self.home, self.server = desk, desk.home, server
        self.spec: Any = None  # what is being trained, or was
        self.paused = self.ended = self.quitting = False
        self.error: str | None = None
        self.step = 0
        self.until: int | None = None  # a step before which to pause
        self.limit = 0.0  # steps a second; 0: as fast as it can
        self._orders: list[Order] = []
        self._read = 0
        self._hz, self._watched, self._shown, self._told, self._began = 2.0, 0.0, 0.0, 0.0, 0.0

    def work(self) -> None:
        self.tell()
        while not (self.quitting or (self.idle and os.getppid() != self.server)):
            self.look()
            while self._orders:
                self.obey(self._orders.pop(0))
            if self.idle or self.quitting:
                time.sleep(LOOK)
            else:
                self.train()
        self.tell()

    @property
    def idle(self) -> bool:
        return self.spec is None or self.paused or self.ended or self.error is not None

    @property
    def state(self) -> str:
        if self.error is not None:
            return "failed"
        return "idle" if self.spec is None or self.ended else "paused" if self.paused else "running"

    def tell(self) -> None:
        """What it does, for the server to read."""
        from engram.records.spec import run_id

        run = None if self.spec is None else run_id(self.spec)
        self.desk.say({"run": run, "state": self.state, "step": self.step, "limit": self.limit, "error": self.error})
        self._told = time.monotonic()

    def look(self) -> None:
        """New orders; those that need no pause between steps are obeyed at once."""
        orders, self._read = self.desk.read("orders", self._read)
        for order in orders:
            self.obey(order) if order["op"] in ("watch", "limit") else self._orders.append(order)

    def obey(self, order: Order) -> None:
        """Every order gets an answer: where it took effect, or why it did not."""
        from engram.errors import EngramError

        try:
            ORDERS[order["op"]](self, order)
            answer = {"ok": True} | self.place()
        except EngramError as error:
            answer = {"ok": False, "error": re.sub(r"^events\.\d+(\.|: )", "", str(error))}
        if order["op"] != "watch":
            self.note(order, answer)
            self.desk.write("answers", {"id": order["id"]} | answer)
            self.tell()

    def place(self) -> Order:
        from engram.records.spec import run_id

        return {} if self.spec is None else {"run": run_id(self.spec), "step": self.step}

    def note(self, order: Order, answer: Order) -> None:
        """Every accepted command goes to the run's events."""
        folder = self.home / str(answer.get("run"))
        if answer["ok"] and (folder / "spec.json").exists():
            about = {"step": self.step} | {key: order[key] for key in ("op", "kind", "fields", "value") if key in order}
            with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(about) + "\n")

    def train(self) -> None:
        import torch

        from engram.engines.local import cores, threads_for
        from engram.errors import EngramError, Interrupted, explain_crash
        from engram.execute import execute

        torch.set_num_threads(threads_for(self.spec, self.home, cores()))
        self._began = time.monotonic() - (self.step / self.limit if self.limit else 0)
        self.tell()
        try:
            execute(self.spec, self.home, on_row=self.see, stop=self.stop, on_moment=self.keep)
            self.ended = True
        except Interrupted:
            pass
        except Exception as error:
            self.error = str(error) if isinstance(error, EngramError) else explain_crash(error)
        self.tell()

    def see(self, row: dict[str, Any]) -> None:
        self.step = row["step"]
        if time.monotonic() - self._told > TELL:
            self.tell()

    def stop(self) -> bool:
        """Asked before every step."""
        self.look()
        if self.until is not None and self.step + 1 >= self.until:
            self.paused, self.until = True, None
        if self.limit:
            time.sleep(max(0.0, min(1.0, self._began + self.step / self.limit - time.monotonic())))
        return bool(self._orders) or self.paused

    def keep(self, writer: Any, moment: Any) -> None:
        """Weights to scrub over, states to fork from; and, while somebody watches, the newest weights."""
        steps = self.spec.steps
        if moment.step % ceil(steps / 100) == 0:
            writer.snapshot(moment.step, moment.weights, durable=False)
        if moment.step % ceil(steps / 20) == 0:
            writer.checkpoint(moment.step, moment.state)
        now = time.monotonic()
        if now < self._watched and now >= self._shown:
            writer.show(moment.step, moment.weights)
            self._shown = now + max(1 / self._hz, (time.monotonic() - now) / SHARE)

    # Orders. The step of what was asked for is that of the last row and one more: its state has been saved.

    def begin(self, order: Order) -> None:
        from engram.records.encode import decode
        from engram.records.spec import run_id
        from engram.records.writer import write_spec

        code = {name: base64.b64decode(text) for name, text in order["code"].items()}
        spec = decode(order["spec"], code)
        folder = self.home / run_id(spec)
        if not (folder / "spec.json").exists():  # whoever asked can look at it from now on
            write_spec(spec, folder)
        self.take(spec)

    def go(self, order: Order) -> None:
        self.take(self.record(order["run"]).train)

    def intervene(self, order: Order) -> None:
        """The run is forked at the event's step, and the fork goes on."""
        from engram.errors import EngramError
        from engram.learning.events import KINDS
        from engram.records.encode import build
        from engram.records.fork import fork, steered

        record = self.record(order["run"])
        if order["at"] is None and record.ended is not None:
            raise EngramError("at: the run has ended; say at which step")
        now = len(record.rows)
        event = build(KINDS[order["kind"]], order["fields"] | {"step": now if order["at"] is None else order["at"]})
        spec, paused = steered(record.train, event), self.paused
        fork(record, spec)
        self.take(spec)
        self.paused, self.step = paused, min(now, event.step)  # type: ignore[attr-defined]

    def record(self, run: str) -> Any:
        from engram.records import Record

        return Record(self.home / run)

    def take(self, spec: Any) -> None:
        from engram.records.spec import run_id

        self.spec, self.paused, self.ended, self.error, self.until = spec, False, False, None, None
        rows = self.record(run_id(spec)).rows
        self.step = rows[-1]["step"] if rows else 0

    def pause(self, order: Order) -> None:
        self.paused = True

    def resume(self, order: Order) -> None:
        self.paused = False

    def some_steps(self, order: Order) -> None:
        self.paused, self.until = False, self.step + 1 + max(1, int(order["value"]))

    def at_most(self, order: Order) -> None:
        self.limit = order["value"]
        self._began = time.monotonic() - (self.step / self.limit if self.limit else 0)

    def watch(self, order: Order) -> None:
        self._hz, self._watched = order["hz"], time.monotonic() + WATCHED_FOR

    def quit(self, order: Order) -> None:
        self.quitting = True


ORDERS: dict[str, Callable[[Trainer, Order], None]] = {
    "start": Trainer.begin,
    "go": Trainer.go,
    "intervene": Trainer.intervene,
    "pause": Trainer.pause,
    "resume": Trainer.resume,
    "step": Trainer.some_steps,
    "limit": Trainer.at_most,
    "watch": Trainer.watch,
    "quit": Trainer.quit,
}

if __name__ == "__main__":
    sys.exit(main())

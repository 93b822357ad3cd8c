"""Between server and trainer: orders and answers as lines of files, so that either may die and come back."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from engram.errors import EngramError
from engram.records import files
from engram.records.files import writing_to

Order = dict[str, Any]
NO_TRAINER: Order = {"run": None, "state": "none", "step": None, "limit": 0, "error": None}
LEFT: Order = {"ok": False, "left": True, "error": "the trainer has left; ask again, and another one comes"}
SECONDS_TO_COME = 60.0
SHORTEST_TOKEN = 20
_called: list[subprocess.Popen[bytes]] = []  # kept so that trainers which have left are reaped


class Mailbox:
    """The folder `lab` of a home."""

    def __init__(self, home: Path):
        self.home, self.folder = home, home / "lab"
        self.lock = FileLock(self.folder / "trainer.lock")

    def token(self) -> str:
        """The secret of this home's lab; it stays, so that an open page finds a server that was started again."""
        with writing_to(self.folder):
            known = self.token_now()
        return known if len(known) >= SHORTEST_TOKEN else self.new_token()

    def token_now(self) -> str:
        """The token of this moment; nothing where there is none."""
        try:
            return (self.folder / "token").read_text()
        except FileNotFoundError:
            return ""

    def new_token(self) -> str:
        """Another secret: who has the one before is refused from now on."""
        path, part, made = self.folder / "token", self.folder / f".token.{os.getpid()}", secrets.token_urlsafe(24)
        with writing_to(self.folder):
            files.make_folder(self.folder)
            part.unlink(missing_ok=True)
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(made)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)  # never seen half written
            files.sync(self.folder)
        return made

    def clear(self) -> None:
        """A trainer begins with an empty mailbox; only who holds the lock may do this."""
        for name in ("orders.jsonl", "answers.jsonl"):
            (self.folder / name).write_bytes(b"")

    def write(self, name: str, line: Order) -> None:
        """One write for a line: lines of two processes do not mix."""
        with writing_to(self.folder), (self.folder / f"{name}.jsonl").open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")

    def read(self, name: str, start: int) -> tuple[list[Order], int]:
        """Whole lines from a byte on, and the next byte; unreadable lines are left out, a cleared file is read anew."""
        try:
            lines, end = files.new_lines(self.folder / f"{name}.jsonl", start)
        except OSError:
            return [], start
        found = []
        for line in lines:
            with suppress(ValueError):
                found.append(json.loads(line))
        return found, end

    def set_status(self, now: Order) -> None:
        files.replace(self.folder / "now.json", json.dumps(now).encode(), durable=False)

    def status(self) -> Order:
        """What the trainer does."""
        if not self.has_trainer():
            return NO_TRAINER
        with suppress(OSError, ValueError):
            return NO_TRAINER | json.loads((self.folder / "now.json").read_bytes())
        return NO_TRAINER

    def has_trainer(self) -> bool:
        """Whether a trainer is at work here."""
        return files.is_held(self.folder / "trainer.lock", patience=0.01)

    def may_be_answered(self, id: int) -> bool:
        """Whether a trainer is at work that has this order: one that came later began with an empty mailbox."""
        return self.has_trainer() and any(order.get("id") == id for order in self._all("orders"))

    def _all(self, name: str) -> Iterator[Order]:
        """All lines; one look reads only some of a long file."""
        start, end = -1, 0
        while start != end:
            start, (lines, end) = end, self.read(name, end)
            yield from lines

    def start_trainer(self) -> None:
        """A trainer at work: the one that is there, or a new one in a session of its own."""
        if self.has_trainer():
            return
        with writing_to(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "now.json").unlink(missing_ok=True)
            with (self.folder / "trainer.log").open("wb") as log:
                command = [sys.executable, "-m", "engram.lab.trainer", str(self.home)]
                trainer = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
        _called[:] = [other for other in _called if other.poll() is None] + [trainer]
        self._wait_for(trainer)

    def _wait_for(self, trainer: subprocess.Popen[bytes]) -> None:
        """Until it has spoken: from then on no order is lost."""
        end = time.monotonic() + SECONDS_TO_COME
        while self.status()["state"] == "none":
            if trainer.poll() not in (None, 0) or time.monotonic() > end:  # 0: another one was faster
                told = (self.folder / "trainer.log").read_text(errors="replace").strip().splitlines()
                raise EngramError(f"the trainer did not start: {(told or ['it said nothing'])[-1]}")
            time.sleep(0.02)

"""Where server and trainer meet: orders and answers as lines of files, so that either may die and come back."""

import json
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from engram.errors import EngramError
from engram.records import files
from engram.records.files import writing_to

Order = dict[str, Any]
_called: list[subprocess.Popen[bytes]] = []  # trainers that this process has called and that are still at work
NOBODY: Order = {"run": None, "state": "none", "step": None, "limit": 0, "error": None}


class Desk:
    """The folder `lab` of a home."""

    def __init__(self, home: Path):
        self.home, self.folder = home, home / "lab"
        self.lock = FileLock(self.folder / "trainer.lock", timeout=0)

    def token(self) -> str:
        """The secret of this home's lab; it stays, so that an open page finds a server that was started again."""
        path = self.folder / "token"
        with writing_to(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                os.write(file, secrets.token_urlsafe(24).encode())
                os.close(file)
            return path.read_text()

    def clear(self) -> None:
        """A new trainer begins with an empty desk."""
        with writing_to(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in ("orders.jsonl", "answers.jsonl"):
                (self.folder / name).write_bytes(b"")
            self.say(NOBODY)

    def write(self, name: str, line: Order) -> None:
        """One write for a line: lines of two processes do not mix."""
        content = json.dumps(line).encode() + b"\n"
        with writing_to(self.folder):
            file = os.open(self.folder / f"{name}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(file, content)
            finally:
                os.close(file)

    def read(self, name: str, start: int) -> tuple[list[Order], int]:
        """Whole lines from a byte on, and the next byte."""
        path = self.folder / f"{name}.jsonl"
        try:
            if path.stat().st_size <= start:
                return [], start if path.stat().st_size == start else 0
            with path.open("rb") as file:
                file.seek(start)
                content = file.read()
        except OSError:
            return [], start
        lines = files.complete_lines(content)
        return [json.loads(line) for line in lines], start + sum(len(line) + 1 for line in lines)

    def say(self, now: Order) -> None:
        files.replace(self.folder / "now.json", json.dumps(now).encode(), durable=False)

    def now(self) -> Order:
        """What the trainer does."""
        if not self.staffed():
            return NOBODY
        with suppress(OSError, ValueError):
            return NOBODY | json.loads((self.folder / "now.json").read_bytes())
        return NOBODY

    def staffed(self) -> bool:
        """Whether a trainer is at work here."""
        try:
            with self.lock:
                return False
        except Timeout:
            return True
        except OSError:
            return False

    def staff(self) -> None:
        """A trainer at work: the one that is there, or a new one in a session of its own."""
        if self.staffed():
            return
        self.clear()
        with writing_to(self.folder), (self.folder / "trainer.log").open("wb") as log:
            command = [sys.executable, "-m", "engram.lab.trainer", str(self.home)]
            trainer = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        _called[:] = [other for other in _called if other.poll() is None] + [trainer]
        self._wait_for(trainer)

    def _wait_for(self, trainer: subprocess.Popen[bytes]) -> None:
        """It takes the lock at once, before it imports what is heavy."""
        while not self.staffed():
            with suppress(subprocess.TimeoutExpired):
                trainer.wait(0.02)
                told = (self.folder / "trainer.log").read_text(errors="replace").strip().splitlines()
                raise EngramError(f"the trainer did not start: {(told or ['it said nothing'])[-1]}")

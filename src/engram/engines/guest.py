"""A worker on another machine: it runs Specs one after another in a folder of its own, and sends home what is new.

Nothing here knows how it is reached. Whoever is in touch with it calls `news` again and again; it answers as soon as
there is something to tell.
"""

import errno
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from socket import gethostname
from tempfile import TemporaryDirectory, gettempdir
from threading import Event, Thread
from typing import Any

from engram.engines.build import Build, build
from engram.engines.parcels import Parcel, Sender, unpack
from engram.errors import EngramError, Interrupted, explain_crash
from engram.records import Record, files
from engram.records.trust import trust_own

SECONDS_BETWEEN_PARCELS = 0.5
DISK_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
SCRATCH = "ENGRAM_SCRATCH"  # names the folder in which workers keep what they have not yet sent


PREFIX = f"engram-guest-{gethostname()}-"


def remove_deserted() -> None:
    """Folders of workers of this machine that were killed."""
    for folder in Path(os.environ.get(SCRATCH) or gettempdir()).glob(f"{PREFIX}*-*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and not is_alive(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of somebody else
        return True
    return True


@dataclass(frozen=True)
class Job:
    """A run as far as it is known at home, and how it goes on."""

    run: str
    parcel: Parcel
    threads: int
    device: str
    path: str
    snapshots: int | None


@dataclass(frozen=True)
class Tidings:
    """What is new of a run. `over`: nothing more will come; `unfit`: what went wrong is the fault of this machine."""

    run: str
    parcel: Parcel
    over: bool = False
    error: str | None = None
    unfit: bool = False


class Guest:
    """Lives until it is no longer needed; what it has not sent is then lost."""

    def __init__(self) -> None:
        remove_deserted()
        self._folder = TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=os.environ.get(SCRATCH))
        self._jobs, self._tidings = SimpleQueue[Job](), SimpleQueue[Tidings]()
        self._stopping = Event()
        self._thread = Thread(target=self._work, daemon=True)  # one for all jobs: threads of torch belong to a thread
        self._thread.start()

    def build(self) -> Build:
        return build()

    def stop(self) -> None:
        """The run finishes its step, is saved and sent home."""
        self._stopping.set()

    def leave(self) -> None:
        """Nothing more will be asked: what it has is no longer needed."""
        self._folder.cleanup()

    def news(self, job: Job | None, patience: float) -> list[Tidings]:
        """Begins a job, if there is one; what is new, as soon as something is, or nothing after so many seconds."""
        if job is not None:
            self._jobs.put(job)
        try:
            found = [self._tidings.get(timeout=patience)]
        except Empty:
            if not self._thread.is_alive():
                raise EngramError("its thread has ended") from None
            return []
        while not self._tidings.empty():
            found.append(self._tidings.get())
        return found

    def _work(self) -> None:
        files.LASTS.set(False)
        while True:
            job = self._jobs.get()
            self._tidings.put(self._run(job))

    def _run(self, job: Job) -> Tidings:
        """Its last tidings; others are told on the way."""
        folder, sender, error, unfit = Path(self._folder.name) / job.run, None, None, False
        try:
            unpack(job.parcel, folder)
            sender = Sender(folder)
            self._execute(job, folder, sender)
        except Interrupted:
            pass
        except BaseException as caught:  # a user's file may even end the process
            error, unfit = explain_crash(caught), getattr(caught.__cause__ or caught, "errno", None) in DISK_FAILS
        parcel = self._last(sender)
        shutil.rmtree(folder, ignore_errors=True)
        return Tidings(job.run, parcel, over=True, error=error, unfit=unfit)

    def _execute(self, job: Job, folder: Path, sender: Sender) -> None:
        import torch

        from engram.runner.execute import execute

        torch.set_num_threads(job.threads)
        record = Record(folder)
        trust_own(record.code.values())  # it came from the one who asked for this run
        sent = [time.monotonic()]

        def see(row: dict[str, Any]) -> None:
            if time.monotonic() - sent[0] > SECONDS_BETWEEN_PARCELS:
                self._tidings.put(Tidings(job.run, sender.look()))
                sent[0] = time.monotonic()

        execute(record.spec, folder.parent, job.device, see, self._stopping.is_set, job.path, snapshots=job.snapshots)

    def _last(self, sender: Sender | None) -> Parcel:
        """What can still be sent, also of a run that failed."""
        try:
            return sender.look() if sender else []
        except Exception:
            return []

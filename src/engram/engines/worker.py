"""A process that runs Specs one after another: it gets each on stdin, keeps its record, and ends with the parent."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from engram.engines.pool import Died
from engram.errors import EngramError, Interrupted, explain_crash
from engram.signals import ENDING
from engram.specs import Spec
from engram.specs.encode import message_of, of_message
from engram.specs.spec import run_id


class Worker:
    """The parent's side. The child has a session of its own, so that Ctrl-C reaches it once, through `stop`."""

    def __init__(self, home: Path, path: str, snapshots: int | None = None):
        self._common = {"home": str(home), "path": path, "parent": os.getpid(), "snapshots": snapshots}
        self._stopped = self._over = False
        self._present: str | None = None  # the run that it works on
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it is done)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engram.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._jobs, self.answers, self._heard = self._process.stdin, self._process.stdout, b""
        os.set_blocking(self.answers.fileno(), False)

    def give(self, spec: Spec, threads: int) -> None:
        self._present = run_id(spec)
        job = self._common | {"run": self._present, "threads": threads} | message_of(spec)
        with suppress(BrokenPipeError):  # `failures` tells why it died
            self._jobs.write(json.dumps(job).encode() + b"\n")
            self._jobs.flush()

    def failures(self) -> dict[str, Exception]:
        """What failed since the last look: runs that it gave up, and the one that it died of, by their ids."""
        self._over = self._process.poll() is not None  # asked first: what was said before the end is heard below
        found: dict[str, Exception] = {}
        *lines, self._heard = (self._heard + (self.answers.read() or b"")).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if said["error"] is not None:
                found[said["run"]] = EngramError(said["error"])
            self._present = None if said["run"] == self._present else self._present
        if self._over and self._present is not None and not self._stopped:
            found[self._present], self._present = self._explain(), None
        return found

    def alive(self) -> bool:
        """As far as `failures` knows: nobody forgets a worker whose last run has not been told."""
        return not self._over

    def busy(self) -> bool:
        """Whether it still works on what it was given."""
        return self.alive() and self._present is not None

    def idle(self) -> bool:
        return self.alive() and self._present is None

    def _explain(self) -> Died:
        """Why it died in the middle of a run."""
        code = self._process.returncode
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        why = "out of memory?" if code == -signal.SIGKILL else "it was stopped from outside, or stopped itself"
        last = f"; it said: {lines[-1]}" if lines else ""
        return Died(f"a worker ended with code {code} ({why}); run the same command again to go on{last}")

    def stop(self) -> None:
        """Let it finish its step and save; then there is nothing more to do."""
        self._stopped = True
        self._process.send_signal(signal.SIGINT)
        self.close()

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._jobs.close()

    def wait(self) -> None:
        self._process.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self.close()
        self.answers.close()
        self._said.close()


AUTOGROUP = Path("/proc/self/autogroup")


def step_back() -> None:
    """A session is a group of its own where Linux shares the processors among sessions, and niceness counts only
    within a group: so the group gets that of the process.
    """
    with suppress(OSError):  # there are no groups here
        AUTOGROUP.write_text(str(os.nice(0)))


def keep_apart() -> tuple[TextIO, TextIO]:
    """Channels of their own for jobs and answers: what a user's file prints, or begins, has no part in them."""
    jobs, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return jobs, answers


def main() -> int:
    """The child's side: a line on stdout for each Spec that is over, with its error if it failed."""
    step_back()
    asked: list[int] = []

    for number in ENDING:
        signal.signal(number, lambda number, frame: asked.append(number))
    jobs, answers = keep_apart()
    import torch

    from engram.runner.execute import execute

    for line in jobs:
        job, error = json.loads(line), None
        torch.set_num_threads(job["threads"])
        home, parent = Path(job["home"]), job["parent"]
        stop = lambda: bool(asked) or os.getppid() != parent  # noqa: B023, E731
        try:
            execute(of_message(job), home, stop=stop, path=job["path"], snapshots=job["snapshots"])
        except Interrupted:
            return 130
        except Exception as caught:
            error = explain_crash(caught)
        print(json.dumps({"run": job["run"], "error": error}), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A process that runs Specs one after another: it gets each on stdin, keeps its record, and ends with the parent."""

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import FrameType

from engram.errors import EngramError, Interrupted, explain_crash
from engram.specs import Spec
from engram.specs.encode import decode, encode, user_code
from engram.specs.spec import run_id


class Worker:
    """The parent's side. The child has a session of its own, so that Ctrl-C reaches it once, through `stop`."""

    def __init__(self, home: Path, path: str):
        self._common = {"home": str(home), "path": path, "parent": os.getpid()}
        self._stopped = False
        self._digest: Path | None = None  # what the record of the present Spec will have when it has ended
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it is done)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engram.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )

    def give(self, spec: Spec, threads: int) -> None:
        code = {name: base64.b64encode(content).decode() for name, content in user_code(spec).items()}
        job = self._common | {"spec": encode(spec), "code": code, "threads": threads}
        self._digest = Path(self._common["home"]) / run_id(spec) / "digest.json"
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # `busy` tells why it died
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()

    def busy(self) -> bool:
        """Whether it still works on what it was given; raises if it ended before that, unless it was asked to."""
        code, open_ = self._process.poll(), self._digest is not None and not self._digest.exists()
        if code is not None and open_ and not self._stopped:
            self._explain(code)
        return code is None and open_

    def _explain(self, code: int) -> None:
        self._said.seek(0)
        told = self._said.read().decode(errors="replace").strip().splitlines()
        if code == 2 and told:
            raise EngramError(told[-1].removeprefix("engram: "))
        why = "out of memory?" if code == -signal.SIGKILL else "it was stopped from outside, or stopped itself"
        raise EngramError(f"a worker ended with code {code} ({why}); the same command goes on")

    def stop(self) -> None:
        """Let it finish its step and save; then there is nothing more to do."""
        self._stopped = True
        self._process.send_signal(signal.SIGINT)
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def wait(self) -> None:
        self._process.wait()
        self.busy()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self.close()
        self._said.close()


def main() -> int:
    """The child's side: exit code 0 at the end, 130 when stopped, 2 with one line when something is wrong."""
    asked: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    import torch

    from engram.run.execute import execute

    try:
        for line in sys.stdin:
            job = json.loads(line)
            torch.set_num_threads(job["threads"])
            code = {name: base64.b64decode(text) for name, text in job["code"].items()}
            spec, home, parent = decode(job["spec"], code), Path(job["home"]), job["parent"]
            execute(spec, home, stop=lambda: bool(asked) or os.getppid() != parent, path=job["path"])  # noqa: B023
    except Interrupted:
        return 130
    except Exception as error:
        print(f"engram: {explain_crash(error)}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

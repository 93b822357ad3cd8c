"""A run in a process of its own: it gets its Spec on stdin, keeps its record, and ends with the parent."""

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

from engram.errors import EngramError, Interrupted, explain_crash
from engram.records import Spec
from engram.records.encode import decode, encode, user_code


class Worker:
    """The parent's side. The child has a session of its own, so that Ctrl-C reaches it once, through `stop`."""

    def __init__(self, spec: Spec, home: Path, threads: int, path: str):
        code = {name: base64.b64encode(content).decode() for name, content in user_code(spec).items()}
        job = {"spec": encode(spec), "code": code, "home": str(home), "threads": threads, "path": path}
        job["parent"] = os.getpid()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it is done)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "engram.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job).encode())
        self._process.stdin.close()

    def done(self) -> bool:
        """Whether it has ended well; raises if it has ended badly."""
        code = self._process.poll()
        if code is None:
            return False
        with self._said as said:
            said.seek(0)
            told = said.read().decode(errors="replace").strip().splitlines()
        if code == 2 and told:
            raise EngramError(told[-1].removeprefix("engram: "))
        if code not in (0, 130):
            raise EngramError(f"a worker ended with code {code} (out of memory?); the same command goes on")
        return True

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def wait(self) -> None:
        self._process.wait()
        self.done()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._said.close()


def main() -> int:
    """The child's side: exit code 0 at the end, 130 when stopped, 2 with one line when something is wrong."""
    job = json.load(sys.stdin)
    asked: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    import torch

    from engram.execute import execute

    torch.set_num_threads(job["threads"])
    code = {name: base64.b64decode(text) for name, text in job["code"].items()}
    try:
        spec, home = decode(job["spec"], code), Path(job["home"])
        execute(spec, home, stop=lambda: bool(asked) or os.getppid() != job["parent"], path=job["path"])
    except Interrupted:
        return 130
    except Exception as error:
        print(f"engram: {explain_crash(error)}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

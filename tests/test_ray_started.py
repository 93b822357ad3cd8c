"""A cluster that was begun as docs/cluster.md says: `ray start` on each machine, with a token that they share."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'engram[ray]'")
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
SWEEP = ("sweep", "birth.joint", "--scale", "smoke", "--set", "model.d=8,16", "--seeds", "1", "--engine", "ray")


def environment(home: Path) -> dict[str, str]:
    about = {"HOME": str(home), "ENGRAM_HOME": str(home / "runs"), "RAY_AUTH_MODE": "token"}
    return os.environ | about | {"RAY_USAGE_STATS_ENABLED": "0"}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def started(home: Path, *where: str) -> Iterator[None]:
    """A node until the end of the block: `ray start`, which would end with `ray stop`."""
    command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--num-cpus", "1", *where]
    node = subprocess.Popen(command, env=environment(home), start_new_session=True, **QUIET)  # type: ignore[call-overload]
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGTERM)
        node.wait(60)


def wait_for(port: int) -> None:
    for _ in range(1200):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError("no Ray began")


def test_a_sweep_on_a_cluster_that_asks_for_a_token(tmp_path: Path) -> None:
    ray, port = str(Path(sys.executable).with_name("ray")), free_port()
    subprocess.run([ray, "get-auth-token", "--generate"], env=environment(tmp_path), check=True, **QUIET)  # type: ignore[call-overload]
    with started(tmp_path, "--head", "--port", str(port), "--include-dashboard", "false"):
        wait_for(port)
        command = [sys.executable, "-m", "engram", *SWEEP, "--address", f"127.0.0.1:{port}"]
        told = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr[-2000:]
    assert len(list((tmp_path / "runs").glob("*/digest.json"))) == 2

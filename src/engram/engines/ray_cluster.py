"""The Ray engine: Specs run on the nodes of a Ray cluster, and their records come home while they are made.

No disk is shared. What travels, and why a lost connection or a killed node costs only seconds: engines/parcels.py. The
cluster is one that was named, or a Ray on this machine that ends with the command; none is looked for.
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, TextIO, cast

from engram.engines import OnRow, Outcome
from engram.engines.distant import Distant
from engram.engines.guest import Guest
from engram.engines.local import cores, room_here
from engram.engines.manner import Manner
from engram.engines.over import kept, outcome, read_over, sorted_out
from engram.engines.pool import SECONDS_BETWEEN_LOOKS, TRIES, Pool, Worker
from engram.errors import EngramError
from engram.signals import ENDING, keeping, waiting_for_signals
from engram.specs import Spec

SECONDS_TO_CONNECT = 10.0
SECONDS_FOR_A_NODE = 60.0  # after the last worker was lost
SECONDS_BETWEEN_COUNTS = 2.0  # of the nodes of the cluster
OBJECTS = 256 << 20  # bytes that a Ray of our own keeps for what travels


@dataclass(frozen=True)
class Ray(Manner):
    """A Ray cluster.

    address    HOST:PORT, as `ray start --head` prints it; None: a Ray is started on this machine
    """

    address: str | None = None

    def run(self, specs: Sequence[Spec], on_row: OnRow) -> Outcome:
        """Like `Local.run`; the records are the same to the byte where one thread computes a run there and here."""

        left, over = sorted_out(self.home, specs)
        with keeping(lambda: kept(self.home, [*left, *over])):
            failed = self._compute([*left.values()], on_row) if left else {}
            failed |= read_over(over, self, on_row)
        return outcome(specs, self.home, failed)

    def side_by_side(self) -> int:
        """On the nodes that the cluster has now. A Ray of our own would have the cores of this machine."""
        if self.address is None:
            return room_here(self)
        with _connected(self.address) as ray:
            return Nodes(self, ray).at_once()

    def _compute(self, specs: Sequence[Spec], on_row: OnRow) -> dict[str, Exception]:
        if self.device == "cuda":
            self.tell("workers with a GPU compute gradients by autograd (the reference path)")
        with _connected(self.address) as ray, waiting_for_signals() as stopped:
            crew = Nodes(self, ray)
            return Pool(self, crew, specs, on_row, stopped, most=crew.most_threads()).run()


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, as long as it is needed. Its own words are left out, and it tells nobody of its use."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray  # type: ignore[import-not-found]
        from ray.exceptions import RayError  # type: ignore[import-not-found]
    except ImportError:
        raise EngramError("--engine ray needs Ray: pip install 'engram[ray]'") from None
    own = {"num_cpus": cores(), "include_dashboard": False, "object_store_memory": OBJECTS} if address is None else {}
    if address is not None:
        _refuse_silent(address)
    try:
        with _own_signals():
            ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, RayError) as error:
        why = " ".join(str(error).split())
        raise EngramError(f"{_not_connected(address)} ({why:.200})") from None
    with redirect_stdout(cast(TextIO, WithoutRay(sys.stdout))):
        try:
            yield ray
        finally:
            with redirect_stdout(StringIO()):  # what was repeated is summed up at the end
                ray.shutdown()


class WithoutRay:
    """stdout is for answers: what Ray's threads would print there of lost nodes and workers is told by the engine."""

    def __init__(self, out: Any):
        self._out = out

    def write(self, text: str) -> int:
        return len(text) if threading.current_thread().name.startswith("ray_") else self._out.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def _not_connected(address: str | None) -> str:
    """Ray does not say whether a cluster asks for a token, and workers of one that does not would die of it."""
    if address is None:
        return "no Ray can be started here"
    token = "" if os.environ.get("RAY_AUTH_MODE") else "; if it asks for a token, set RAY_AUTH_MODE=token"
    return f"--address {address}: no Ray cluster answers there{token}"


def _refuse_silent(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise EngramError(f"--address: write HOST:PORT, as `ray start --head` prints it; got {address!r:.80}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_CONNECT).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise EngramError(
            f"--address {address}: no Ray cluster answers there ({why}); `ray start --head` begins one"
        ) from None


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray wants to be the one who hears of SIGTERM."""
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass
class Nodes:
    """A crew that works on the nodes of a cluster, as many on each as it has room for."""

    engine: Ray
    ray: Any
    unusable: dict[str, str] = field(default_factory=dict)  # by node, why nobody is hired there any more
    _noted: set[tuple[str, str]] = field(default_factory=set)
    _nodes: list[dict[str, Any]] = field(default_factory=list)
    _counted: float = -float("inf")
    _lost: Counter[str] = field(default_factory=Counter)  # workers that never said a word, by node
    _worked: float = -float("inf")  # when somebody worked last

    def hire(self, workers: Sequence[Worker]) -> Worker | None:
        """On the node that has most room left."""
        if len(workers) >= (self.engine.workers or len(workers) + 1):
            return None
        room = {node["NodeID"]: self._room(node) for node in self._usable()}
        for worker in workers:
            if isinstance(worker, Distant) and worker.node in room:
                room[worker.node] -= 1
        best = max(room, key=lambda node: room[node], default=None)
        if best is not None and room[best] > 0:
            return Distant(self.engine, self, best, self._actor(best))
        if workers:
            self._worked = time.monotonic()
        elif time.monotonic() - self._worked > SECONDS_FOR_A_NODE:  # one that was lost may come back
            self._refuse_hopeless()
        return None

    def wait(self, workers: Sequence[Worker]) -> None:
        asked = [worker.asked for worker in workers if isinstance(worker, Distant) and worker.asked is not None]
        if asked:
            self.ray.wait(asked, num_returns=1, timeout=SECONDS_BETWEEN_LOOKS, fetch_local=False)
        else:
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def give_up(self, node: str, why: str) -> None:
        """Nobody more is hired there."""
        if node not in self.unusable:
            self.unusable[node] = why
            self.engine.tell(f"{self.name_of(node)} is not used: {why}")

    def lose(self, node: str, why: str) -> None:
        """A worker that was lost before it said a word: the node may be short of memory, or no place for workers."""
        self._lost[node] += 1
        if self._lost[node] >= TRIES:
            self.give_up(node, why)

    def note(self, node: str, what: str) -> None:
        """Said once."""
        if (node, what) not in self._noted:
            self._noted.add((node, what))
            self.engine.tell(f"{self.name_of(node)}: {what}")

    def name_of(self, node: str) -> str:
        return next((f"node {found['NodeManagerAddress']}" for found in self._nodes if found["NodeID"] == node), node)

    def most_threads(self) -> int:
        return max((int(node["Resources"].get("CPU", 0)) for node in self._alive()), default=1)

    def at_once(self) -> int:
        """How many workers the cluster has room for."""
        room = {node["NodeID"]: self._room(node) for node in self._usable()}
        if not sum(room.values()):
            self._refuse_hopeless()
        return min(sum(room.values()), self.engine.workers or sum(room.values()))

    def _alive(self) -> list[dict[str, Any]]:
        if time.monotonic() - self._counted > SECONDS_BETWEEN_COUNTS:
            self._nodes, self._counted = self.ray.nodes(), time.monotonic()
        return [node for node in self._nodes if node["Alive"]]

    def _usable(self) -> list[dict[str, Any]]:
        return [node for node in self._alive() if node["NodeID"] not in self.unusable]

    @property
    def _needs(self) -> dict[str, float]:
        """Of one worker."""
        needs = {"CPU": self.engine.threads or 1, "GPU": int(self.engine.device == "cuda")}
        return {name: n for name, n in (needs | {"memory": self.engine.memory or 0}).items() if n}

    def _room(self, node: dict[str, Any]) -> int:
        return min(int(node["Resources"].get(name, 0) // needed) for name, needed in self._needs.items())

    def _actor(self, node: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # type: ignore[import-not-found]

        where = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        needs = {"num_cpus": self._needs["CPU"], "num_gpus": self._needs.get("GPU", 0)}
        memory = {"memory": self.engine.memory} if self.engine.memory else {}
        options = {"max_concurrency": 3, "max_restarts": 0, "scheduling_strategy": where}
        return self.ray.remote(Guest).options(**options, **needs, **memory).remote()

    def _refuse_hopeless(self) -> None:
        """Nobody works, and nobody will: says why, of each node."""
        asked = ", ".join(f"{n:g} {name}" for name, n in self._needs.items())
        short = f"does not have what a run needs ({asked}; lower --threads or --memory)"
        known = {node["NodeID"]: short for node in self._alive()} | self.unusable
        why = "; ".join(f"{self.name_of(node)}: {why}" for node, why in known.items())
        raise EngramError(f"no node of the cluster can be used: {why or 'none is alive'}")

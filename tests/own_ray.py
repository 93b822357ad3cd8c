"""A Ray cluster of our own on this machine: two nodes with one processor each; the first holds it together."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

OBJECTS = 100 << 20


class Nodes:
    def __init__(self) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray.cluster_utils import Cluster  # type: ignore[import-not-found]

        about = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": OBJECTS}
        self._cluster = Cluster(initialize_head=True, head_node_args=about)
        self.second: Any = None
        self.address = str(self._cluster.address)

    def with_second(self, **environment: str) -> "Nodes":
        if self.second is None:
            self.second = self._cluster.add_node(num_cpus=1, object_store_memory=OBJECTS, env_vars=environment or None)
            self._cluster.wait_for_nodes()
        return self

    def kill_second(self) -> None:
        """-9, raylet and workers."""
        node, self.second = self.second, None
        self._cluster.remove_node(node, allow_graceful=False)

    def freeze_second(self, number: int = signal.SIGSTOP) -> None:
        """Nothing of the node answers, as behind a cut cable, until it is thawed with SIGCONT."""
        for pid in self._of_second():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _of_second(self) -> list[int]:
        """The raylet and all that it began."""
        (raylet,) = self.second.all_processes["raylet"]
        return descendants(raylet.process.pid)

    def end(self) -> None:
        self._cluster.shutdown()


def descendants(pid: int) -> list[int]:
    """The process, and all that it began."""
    found = [pid]
    for one in found:
        found += children(one)
    return found


def children(parent: int) -> list[int]:
    with suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    return []


@contextmanager
def own_ray() -> Iterator[Nodes]:
    nodes = Nodes()
    try:
        yield nodes
    finally:
        nodes.end()

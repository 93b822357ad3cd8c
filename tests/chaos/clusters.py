"""Faults of clusters: workers, nodes, drivers, cables and disks of Ray; tasks of Slurm. Both run on this machine."""

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from chaos.processes import PATIENCE, engram, rows_in, wait_for
from chaos.workshop import SMALL, Failed, Verdict, Workshop, refuse_other_result, small
from engram.engines import Engine, distant, slurm
from engram.engines.local import Local
from engram.engines.ray_cluster import Ray
from engram.engines.slurm import Slurm
from engram.engines.slurm_batch import batches
from engram.specs import Train
from engram.specs.spec import run_id
from own_ray import Nodes, descendants
from own_slurm import own_slurm

STEPS, SEEDS = 1500, (0, 1, 2)
_open = ExitStack()  # clusters that were begun, until `end`
_found: dict[str, Any] = {}


def nodes() -> Nodes:
    """One cluster for all faults; a second node is begun anew where the last fault took it."""
    if "ray" not in _found:
        distant.SILENCE, _found["ray"] = 8.0, Nodes()
        _open.callback(_found["ray"].end)
    return _found["ray"].with_second()


def begin_slurm(shop: Workshop) -> None:
    if "slurm" not in _found:
        folder = shop.folder / "slurm"
        folder.mkdir()
        _open.enter_context(own_slurm(folder))
        slurm.SECONDS_BETWEEN_QUESTIONS, _found["slurm"] = 0.5, folder


@contextmanager
def ended() -> Iterator[None]:
    """Whatever was begun ends with the block."""
    try:
        yield
    finally:
        _open.close()


def specs() -> list[Train]:
    return [small(seed, STEPS) for seed in SEEDS]


def hit(shop: Workshop, engine: Engine, home: Path, at: int, fault: Callable[[], object], what: str) -> Verdict:
    """At a row the fault comes; every row is told once, and every record is that of an undisturbed run."""
    told, thread = Counter[tuple[str, int]](), threading.Thread(target=fault, daemon=True)

    def see(spec: Any, row: Any) -> None:
        told.update([(run_id(spec), row["step"])])
        if row["step"] >= at and thread.ident is None:
            thread.start()

    engine.run(specs(), see).all_records()
    thread.join()
    if set(told.values()) != {1}:
        raise Failed(f"{what}: {sum(n > 1 for n in told.values())} rows were told more than once")
    return sound(shop, home, what)


def sound(shop: Workshop, home: Path, what: str) -> Verdict:
    for spec in specs():
        refuse_other_result(shop, spec, home, threads=1)
    return Verdict(what, "survived")


def ray_worker_killed(shop: Workshop, chance: Random) -> Verdict:
    home, at = shop.fresh(), chance.randrange(STEPS - 300)
    return hit(shop, Ray(home, address=nodes().address), home, at, lambda: kill_worker(chance), f"a worker, row {at}")


def kill_worker(chance: Random) -> None:
    """One of the actors of our own nodes: another cluster may be at work on this machine."""
    pids = [pid for pid in descendants(os.getpid()) if b"ray::Guest" in _read(Path(f"/proc/{pid}/cmdline"))]
    if pids:
        os.kill(chance.choice(pids), signal.SIGKILL)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def ray_node_killed(shop: Workshop, chance: Random) -> Verdict:
    home, at, cluster = shop.fresh(), chance.randrange(STEPS - 300), nodes()
    return hit(shop, Ray(home, address=cluster.address), home, at, cluster.kill_second, f"a node, row {at}")


def ray_cable_cut(shop: Workshop, chance: Random) -> Verdict:
    """For a moment, or for so long that the node is given up."""
    home, at, cluster = shop.fresh(), chance.randrange(STEPS - 300), nodes()
    seconds = chance.choice((0.5, 3.0, 15.0))

    def cut() -> None:
        cluster.freeze_second()
        time.sleep(seconds)
        cluster.freeze_second(signal.SIGCONT)

    verdict = hit(shop, Ray(home, address=cluster.address), home, at, cut, f"a node silent for {seconds} s, row {at}")
    cluster.kill_second()  # it may have been given up
    return verdict


def ray_disk_full(shop: Workshop, chance: Random) -> Verdict:
    """One node has no room for what a run needs: it is named, and the others do its work."""
    home, cluster, told = shop.fresh(), nodes(), list[str]()
    cluster.kill_second()
    tiny = shop.fresh()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={chance.choice((4, 32, 64))}k", "none", str(tiny)], check=True)
    try:
        cluster.with_second(ENGRAM_SCRATCH=str(tiny))
        Ray(home, address=cluster.address, tell=told.append).run(specs(), lambda spec, row: None).all_records()
    finally:
        cluster.kill_second()
        subprocess.run(["umount", "-l", str(tiny)], check=True)
    if not any("is not used" in words for words in told):
        raise Failed("nobody said that the disk is full")
    return sound(shop, home, f"full disk of a node: {told[0][:60]}")


def driver_of_ray(shop: Workshop, chance: Random) -> Verdict:
    return driver(shop, chance, ["--engine", "ray", "--address", nodes().address])


def driver_of_slurm(shop: Workshop, chance: Random) -> Verdict:
    begin_slurm(shop)
    return driver(shop, chance, ["--engine", "slurm"])


def driver(shop: Workshop, chance: Random, where: Sequence[str]) -> Verdict:
    """Killed or asked to stop at a random row; then the same command, or this machine, goes on."""
    home, number = shop.fresh(), chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    settings = [f"{name}={value}" for name, value in (SMALL | {"plan.steps": STEPS}).items()]
    command = ["run", "birth.joint", "--scale", "smoke", "--seeds", str(len(SEEDS)), "--set", *settings, *where]
    first, at = home / run_id(specs()[0]), chance.randrange(1, STEPS - 300)
    run = engram(*command, home=home)
    wait_for(lambda: rows_in(first) >= at or run.poll() is not None, "rows")
    run.send_signal(number)
    _, err = run.communicate(timeout=PATIENCE)
    if number != signal.SIGKILL and run.returncode != 128 + number and "Traceback" in err:
        raise Failed(f"{number.name} ended the driver with {err.strip().splitlines()[-1:]}")
    how = "again" if "slurm" in where or chance.random() < 0.5 else "here"
    if how == "again":
        again = engram(*command, home=home)
        _, err = again.communicate(timeout=PATIENCE)
        if again.returncode not in (0, 1):
            raise Failed(f"the same command: {err.strip().splitlines()[-1:]}")
    else:
        Local(home, threads=1).run(specs(), lambda spec, row: None).all_records()
    return sound(shop, home, f"{number.name} to the driver at row {at}, then {how}")


def slurm_cancelled(shop: Workshop, chance: Random) -> Verdict:
    begin_slurm(shop)
    home, at = shop.fresh(), chance.randrange(STEPS - 300)

    def cancel() -> None:
        for batch in batches(home):
            how = chance.choice(([], ["--signal=KILL", "--full"]))
            subprocess.run(["scancel", *how, f"{batch.job}_{chance.randrange(len(batch.tasks))}"], check=False)

    return hit(shop, Slurm(home), home, at, cancel, f"a task cancelled, row {at}")


def slurm_preempted(shop: Workshop, chance: Random) -> Verdict:
    begin_slurm(shop)
    home, at = shop.fresh(), chance.randrange(STEPS - 300)
    urgent = ["sbatch", "--partition=urgent", "--cpus-per-task=2", "--output=/dev/null", "--wrap", "sleep 1"]
    fault = lambda: subprocess.run(urgent, check=True, capture_output=True)  # noqa: E731
    return hit(shop, Slurm(home), home, at, fault, f"preempted, row {at}")


KINDS: dict[str, tuple[Callable[[Workshop, Random], Verdict], int]] = {
    "ray worker killed": (ray_worker_killed, 22),
    "ray node killed": (ray_node_killed, 14),
    "ray cable cut": (ray_cable_cut, 12),
    "ray disk full": (ray_disk_full, 6),
    "ray driver hit": (driver_of_ray, 18),
    "slurm cancelled": (slurm_cancelled, 12),
    "slurm preempted": (slurm_preempted, 6),
    "slurm driver hit": (driver_of_slurm, 10),
}

"""A Slurm of our own on this machine: one node with two processors, and a partition that preempts the other."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NEEDED = ("slurmctld", "slurmd", "munged", "sbatch")
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at}/munge.sock
CryptoType=crypto/munge
SlurmctldPort={control}
SlurmdPort={node}
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobRequeue=1
KillWait=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0,requeue_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
"""


def lacking() -> str | None:
    """Why there can be none."""
    missing = [name for name in NEEDED if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing:
        return f"{', '.join(missing)} not installed: apt-get install slurm-wlm munge"
    return None if os.geteuid() == 0 else "a Slurm of our own needs root"


@contextmanager
def own_slurm(at: Path) -> Iterator[None]:
    """As long as the block lasts; $SLURM_CONF leads to it."""
    host, daemons = socket.gethostname(), {"PATH": f"{os.environ['PATH']}:/usr/sbin", "SLURM_CONF": f"{at}/slurm.conf"}
    control, node = _ports()
    (at / "slurm.conf").write_text(CONF.format(host=host, at=at, control=control, node=node))
    (at / "munge.key").write_bytes(secrets.token_bytes(1024))
    (at / "munge.key").chmod(0o400)
    at.chmod(0o711)
    files = {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munged.pid", "log-file": "munged.log"}
    munged = ["munged", "--force", *(f"--{name}={at}/{file}" for name, file in files.items()), f"--seed-file={at}/seed"]
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = daemons["SLURM_CONF"]
    over = threading.Event()
    try:
        for command in (munged, ["slurmctld"], ["slurmd"]):
            subprocess.run(command, env=os.environ | daemons, check=True, capture_output=True)
        _wait_for_a_node()
        threading.Thread(target=_hurry, args=(over,), daemon=True).start()
        yield
    finally:
        over.set()
        subprocess.run(["scancel", "--user=root"], check=False, capture_output=True)
        for name in ("slurmd", "slurmctld", "munged"):
            if (at / f"{name}.pid").exists():
                _end(int((at / f"{name}.pid").read_text()))
        os.environ.pop("SLURM_CONF")
        if before is not None:
            os.environ["SLURM_CONF"] = before


def _hurry(over: threading.Event) -> None:
    """A task that is queued again need not wait for the two minutes that Slurm gives a node to recover."""
    squeue, scontrol = (shutil.which(name) or name for name in ("squeue", "scontrol"))  # tests change $PATH meanwhile
    asked = [squeue, "--noheader", "--array", "--states=PENDING", "--format=%i %r"]
    while not over.wait(1.0):
        found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
        for task in (line.split()[0] for line in found if line.endswith("BeginTime")):
            subprocess.run([scontrol, "update", f"JobId={task}", "StartTime=now"], check=False, capture_output=True)


def _end(pid: int) -> None:
    """Asked to, and killed after ten seconds."""
    for number in (*[signal.SIGTERM] * 100, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        time.sleep(0.1)


def _ports() -> tuple[int, int]:
    """Two that are free."""
    with socket.socket() as one, socket.socket() as other:
        for found in (one, other):
            found.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _wait_for_a_node() -> None:
    asked, end = ["sinfo", "--noheader", "--format=%t"], time.monotonic() + 60
    while subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split() != ["idle"]:
        assert time.monotonic() < end, "Slurm did not begin"
        time.sleep(0.1)

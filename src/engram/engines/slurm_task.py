"""A task of a Slurm job array: the runs of its list, one after another, in the home that all share."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from engram.engines.build import Build, build
from engram.engines.slurm_batch import JOB
from engram.errors import EngramError, Interrupted, explain_crash
from engram.records import Record, files
from engram.signals import ENDING

TIME_IS_OVER = signal.SIGUSR2
STOPPED = 128 + signal.SIGTERM


def main(folder: Path) -> int:
    """Ends when all is done, or when it is told to; its runs are saved then."""
    heard: list[int] = []
    for number in (*ENDING, TIME_IS_OVER):
        signal.signal(number, lambda number, frame: heard.append(number))
    _say_job(folder)
    about, task = json.loads((folder / "tasks.json").read_text()), int(os.environ["SLURM_ARRAY_TASK_ID"])
    for id in about["tasks"][task]:
        try:
            _refuse_other_build(Build(**about["build"]), about["path"])
            _execute(about, id, lambda: bool(heard))
        except Interrupted:
            break
        except Exception as error:
            _note(folder / f"failed-{task}.jsonl", id, explain_crash(error))
    if TIME_IS_OVER in heard:
        subprocess.run(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]], check=False)
    return STOPPED if heard else 0


def _say_job(folder: Path) -> None:
    """For one who submitted it and was killed before he could note its number."""
    if not (folder / JOB).exists():
        files.replace(folder / JOB, f"{os.environ['SLURM_ARRAY_JOB_ID']}\n".encode())


def _execute(about: dict[str, Any], id: str, stop: Any) -> None:
    import torch

    from engram.records.trust import trust_own
    from engram.runner.execute import execute

    home = Path(about["home"])
    record = Record(home / id)
    if record.ended is not None:
        return
    torch.set_num_threads(about["threads"][id])
    trust_own(record.code.values())  # it was begun by the one who submitted this job
    execute(record.spec, home, about["device"], stop=stop, path=about["path"], snapshots=about["snapshots"])


def _refuse_other_build(there: Build, path: str) -> None:
    if different := there.differences(build(), path):
        node = os.environ.get("SLURMD_NODENAME", "this node")
        raise EngramError(f"{node} has {', '.join(different)}; install the same there")


def _note(file: Path, id: str, error: str) -> None:
    with file.open("a") as lines:
        lines.write(json.dumps({"run": id, "error": error}) + "\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

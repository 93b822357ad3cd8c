"""Batches of the Slurm engine: a job array with its folder beside the runs, and what the controller says of it."""

import json
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from engram.errors import EngramError
from engram.records import files

FOLDER = "slurm"  # of batches, beside the runs
JOB = "job"  # the file with the number of the job
MOST_NAMED = 500  # tasks in one command
FORGOTTEN = "Invalid job id"
GONE = ("CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")


class Refused(EngramError):
    """A command of Slurm ended with an error."""


class Unanswered(EngramError):
    """The controller does not say how tasks are; they may be well."""


@dataclass(frozen=True)
class Batch:
    """One job array. Its folder says all of it."""

    folder: Path
    job: str
    tasks: list[list[str]]

    @property
    def ids(self) -> set[str]:
        return {id for ids in self.tasks for id in ids}

    def tasks_of(self, runs: Iterable[str]) -> list[int]:
        """The numbers of tasks that compute some of these."""
        wanted = set(runs)
        return [n for n, ids in enumerate(self.tasks) if wanted & set(ids)]

    def present(self) -> set[int]:
        """Tasks that the controller still has; it forgets those that are over."""
        asked = ("squeue", "--noheader", "--array", "--format=%K %T", f"--jobs={self.job}")
        try:
            found = [line.split() for line in command(*asked, missing=FORGOTTEN).splitlines()]
        except Refused as error:
            raise Unanswered(str(error)) from None
        return {int(task) for task, state in found if task.isdecimal() and state not in GONE}

    def is_working(self, tasks: Sequence[int]) -> bool:
        with suppress(Unanswered):
            return bool(self.present() & set(tasks))
        return True

    def working(self) -> set[str]:
        """Runs of tasks that are at work or wait for their turn."""
        present = self.present()
        return {id for n, ids in enumerate(self.tasks) if n in present for id in ids}

    def failures(self) -> dict[str, str]:
        found = {}
        for path in sorted(self.folder.glob("failed-*.jsonl")):
            said = map(json.loads, files.complete_lines(path.read_bytes()))
            found |= {one["run"]: one["error"] for one in said}
        return found


def batches(home: Path) -> Iterator[Batch]:
    """Those that were submitted from this home, whoever looked on."""
    for path in sorted((home / FOLDER).glob(f"*/{JOB}")):
        about = json.loads((path.parent / "tasks.json").read_text())
        yield Batch(path.parent, path.read_text().strip(), about["tasks"])


def new_folder(home: Path) -> Path:
    """That nobody else has, also of those who submit in the same second."""
    files.make_folder(home / FOLDER)
    for n in count(1):
        folder = home / FOLDER / f"{time.strftime('%Y%m%d-%H%M%S')}-{n}"
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError


def cancel(tasks: Mapping[str, Sequence[int]], options: Sequence[str]) -> None:
    """Those that are over, or that a silent controller does not tell of, are left."""
    for job, numbers in tasks.items():
        for n in range(0, len(numbers), MOST_NAMED):
            with suppress(EngramError):
                command(
                    "scancel", *options, *(f"{job}_{task}" for task in numbers[n : n + MOST_NAMED]), missing=FORGOTTEN
                )


def command(*words: str, missing: str = "") -> str:
    """What it prints. `missing`: what it says of a job that the controller has forgotten, which is no error."""
    try:
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise EngramError(f"--engine slurm: there is no {words[0]} here; log in to a machine of the cluster") from None
    if ran.returncode and not (missing and missing in ran.stderr):
        raise Refused(f"{words[0]}: {' '.join(ran.stderr.split()):.300}")
    return ran.stdout

"""Spec → Record: the one place where task, model, learning and probes meet."""

import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from engram.errors import EngramError, Interrupted
from engram.learning import Diverged, Moment, choose_path
from engram.learning.bisection import bisection
from engram.records import Record
from engram.records.files import Row, corrupt
from engram.records.writer import Writer
from engram.registered import in_force
from engram.runner.training import measured_steps
from engram.specs import Check, Search, Spec, Train
from engram.specs.spec import run_id

OnRow = Callable[[Row], None]
Stop = Callable[[], bool]
OnMoment = Callable[[Writer, Moment], None]


def execute(
    spec: Spec,
    home: Path,
    device: str = "cpu",
    on_row: OnRow = lambda row: None,
    stop: Stop = lambda: False,
    path: str = "auto",
    on_moment: OnMoment = lambda writer, moment: None,
    on_stop: OnMoment = lambda writer, moment: None,
    snapshots: int | None = None,
) -> Record:
    """Run a Spec to its end and return its Record: reused if finished, resumed if part-done.

    `on_row` sees every row, stored ones first; when `stop` says so, the run is saved and Interrupted is raised.
    `on_moment` sees every step of a training with its weights, and may keep more of it than a record must have.
    `on_stop` sees the step before which a training was stopped.
    `snapshots`: weights are stored every so many steps, too; no number of the run depends on that.
    """
    record = Record(home / run_id(spec))
    if record.ended is not None:
        return _reused(record, on_row)
    if record.texts and (record.folder / "spec.json").exists():
        spec = record.spec  # the same one, and it needs no text but what the record carries
    chosen = _path(spec, record, device, path)
    with Writer(spec, home, environment(device, chosen)) as writer:
        if writer.sealed:  # another process finished it while this one was beginning
            return _reused(Record(record.folder), on_row)
        for row in Record(record.folder).rows:
            on_row(row)
        if isinstance(spec, Train):
            _train(spec, writer, device, chosen, on_row, stop, storing(snapshots, on_moment), on_stop)
        else:
            _measure(spec, writer, chosen, on_row, stop)
        writer.end("finished")
    return Record(record.folder)


def _reused(record: Record, on_row: OnRow) -> Record:
    if not record.finished:
        raise EngramError(f"run {record.id} has already ended: {(record.ended or {})['end']}")
    for row in record.rows:
        on_row(row)
    return record


def _path(spec: Spec, record: Record, device: str, wanted: str) -> str:
    """A resumed run keeps the path it began on, so that its numbers stay the same to the byte."""
    begun = record.env["sittings"][0]["path"] if (record.folder / "env.json").exists() else wanted
    try:
        return path_of(spec, device, begun if wanted == "auto" else wanted)
    except EngramError as error:
        if wanted != "auto" or begun != "fast":
            raise
        raise EngramError(
            f"run {record.id} was begun on the fast path, which is not available here ({error}); "
            "continue with --path reference, or start again in another folder (ENGRAM_HOME)"
        ) from None


def path_of(spec: Spec, device: str = "cpu", wanted: str = "auto") -> str:
    """How this Spec is computed here; a Check has only one way."""
    if isinstance(spec, Search):
        return spec.kind.choose_path(wanted, spec.model)
    return choose_path(wanted, spec.model, spec.plan, device) if isinstance(spec, Train) else "none"


def fresh_rows(spec: Spec, path: str) -> Iterator[Row]:
    """The rows of a Spec from its beginning; nothing is stored."""
    if isinstance(spec, Train):
        return (row for _, row in measured_steps(spec, path=path))
    return search_rows(spec, path) if isinstance(spec, Search) else law_rows(spec)


def _train(
    spec: Train,
    writer: Writer,
    device: str,
    path: str,
    on_row: OnRow,
    stop: Stop,
    on_moment: OnMoment,
    on_stop: OnMoment,
) -> None:
    snapshots = snapshot_steps(spec)
    refuse_lost(Record(writer.folder), spec, writer.state.step)
    try:
        for moment, row in measured_steps(spec, device, path, writer.state, Record(writer.folder).snapshot):
            if stop():
                writer.save(moment.step, moment.state)
                on_stop(writer, moment)
                raise Interrupted([writer.record.id], moment.step)
            writer.save_if_due(moment.step, moment.state)
            writer.append(row)
            on_row(row)
            if moment.step in snapshots:
                writer.snapshot(moment.step, moment.weights)
            on_moment(writer, moment)
    except Diverged as error:
        writer.end(str(error))
        raise EngramError(f"run {writer.record.id}: {error}") from None


def refuse_lost(record: Record, spec: Train, before: int) -> None:
    """Weights from before the state do not come again: what was lost is said now, not after hours."""
    lost = [step for step in sorted(snapshot_steps(spec)) if step < before and step not in record.snapshot_steps]
    if lost:
        raise corrupt(record.place, f"snapshots/{lost[0]:06d}.safetensors is missing")


def storing(every: int | None, on_moment: OnMoment) -> OnMoment:
    """Like `on_moment`; weights are stored every so many steps besides."""
    if every is None:
        return on_moment

    def store(writer: Writer, moment: Moment) -> None:
        if moment.step % every == 0 and moment.step not in writer.record.snapshot_steps:
            writer.snapshot(moment.step, moment.weights)
        on_moment(writer, moment)

    return store


def snapshot_steps(spec: Train) -> set[int]:
    """Steps whose weights are kept: 0, 1, 2, 4, 8, …, the end, where stages begin, at events, and by the plan."""
    steps = {0, spec.steps, *(2**k for k in range(spec.steps.bit_length())), *(s.step for s in spec.plan.stages)}
    steps |= set(range(0, spec.steps, spec.plan.snapshot_every)) if spec.plan.snapshot_every else set()
    return steps | {step for event in spec.events for step in (event.step, *event.earlier.values())}


def _measure(spec: Check | Search, writer: Writer, path: str, on_row: OnRow, stop: Stop) -> None:
    """A Check keeps no state: an interrupted one starts again. A Search keeps its rows: they are its answers so far."""
    known = Record(writer.folder).rows
    try:
        for row in search_rows(spec, path, known, stop) if isinstance(spec, Search) else law_rows(spec, stop):
            writer.append(row)
            if isinstance(spec, Search):
                writer.save(row["step"] + 1, {})
            on_row(row)
    except Interrupted:
        raise Interrupted([writer.record.id]) from None


def law_rows(spec: Check, stop: Stop = lambda: False) -> Iterator[Row]:
    for index, values in enumerate(spec.function(draws=spec.draws, seed=spec.seed, **spec.sizes)):
        if stop():
            raise Interrupted([])
        yield {"step": index} | values


def search_rows(spec: Search, path: str, known: Sequence[Row] = (), stop: Stop = lambda: False) -> Iterator[Row]:
    """The size that was tried and the outcome; `known` rows are not tried again."""
    asking, step = bisection(*spec.bracket, 1 + spec.tolerance), 0
    n = next(asking)
    while True:
        rows = list(known[step : step + spec.votes])
        if any(row.get("n") != n or row.get("vote") != vote for vote, row in enumerate(rows)):
            fix = f"remove the run (engram runs rm {run_id(spec)}) and run it again"
            raise EngramError(f"run {run_id(spec)}: row {step} answers another question; {fix}")
        if len(rows) < spec.votes:  # all votes of a size again: how many share a product can change a digit
            for row in tried(spec, step, n, path, stop)[len(rows) :]:
                rows.append(row)
                yield row
        step += spec.votes
        try:
            n = asking.send(spec.passed([row["accuracy"] for row in rows]) != spec.rises)
        except StopIteration:
            return


def tried(spec: Search, step: int, n: int, path: str, stop: Stop = lambda: False) -> list[Row]:
    """The rows of all votes at one size. Every vote has its own codebook; the first is that of the seed."""
    outcomes = spec.kind.trial(spec, n, [spec.seed + (vote << 32) for vote in range(spec.votes)], path, stop)
    return [{"step": step + vote, "n": n, "vote": vote} | outcome for vote, outcome in enumerate(outcomes)]


def environment(device: str, path: str) -> dict[str, Any]:
    """What may change the last digit of a number."""
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    machine["processor"] = processor()
    how = {"device": device, "threads": torch.get_num_threads(), "path": path, "pid": os.getpid()}
    return _versions() | {"commit": commit_of_sources(), "registration": in_force()} | machine | how


CPUINFO = Path("/proc/cpuinfo")  # of Linux
KIND = ("model name", "cpu family", "model", "stepping")


@lru_cache(maxsize=1)
def processor() -> str:
    """Which one, and with which instructions torch uses it: libraries choose by that how they sum, and so round."""
    lines = CPUINFO.read_text().partition("\n\n")[0].splitlines() if CPUINFO.exists() else []
    about = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    kind = " ".join(about[name] for name in KIND if name in about) or platform.processor() or platform.machine()
    return f"{kind} {torch.backends.cpu.get_cpu_capability()}"


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("engram", "torch", "numpy")}


@lru_cache(maxsize=1)
def commit_of_sources() -> str | None:
    """The commit of the source tree, if Engram runs from one."""
    tree = Path(__file__).parents[3]
    if not (tree / ".git").exists():
        return None
    command = ["git", "-C", str(tree), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None
    except OSError:  # no git here
        return None

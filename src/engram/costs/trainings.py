"""What a training costs: a few of its steps, each of its probes and one of its snapshots, multiplied out."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from statistics import mean

import torch

from engram.costs import flops
from engram.costs.cost import Cost, cpu, one_thread, scratch, size_of
from engram.probes.probe import Probe
from engram.records import files
from engram.records.forward import Walked, walk
from engram.records.state import State
from engram.records.writer import Writer
from engram.runner.execute import environment, path_of, snapshot_steps
from engram.runner.training import first_weights, look, probes_of
from engram.specs import Train

WARM = 2  # first steps of a phase: they set up, and fetch fresh memory
MOST_STEPS, SECONDS = 40, 1.0  # that are timed in each phase, whichever is reached first; at least LEAST_STEPS
LEAST_STEPS = 3
DEAR = 8.0  # seconds of the first steps after which the second is enough


@dataclass(frozen=True)
class Phase:
    """Steps that cost the same: no stage begins and no matrix thaws between them."""

    steps: int
    first: float  # seconds of its first step, in which everything is set up
    step: float  # seconds of each other one, its row written
    flops: float
    row: int  # bytes of a row without probes
    last: Walked

    @property
    def set_up(self) -> float:
        return max(0.0, self.first - self.step)


@dataclass(frozen=True)
class Probed:
    """One probe: seconds of its first look, of each later one, how often it is due, bytes that it adds to a row."""

    first: float
    later: float
    times: int
    bytes: int

    @property
    def seconds(self) -> float:
        return self.first + self.later * (self.times - 1)


def of_training(spec: Train, path: str = "auto") -> Cost:
    """On the path that would be chosen, with one thread."""
    chosen = path_of(spec, wanted=path)
    with one_thread(), scratch() as home, Writer(spec, home, environment("cpu", chosen)) as writer:
        phases = [_phase(spec, chosen, writer, begin, end) for begin, end in pairwise(_turns(spec))]
        probes = [_probed(spec, phases[-1].last, probe) for probe in probes_of(phases[-1].last.now)]
        began = cpu()
        writer.snapshot(0, phases[-1].last.moment.weights)
        stored, snapshots = cpu() - began, len(snapshot_steps(spec))
        about = sum(_fixed(writer))
        weights = size_of(writer.folder / "snapshots")
    seconds = phases[0].set_up + sum(phase.step * phase.steps for phase in phases)
    rows = sum(phase.row * phase.steps for phase in phases) + sum(one.bytes * one.times for one in probes)
    return Cost(
        seconds + sum(one.seconds for one in probes) + stored * snapshots,
        sum(phase.flops * phase.steps for phase in phases),
        about + rows + weights * snapshots,
        "slices",
    )


def _turns(spec: Train) -> list[int]:
    """Steps at which another phase begins, and the end."""
    plan = spec.plan
    changes = {0, *(stage.step for stage in plan.stages), *plan.frozen_until.values(), *(e.step for e in spec.events)}
    return [*sorted(step for step in changes if step <= plan.steps), plan.steps + 1]


def _phase(spec: Train, path: str, writer: Writer, begin: int, end: int) -> Phase:
    """From the initial weights: what a step costs does not depend on what has been learned."""
    before = sum(event.step < begin for event in spec.events)
    steps = walk(spec, "cpu", path, State(begin, before))
    spent, rows, last = list[float](), list[int](), None
    for at in _timed(islice(steps, end - begin), spec, writer, spent, rows):
        last = at
    assert last is not None
    names = last.now.plan.trained_at(begin)
    products = flops.of_step(last.now, last.w, names) if names else 0.0
    return Phase(end - begin, spent[0], mean(spent[WARM:] or spent[-1:]), products, round(_row_bytes(spec, rows)), last)


def _timed(
    steps: Iterator[Walked], spec: Train, writer: Writer, spent: list[float], rows: list[int]
) -> Iterator[Walked]:
    """Seconds of each step with the writing of its row, until they are enough."""
    began = cpu()
    for at in steps:
        kept = {"step": at.moment.step} | spec.plan.kept(at.moment.step, at.moment.metrics)
        writer.append(kept)
        spent.append(cpu() - began)
        rows.append(len(files.line_of(kept)))
        yield at
        timed = spent[WARM:]
        enough = len(timed) >= LEAST_STEPS and sum(timed) > SECONDS
        if enough or len(timed) >= MOST_STEPS or (len(spent) > 1 and sum(spent) > DEAR):
            return
        began = cpu()


TIMING_LINE = 34  # bytes beside each row: its step, and seconds since the beginning


def _row_bytes(spec: Train, rows: list[int]) -> float:
    """Of a row and its line of timing; groups stand in some rows only."""
    return TIMING_LINE + min(rows) + (max(rows) - min(rows)) / spec.plan.groups_every


@torch.no_grad()
def _probed(spec: Train, at: Walked, probe: Probe) -> Probed:
    """A second look is cheaper where the first one has prepared something."""
    seen = look(at.now, at.w, at.gradients, partial(first_weights, spec, at.w))
    times = sum(probe.is_due(step, spec.steps) for step in range(spec.steps + 1))
    began = cpu()
    columns = probe.measure(seen)
    first = later = cpu() - began
    if times > 1:
        probe.measure(seen)
        later = cpu() - began - first
    return Probed(first, later, times, len(files.line_of(columns)))


def _fixed(writer: Writer) -> Iterator[int]:
    """Bytes of all files that do not grow with the steps."""
    grow = ("rows.jsonl", "timing.jsonl")
    found = (file for file in writer.folder.rglob("*") if file.is_file() and file.parent.name != "snapshots")
    yield from (file.stat().st_size for file in found if file.name not in grow)

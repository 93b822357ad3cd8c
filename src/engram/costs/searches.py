"""What a search costs whose trials are trainings: seconds of a step at two sizes, times the steps of its trials."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from statistics import mean

from engram.claims.index import Index
from engram.costs.cost import Cost, cpu, one_thread
from engram.costs.flops import counted
from engram.learning import FreshBatch, FullBatch
from engram.learning.bisection import bisection
from engram.records import files
from engram.runner.execute import path_of, tried
from engram.specs import Search
from engram.specs.encode import digest_of, encode
from engram.specs.spec import run_id

Trials = Sequence[tuple[int, int]]  # the size of each trial, and the training steps that it took
LOOKS = 2  # checks of the accuracy up to which a slice of a trial is trained
UNREACHED = 1.0  # a target that no training passes, so that a slice is not ended early
FILES, ROW = 2500, 130  # bytes of a record beside its Spec and rows; of a row with its line of timing


@dataclass(frozen=True)
class Slice:
    """A trial at one size: seconds to set it up, and of each step of its training."""

    set_up: float
    step: float


def of_search(spec: Search, trials: Trials) -> Cost:
    """Between the smallest and the largest size that is tried, cost grows with a power of the size."""
    path = path_of(spec)
    sizes = sorted({n for n, _ in trials})
    with one_thread():
        known = {n: _slice(spec, n, path) for n in {sizes[0], sizes[-1]}}
        products = _flops_of_step(spec, sizes[len(sizes) // 2])
    seconds = sum(_between(known, n, "set_up") + _between(known, n, "step") * steps for n, steps in trials)
    steps = sum(steps for _, steps in trials)
    size = FILES + len(str(encode(spec))) + ROW * len(trials) * spec.votes
    return Cost(seconds, products * steps, size, "slices")


def trials_of(spec: Search, index: Index) -> Trials:
    """As a committed record of any seed has them; else those of a search whose answer is in the middle."""
    seeds = sorted(index.seeds.get(digest_of(spec.model_copy(update={"seed": 0})), ()))
    found = [index.found.get(run_id(spec.model_copy(update={"seed": seed}))) for seed in seeds]
    finished = [one.record.rows for one in found if one and one.finished]
    if not finished:
        return [(n, _plan(spec).steps) for n in _middle(spec)]
    each = [_per_size(rows) for rows in finished]
    typical = sorted(each, key=lambda trials: sum(steps for _, steps in trials))
    return typical[len(typical) // 2]


def _per_size(rows: Sequence[files.Row]) -> Trials:
    """Votes share a training: its steps are those of the longest."""
    by_size: dict[int, list[int]] = {}
    for row in rows:
        by_size.setdefault(row["n"], []).append(row.get("steps", 0))
    return [(n, max(steps)) for n, steps in by_size.items()]


def _middle(spec: Search) -> Iterator[int]:
    """The sizes of a search that finds the middle of its bracket."""
    low, high = spec.bracket
    asking, answer = bisection(low, high, 1 + spec.tolerance), (low * high) ** 0.5
    n = next(asking)
    while True:
        yield n
        try:
            n = asking.send(n <= answer)
        except StopIteration:
            return


def _slice(spec: Search, n: int, path: str) -> Slice:
    """Two lengths of the same training tell its set-up from its steps; the first call does not count."""
    every = _plan(spec).check_every
    _seconds(spec, n, path, every)
    short, long = (_seconds(spec, n, path, looks * every) for looks in (1, 1 + LOOKS))
    step = max(0.0, long - short) / (LOOKS * every)
    return Slice(max(0.0, short - step * every), step)


def _plan(spec: Search) -> FullBatch | FreshBatch:
    assert isinstance(spec.plan, FullBatch | FreshBatch)
    return spec.plan


def _seconds(spec: Search, n: int, path: str, steps: int) -> float:
    began = cpu()
    tried(_shortened(spec, steps), 0, n, path)
    return cpu() - began


def _shortened(spec: Search, steps: int) -> Search:
    plan = _plan(spec).model_copy(update={"steps": steps, "hopeless": ()})
    return spec.model_copy(update={"plan": plan, "target": UNREACHED})


def _flops_of_step(spec: Search, n: int) -> float:
    """Of the readable path, checks of the accuracy left out."""
    one, two = (counted(lambda k=k: tried(_shortened(spec, k), 0, n, "reference")) for k in (1, 2))
    return two - one


def _between(known: dict[int, Slice], n: int, part: str) -> float:
    """A power law through both ends."""
    (low, first), (high, last) = min(known.items()), max(known.items())
    a, b = getattr(first, part), getattr(last, part)
    if low == high or min(a, b) <= 0:
        return mean((a, b))
    return a * (b / a) ** (log(n / low) / log(high / low))

"""The cost of each Spec of a list: run whole where that is cheap, from slices where not, else from other sizes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engram.claims.index import Index
from engram.costs.cost import Cost, TooLong, cpu, one_thread, scratch, size_of, within
from engram.costs.searches import of_search, trials_of
from engram.costs.sizes import extrapolated, kind, work
from engram.costs.trainings import of_training
from engram.errors import EngramError
from engram.runner.execute import execute
from engram.specs import Check, Spec, Train
from engram.specs.encode import digest_of

ONE, KIND = 2.0, 20.0  # seconds for a whole run or a part of its draws; for all of one kind
BRIEF = 0.5  # seconds: what is shorter runs twice, so that nothing is loaded in the one that counts
SET_UP = 120.0  # seconds for the slices of one run: what takes longer is not measured
FIRST = 100.0  # seconds for the fewest draws, which cannot be cut
TIMES_MORE = 4  # draws, until their seconds tell
Costs = dict[str, Cost | str]  # in words, why one is not measured
TOO_LONG = f"the least that can be measured of it takes more than {SET_UP:.0f} s"


def alike(spec: Spec) -> str:
    """The same for Specs that differ in nothing that costs: seeds, learning rates, targets."""
    plain = spec.model_copy(update={"seed": 0})
    if isinstance(plain, Train):
        plan = plain.plan
        same = plan.optimiser.model_copy(update={"lr": 1.0})
        plain = plain.model_copy(update={"plan": plan.model_copy(update={"optimiser": same, "rate": ()})})
    return digest_of(plain)


@dataclass
class Measured:
    """What has been measured, by `alike`, or why it was not. Kinds are measured from the smallest on."""

    index: Index
    known: Costs = field(default_factory=dict)
    run: dict[Any, dict[str, tuple[Spec, Cost]]] = field(default_factory=dict)  # by kind, not from other sizes

    def of(self, specs: Iterable[Spec]) -> list[Cost | str]:
        asked = list(specs)
        for of, same in _by_kind(asked).items():
            self._measure(of, same)
        return [self.known[alike(spec)] for spec in asked]

    def _measure(self, of: Any, same: Sequence[Spec]) -> None:
        """Of one kind, until the time for it is over; the others from these, and from those of other experiments."""
        began = cpu()
        for spec in (one for one in same if alike(one) not in self.known):
            in_time = isinstance(spec, Train) or cpu() - began < KIND
            self.known[alike(spec)] = measured(spec, self.index) if in_time else TOO_LONG
        run = self.run.setdefault(of, {})
        run |= {alike(s): (s, cost) for s in same if isinstance(cost := self.known[alike(s)], Cost) and cost.is_run}
        left = [spec for spec in same if self.known[alike(spec)] == TOO_LONG]
        self.known |= {alike(spec): extrapolated(spec, [*run.values()]) or TOO_LONG for spec in left}


def _by_kind(specs: Sequence[Spec]) -> Mapping[Any, list[Spec]]:
    """Each of those that are alike once; trainings are each measured: one is a kind of its own."""
    kinds = dict[Any, list[Spec]]()
    for spec in sorted({alike(spec): spec for spec in specs}.values(), key=work):
        kinds.setdefault(alike(spec) if isinstance(spec, Train) else kind(spec), []).append(spec)
    return kinds


def measured(spec: Spec, index: Index) -> Cost | str:
    """In words, why it is not: it takes too long, or needs what is not here."""
    try:
        if isinstance(spec, Check):
            return of_draws(spec) or TOO_LONG
        sliced = isinstance(spec, Train) or spec.plan is not None
        with within(SET_UP if sliced else KIND):
            if isinstance(spec, Train):
                return of_training(spec)
            return of_search(spec, trials_of(spec, index)) if sliced else whole(spec)
    except TooLong:
        return TOO_LONG
    except EngramError as error:
        return str(error)


def whole(spec: Spec) -> Cost:
    """The run itself, its record thrown away."""
    cost = _run(spec)
    return cost if cost.seconds > BRIEF else _run(spec)


def _run(spec: Spec) -> Cost:
    with scratch() as home, one_thread():
        began = cpu()
        record = execute(spec, home)
        return Cost(cpu() - began, None, size_of(record.folder), "whole")


def of_draws(spec: Check) -> Cost | None:
    """More and more draws, all of them where that is cheap; else a straight line through the last two."""
    points = dict[int, Cost]()
    for draws in _ladder(spec.draws, points):
        try:
            with within(4 * ONE if points else FIRST):
                points[draws] = whole(spec.model_copy(update={"draws": draws}))
        except TooLong:
            break
        except Exception:  # some laws need more draws than so few
            if draws == spec.draws:
                raise
    return _line(points, spec.draws) if points else None


def _ladder(most: int, points: dict[int, Cost]) -> Iterator[int]:
    """Numbers of draws, as long as the line through those before says that the next is cheap."""
    draws = 1
    while draws < most:
        yield draws
        draws *= 2 if draws in points and points[draws].seconds > ONE / 2 else TIMES_MORE
        spent = max((cost.seconds for cost in points.values()), default=0.0)  # a short one tells little of its slope
        if len(points) > 1 and spent > ONE / 2 and _line(points, min(draws, most)).seconds > ONE:
            return
    yield most


def _line(points: dict[int, Cost], draws: int) -> Cost:
    """Through the last two, or through nothing and the only one."""
    if draws in points:
        return points[draws]
    nothing = (0, Cost(0.0, None, 0.0, "whole"))
    (d, before), (e, last) = [nothing, *points.items()][-2:]
    more = (draws - e) / (e - d)
    seconds, size = max(0.0, last.seconds - before.seconds), max(0.0, last.bytes - before.bytes)
    return Cost(last.seconds + seconds * more, None, last.bytes + size * more, "slices")

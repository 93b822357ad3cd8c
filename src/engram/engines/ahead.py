"""What a command is about to compute: which runs are here, which are left, and about how long these take."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from engram.claims.costs import identity
from engram.claims.experiment import Experiment, Scale
from engram.engines import Engine
from engram.engines.local import Local
from engram.errors import EngramError
from engram.records import files
from engram.records import state as states
from engram.records.state import State
from engram.specs import Check, Spec, Train
from engram.specs.settings import all_with_settings
from engram.specs.spec import run_id

LOOKED_AT = 20  # seeds; more are taken to be like these
LONG = 3600.0  # seconds: what takes longer is not begun by a slip of the hand
MANY = 200  # runs that are not begun by a slip of the hand where nobody knows what one takes


@dataclass(frozen=True)
class Ahead:
    """Runs that are finished here, begun, and left; seconds until all are over, None where nothing tells.

    elsewhere   runs that another process is writing
    """

    here: int
    begun: int
    left: int
    seconds: float | None
    elsewhere: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        return self.here + self.begun + self.left + len(self.elsewhere)

    @property
    def blocked(self) -> str | None:
        """A run that another process is writing, where there is nothing else to compute."""
        return self.elsewhere[0] if self.elsewhere and not self.begun + self.left else None

    @property
    def is_long(self) -> bool:
        """Whether a person should be asked first."""
        return is_long(self.begun + self.left, self.seconds)

    @property
    def sentence(self) -> str:
        """5 runs: 3 are here, 2 to compute: about 40 s"""
        to_do = self.begun + self.left
        runs = f"{self.runs} run{'s' * (self.runs != 1)}"
        if not to_do:
            return f"{runs}: all {'are' if self.runs > 1 else 'is'} here, nothing to compute"
        parts = [(self.here, "here already"), (self.begun, "to resume"), (self.left, "to compute")]
        parts.insert(1, (len(self.elsewhere), "being written by another process"))
        told = ", ".join(f"{n} {words}" for n, words in parts if n)
        return f"{runs}: {told}; {in_words(self.seconds)}"


def is_long(runs: int, seconds: float | None) -> bool:
    """Whether a person should be asked before so many runs that take so long."""
    return runs > MANY if seconds is None else seconds > LONG


def in_words(seconds: float | None) -> str:
    """
    >>> in_words(42.0), in_words(200.0), in_words(9000.0), in_words(3e6), in_words(1e12), in_words(None)
    ('about 42 s', 'about 3 min', 'about 2.5 h', 'about 35 days', 'about 31688 years', 'how long is not known')
    """
    if seconds is None:
        return "how long is not known"
    if seconds < 1:
        return "less than a second"
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48), ("days", 86400, 1000)):
        if seconds < most * length:
            return f"about {seconds / length:.{int(unit == 'h' and seconds < 36000)}f} {unit}"
    return f"about {seconds / 86400 / 365.25:.0f} years"


def ahead(
    experiment: Experiment,
    scale: Scale,
    seeds: Sequence[int],
    settings: dict[str, Any],
    home: Path,
    engine: Engine | None = None,
) -> Ahead:
    """What `engram run` has before it; on this machine unless an engine is given."""
    few = list(seeds[:LOOKED_AT])
    plain = experiment.specs(scale, few)
    asked = {run_id(new): (new, old) for new, old in zip(all_with_settings(plain, settings), plain, strict=True)}
    states = {id: _state(home / id) for id in asked}
    to_do = [asked[id] for id, state in states.items() if state in ("begun", "left")]
    took = _took(home, [asked[id][0] for id, state in states.items() if state == "here"])
    work = _work(experiment, scale, few, to_do, took, home)
    found, more = list(states.values()), len(seeds) / len(few)
    seconds = None if work is None else (engine or Local(home)).wall(_of_all(work, more))
    here, begun = found.count("here"), found.count("begun")
    elsewhere = tuple(id for id, state in states.items() if state == "elsewhere")
    left = round(len(found) * more) - here - begun - len(elsewhere)
    return Ahead(here, begun, left, seconds, elsewhere)


def _of_all(work: list[float], more: float) -> list[float]:
    """Of so many times the seeds that were looked at."""
    whole = int(more)
    return work * whole + ([seconds * (more - whole) for seconds in work] if more > whole else [])


def _state(folder: Path) -> str:
    if (folder / "digest.json").exists():
        return "here"
    if files.is_held(folder / "lock", patience=0.1):
        return "elsewhere"
    return "begun" if (folder / "spec.json").exists() else "left"


def _work(
    experiment: Experiment,
    scale: Scale,
    seeds: Sequence[int],
    to_do: Sequence[tuple[Spec, Spec]],
    took: dict[str, float],
    home: Path,
) -> list[float] | None:
    """Seconds of one core for each run; None where nothing tells.

    The same on another seed is the best witness, else what was measured, or the file says.
    """
    stated = _stated(experiment, scale, seeds) if to_do else lambda spec: 0.0
    each = [(took.get(identity(new)) or _times(stated(old), cost(new) / cost(old)), new) for new, old in to_do]
    work = [seconds * share_left(new, home) for seconds, new in each if seconds is not None]
    return work if len(work) == len(to_do) else None


def share_left(spec: Spec, home: Path) -> float:
    """Of the steps of a run, those after the state from which it would go on; all where no whole state is there."""
    with suppress(EngramError):
        if (home / run_id(spec) / states.NAME).exists():
            return max(0.0, 1 - State.read(home / run_id(spec)).step / max(1, spec.steps))
    return 1.0


def _times(seconds: float | None, more: float) -> float | None:
    return None if seconds is None else seconds * more


def _stated(experiment: Experiment, scale: Scale, seeds: Sequence[int]) -> Callable[[Spec], float | None]:
    """Seconds of one core for a run, measured or as TIMES says it; None where nothing does."""
    at: Scale = "quick" if scale == "smoke" else scale  # of a smoke run most is its beginning, which does not grow
    own = [spec for spec in experiment.specs(at, seeds[:1]) if spec.seed == seeds[0]]
    smaller = sum(map(cost, experiment.specs(scale, seeds[:1]))) / sum(map(cost, experiment.specs(at, seeds[:1])))
    try:
        experiment.minutes(at)
    except EngramError:
        return lambda spec: None
    return lambda spec: experiment.seconds_of(spec, at, len(own)) * smaller


def cost(spec: Spec) -> float:
    """What the time of a run grows with, to compare one with the same under other settings."""
    if isinstance(spec, Check):
        return float(spec.draws)
    if not isinstance(spec, Train):
        return 1.0
    layers = len(getattr(spec.model, "layers", ())) or 1
    return float(spec.plan.steps * spec.plan.batch * spec.task.T * getattr(spec.model, "d", 1) * layers)


def _took(home: Path, finished: Sequence[Spec]) -> dict[str, float]:
    """Seconds of one core, by the identity without the seed."""
    found: dict[str, list[float]] = {}
    for spec in finished:
        if seconds := _core_seconds(home / run_id(spec)):
            found.setdefault(identity(spec), []).append(seconds)
    return {identity: mean(some) for identity, some in found.items()}


def _core_seconds(folder: Path) -> float:
    return seconds_so_far(folder) * _threads(folder)


def seconds_so_far(folder: Path) -> float:
    """What a run has taken; 0 where nothing is known, as of packed records. A clock is never worth an error."""
    try:
        return float(json.loads(files.complete_lines((folder / "timing.jsonl").read_bytes())[-1])["seconds"])
    except (OSError, LookupError, ValueError, TypeError):
        return 0.0


def _threads(folder: Path) -> int:
    try:
        return int(json.loads((folder / "env.json").read_bytes())["sittings"][0]["threads"])
    except (OSError, LookupError, ValueError, TypeError):
        return 1

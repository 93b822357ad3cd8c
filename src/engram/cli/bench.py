"""`engram bench`: each line as soon as it is measured."""

import time
from collections.abc import Iterator
from typing import Any

from engram.cli.output import answer, say, tell
from engram.errors import EngramError


def bench(*names: str, json: bool = False) -> None:
    """Measure speed and memory against straightforward baselines, as ratios within one run.

    Each benchmark takes at most about a minute on a quiet machine, and prints its lines as soon as it has them.

    Parameters
    ----------
    names
        Which benchmarks; all unless some are named. An unknown name lists them.
    """
    from engram.bench.suite import BENCHMARKS
    from engram.errors import did_you_mean

    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        hint = did_you_mean(unknown[0], BENCHMARKS)
        raise EngramError(f"bench: unknown {unknown[0]!r}; {hint}allowed: {', '.join(BENCHMARKS)}")
    began, measured = time.monotonic(), []
    for line in _measured(names or tuple(BENCHMARKS)):
        measured.append(line)
        if not json:
            tell(*in_words(line))
    seconds = round(time.monotonic() - began, 1)
    answer({"benchmarks": measured, "seconds": seconds}) if json else tell("", f"measured in {_clock(seconds)}")


def _measured(names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Line by line; says before each what is measured, and how long the rest will take at this pace."""
    from engram.bench.suite import BENCHMARKS, Bench

    machine, began = Bench(), time.monotonic()
    most = f", at most about {len(names)} min in all" if len(names) > 1 else ", at most about a minute"
    for done, name in enumerate(names):
        pace = (time.monotonic() - began) / done if done else None
        left = f", about {_clock(pace * (len(names) - done))} left" if pace else most
        say(f"measuring {name} ({done + 1} of {len(names)}{left})")
        for line in BENCHMARKS[name](machine):
            yield line.to_json()


def in_words(line: dict[str, Any]) -> list[str]:
    """Our value, the baseline's, how many times better ours is; below it what the baseline is."""
    values = f"{line['value']:g} {line['unit']}, baseline {line['baseline']:g}"
    speed = "" if line["gflops"] is None else f" · {line['gflops']:g} GFLOP/s"
    return [f"{line['name']:<18} {line['ratio']:>8.3g} ×   {values}{speed}", f"    {line['about']}"]


def _clock(seconds: float) -> str:
    from engram.show.progress import clock

    return clock(seconds)

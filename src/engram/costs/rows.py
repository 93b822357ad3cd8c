"""Costs as rows for a person or a program, and the page docs/costs.md."""

from collections.abc import Iterable, Sequence
from typing import Any

from engram.claims.costs import CORES, MACHINE, Known, told
from engram.claims.experiment import Experiment, Scale
from engram.costs.estimate import Spread, spread

SECONDS_AN_HOUR = 3600
HEADS = ("experiment", "scale", "a seed", "seeds", "core-h", "on {}", "by", "TFLOP", "MB", "measured")
Found = Sequence[tuple[Experiment, Scale, Known]]

PAGE = f"""# What experiments cost

<!-- written by `make costs` -->

Measured on {MACHINE}, in CPU seconds of one thread, on slices
of every run (`engram cost --fresh` does it on yours): some steps of a training after its first ones, each of its
probes, one snapshot; a step of a search at two sizes, times the steps that its trials took in a committed record; a few
draws of a check, or all of it where that is cheap.

- *a seed*: its time on {CORES} cores, where two runs share them; + what all seeds have in common, which is run once
- *core-h*: core-hours of all registered seeds
- *on …*: their time on so many cores. A run is not spread over cores: the *longest* run is the limit, or the *total*
- *TFLOP*: matrix products of the trainings of a seed in the readable pass, as torch counts them. The compiled path
  needs fewer; what laws compute with NumPy is not counted
- *MB*: records of a seed
- *measured*: the share of the seconds that was measured at these sizes; the rest was carried over from smaller ones by
  a power law

Starting Python and drawing figures come on top: some seconds for each command.
"""


def row(experiment: Experiment, scale: Scale, known: Known, cores: int) -> dict[str, Any]:
    """One experiment at one scale, as numbers."""
    seeds = experiment.least_seeds(scale)
    all_seeds = spread(known, seeds, cores)
    return {
        "experiment": experiment.name,
        "scale": scale,
        "seconds_a_seed": known.seconds,
        "seconds_once": known.once,
        "seeds": seeds,
        "core_hours": round(all_seeds.seconds / SECONDS_AN_HOUR, 4),
        "longest_run": known.longest,
        "cores": cores,
        "wall_seconds": round(all_seeds.wall, 2),
        "bottleneck": all_seeds.bottleneck,
        "flops": known.flops,
        "bytes": known.bytes,
        "measured": known.measured,
        "missing": known.missing,
    }


def total(found: Found, scale: Scale, cores: int) -> Spread:
    """All experiments of a scale; a run that several have counts once, with the one that is first."""
    seen, seconds, longest = set[str](), 0.0, 0.0
    for experiment, at, known in found:
        if at == scale:
            new = sum(cost for spec, cost in known.runs.items() if spec not in seen)
            share = new / (sum(known.runs.values()) or 1.0)
            seconds += share * spread(known, experiment.least_seeds(scale)).seconds
            longest, seen = max(longest, known.longest), seen | set(known.runs)
    return Spread(seconds, longest, cores)


def cells(about: dict[str, Any]) -> list[str]:
    """The same as words."""
    each = [told(about[name] / CORES) for name in ("seconds_a_seed", "seconds_once") if about[name]]
    flops, hours = about["flops"], about["core_hours"]
    return [
        about["experiment"],
        about["scale"],
        " + ".join(each) or "—",
        str(about["seeds"]),
        _short(hours),
        told(about["wall_seconds"]),
        about["bottleneck"],
        "—" if not flops else _short(flops / 1e12),
        _short(about["bytes"] / 1e6),
        f"{about['measured']:.0%}" + ("; part is not" if about["missing"] else ""),
    ]


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}" if value >= 0.001 else "0"


def heads(cores: int) -> list[str]:
    return [head.format(f"{cores:,}") for head in HEADS]


def summary(found: Found, cores: int) -> list[str]:
    """A line for each scale that is there."""
    scales: list[Scale] = list(dict.fromkeys(at for _, at, _ in found))
    return [_in_words(total(found, scale, cores), scale) for scale in scales]


def _in_words(all_runs: Spread, scale: Scale) -> str:
    hours = all_runs.seconds / SECONDS_AN_HOUR
    on_two = told(Spread(all_runs.seconds, all_runs.longest, CORES).wall)
    limit = "the longest run" if all_runs.bottleneck == "longest" else "the total"
    many = f"{told(all_runs.wall)} on {all_runs.cores:,}, limited by {limit}"
    return f"{scale}: {_short(hours)} core-hours, {on_two} on {CORES} cores, {many}"


def markdown(found: Found, cores: int) -> str:
    rows = [cells(row(experiment, scale, known, cores)) for experiment, scale, known in found]
    table = [_line(heads(cores)), _line(["---"] * len(HEADS)), *map(_line, rows)]
    missing = [f"- {e.name}, {scale}: {why}" for e, scale, known in found for why in known.missing]
    every = ["All registered seeds of all experiments; runs that several share count once:", ""]
    every += [f"- {line}" for line in summary(found, cores)]
    parts = [PAGE, *every, "", *table, *(["", "Not measured:", "", *missing] if missing else [])]
    return "\n".join(parts) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

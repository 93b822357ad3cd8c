"""What experiments cost, as it was measured (data/costs.json, which `make costs` writes)."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.specs import Spec
from engram.specs.encode import digest_of

FILE = Path(__file__).parent.parent / "data" / "costs.json"
CORES = 2  # of the machine for which times are told
MACHINE = "one core of a 2-core x86-64 machine of the laptop class"


@dataclass(frozen=True)
class Known:
    """Of one experiment at one scale, in seconds of one core.

    seconds    what each seed has of its own
    once       what all seeds share
    longest    its longest run, which cannot be spread over cores
    flops      of one seed's trainings, in the readable pass; None where products are not torch's
    bytes      of the records of one seed
    measured   the share of the seconds that was measured on runs of these very sizes
    runs       seconds by the identity of the Spec without its seed
    missing    why a part of it is not in these numbers
    """

    seconds: float
    once: float
    longest: float
    flops: float | None
    bytes: float
    measured: float
    runs: dict[str, float]
    missing: list[str]

    @property
    def minutes(self) -> float:
        """Of a seed on 2 cores; where seeds share all, of all."""
        return (self.seconds or self.once) / CORES / 60

    @property
    def words(self) -> str:
        """20 s a seed and 1 min once"""
        each = [f"{told(self.seconds / CORES)} a seed"] if self.seconds else []
        least = "at least " if self.missing else ""
        shared = [f"{told(self.once / CORES)} once"] if self.once > self.seconds / 20 else []
        return least + " and ".join(each + shared) if each or shared else "not measured"


def told(seconds: float) -> str:
    """
    >>> told(0.2), told(14.4), told(77), told(260), told(4000), told(20000), told(300000)
    ('1 s', '14 s', '80 s', '4 min', '70 min', '5.6 h', '3 days')
    """
    if seconds < 90:
        return f"{max(1, _two_digits(seconds)):.0f} s"
    if seconds < 90 * 60:
        return f"{_two_digits(seconds / 60):.0f} min"
    hours = seconds / 3600
    return f"{hours:.{int(hours < 10)}f} h" if hours < 48 else f"{hours / 24:.0f} days"


def _two_digits(value: float) -> float:
    """Whole up to twenty, then in tens, as one says a time."""
    return round(value) if value < 20 else round(value / 5) * 5 if value < 60 else round(value / 10) * 10


def identity(spec: Spec) -> str:
    """Of a Spec without its seed, in short."""
    return digest_of(spec.model_copy(update={"seed": 0}))[:10]


def known(name: str, scale: str) -> Known | None:
    """What `make costs` has found of an experiment that comes with Engram."""
    about = stored().get(name, {}).get(scale)
    return Known(**about) if about else None


@lru_cache(maxsize=1)
def stored() -> dict[str, dict[str, Any]]:
    """By experiment and scale."""
    return json.loads(FILE.read_bytes())["experiments"] if FILE.exists() else {}

"""Measures experiments and stores what they cost (`make costs`); what is stored stays until it is measured again.

python -m engram.costs.table birth memory.hebb
"""

import json
import sys
from typing import Any

from engram.claims import costs
from engram.claims.experiment import Experiment, Scale
from engram.claims.index import Index
from engram.costs.estimate import estimate, to_json
from engram.costs.measure import Measured
from engram.experiments import matching, names
from engram.records.files import COMMITTED, replace

SCALES: tuple[Scale, ...] = ("quick", "paper")


def measure(names: list[str]) -> None:
    """Experiment by experiment, each stored at once: what was stopped goes on with those that are named then."""
    measured = Measured(Index.of([COMMITTED]))
    for experiment in matching(names):
        for scale in SCALES:
            known = estimate(experiment, scale, measured)
            store(experiment, scale, to_json(known))
            told = f"{experiment.name} {scale}: {known.words}"
            print(told, *known.missing, sep="; ", file=sys.stderr, flush=True)


def store(experiment: Experiment, scale: Scale, about: dict[str, Any]) -> None:
    """Beside what is known of others; what is no longer an experiment goes."""
    costs.stored.cache_clear()
    kept = {name: of for name, of in costs.stored().items() if name in names()}
    kept[experiment.name] = kept.get(experiment.name, {}) | {scale: about}
    content = {"machine": costs.MACHINE, "experiments": dict(sorted(kept.items()))}
    replace(costs.FILE, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    measure(sys.argv[1:])

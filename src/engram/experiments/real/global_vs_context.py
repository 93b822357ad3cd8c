"""Which feed-forward part of a real model prefers " the" to the country: late layers without theirs, new templates.

SmolLM2-135M-Instruct reads prompts such as "Seville is a city in". Global knowledge of the language says " the",
knowledge of the city says its country. The feed-forward part (MLP) of one layer is taken away, and the lead log
p(country)/p(" the") is compared with that of the whole model. Each seed has 16 cities of its own, in four templates.

    engram run real.global-vs-context --seeds 10000-10004
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.experiments.real import SMOLLM2

TIMES = "there is one model of this size"
SOURCE = "talks, slide on LASER and “Madrid is located in” (Pythia-1B); our own study of SmolLM2-135M-Instruct"
CLAIMS = {
    "real.global-vs-context": "In SmolLM2-135M-Instruct the feed-forward part of layer 29 prefers “ the” to "
    "the country, that of layer 30 the country; those of 27 and 28 do neither, and layer 29 does not know the right "
    "country.",
}
LAYERS = {"smoke": (1, 4), "quick": (27, 30), "paper": (27, 30)}
CITIES = {"smoke": 3, "quick": 16, "paper": 16}  # of each seed
TEMPLATES = (1, 2, 3, 4)  # engram.tasks.countries.NEW_TEMPLATES
ENOUGH = 3  # templates in which layer 29 must do so
SHOWN = ("lead", "share", "p_country", "p_the")


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """At smoke scale random weights of ours take the place of the language model."""
    first, last = LAYERS[scale]
    if scale == "smoke":
        return {"dropped": checks("real.stand_in_dropped", seeds, CITIES[scale], first=first, last=last)}
    return {"dropped": checks("real.dropped", seeds, CITIES[scale], model=SMOLLM2, first=first, last=last)}


def claims(runs: Runs) -> Claimed:
    yield "real.global-vs-context", list(measures(runs["dropped"], LAYERS[runs.scale][1]))


def column(records: Records, layer: int, name: str) -> Float[np.ndarray, "seeds templates"]:
    """A number of every seed and template without the feed-forward part of a layer; 0: of the whole model."""
    rows = [[row for row in record.rows if row["layer"] == layer] for record in records]
    return np.array([[row[name] for row in of] for of in rows])


def change(records: Records, layer: int, name: str) -> Float[np.ndarray, "seeds templates"]:
    return column(records, layer, name) - column(records, 0, name)


def measures(records: Records, last: int) -> Measures:
    leads = {layer: change(records, layer, "lead") for layer in range(last - 3, last + 1)}
    third = np.sort(leads[last - 1], axis=1)[:, -ENOUGH]
    name = f"change of the lead without MLP {last - 1}, third largest of four templates"
    yield Measure.over_seeds(name, third.tolist(), low=1)
    for layer, band in {last: (-np.inf, -3.0), last - 3: (-0.8, 0.8), last - 2: (-0.8, 0.8)}.items():
        name = f"change of the lead without MLP {layer}, mean of four templates"
        yield Measure.over_seeds(name, leads[layer].mean(axis=1).tolist(), *band)
    share = change(records, last - 1, "share").mean(axis=1)
    name = f"change of the right country's share among countries without MLP {last - 1}"
    yield Measure.over_seeds(name, share.tolist(), -0.15, 0.15)


def table(runs: Runs) -> list[dict[str, Any]]:
    """Means over seeds, template by template."""
    records, (first, last) = runs["dropped"], LAYERS[runs.scale]
    return [
        {"template": t, "without MLP of layer": layer or "none"}
        | {name: round(float(column(records, layer, name)[:, t - 1].mean()), 3) for name in SHOWN}
        for t in TEMPLATES
        for layer in (0, *range(first, last + 1))
    ]


def figure(runs: Runs) -> Figure:
    from engram.show.real_facts import dropped_parts

    records, (first, last) = runs["dropped"], LAYERS[runs.scale]
    layers = range(first, last + 1)
    leads = {layer: change(records, layer, "lead") for layer in layers}
    shares = {layer: column(records, layer, "share") for layer in (0, *layers)}
    whose = "Random weights" if runs.scale == "smoke" else "SmolLM2-135M-Instruct (4-bit-derived)"
    return dropped_parts(leads, shares, f"{whose}, {len(records)} seeds with {CITIES[runs.scale]} cities each")

"""Where a run of the lab can begin: the trainings of all experiments, with their main fields."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from engram import experiments
from engram.claims.experiment import Experiment
from engram.errors import EngramError, did_you_mean
from engram.models import Transformer
from engram.records.record import walk
from engram.specs import Train
from engram.specs.settings import offered, setting, with_settings

MOST = 6  # trainings that one experiment offers
FIELDS = (
    "task.K",
    "task.T",
    "task.triggers",
    "task.outputs",
    "task.alpha",
    "task.noise",
    "task.S",
    "task.R",
    "task.D",
    "model.d",
    "plan.steps",
    "plan.batch",
    "plan.optimiser.lr",
    "plan.optimiser.momentum",
)
SILENT = ("seed", "plan.trained", "plan.at_end", "plan.attention_every")  # follow from others, or change no number


@cache
def presets() -> Mapping[str, Train]:
    """By name: an experiment, and a number where it has several trainings."""
    found: dict[str, Train] = {}
    for name in experiments.names():
        specs = [spec for spec in experiments.find(name).specs("quick", [0]) if isinstance(spec, Train)]
        for i, spec in enumerate(specs[:MOST], 1):
            found[name if len(specs) == 1 else f"{name} {i}"] = spec
    first = "birth.joint"
    return {first: found[first], **found}


def listed() -> list[dict[str, Any]]:
    return [
        {"name": name, "title": _experiment(name).lab[0], "about": _about(name), "fields": fields_of(spec)}
        for name, spec in presets().items()
    ]


def _experiment(preset: str) -> Experiment:
    return experiments.find(preset.split()[0])


def _about(name: str) -> str:
    """What the experiment is about, what to do in the lab, and what tells this training from its others."""
    about = " ".join(filter(None, (_experiment(name).about, _experiment(name).lab[1])))
    others = [_telling(spec) for other, spec in presets().items() if other.split()[0] == name.split()[0]]
    mine = _telling(presets()[name])
    own = [f"{field} = {value}" for field, value in mine.items() if any(o.get(field) != value for o in others)]
    return f"{about} Here: {', '.join(own)}." if own else about


def _telling(spec: Train) -> dict[str, str]:
    """Fields that a person would tell a training by."""
    layers = {"layers": str(len(spec.model.layers))} if isinstance(spec.model, Transformer) else {}
    rest = {field: str(value) for field, value in walk(spec) if not field.startswith(("model.layers", *SILENT))}
    return layers | rest


def fields_of(spec: Train) -> list[dict[str, Any]]:
    found = {name: offer for name in FIELDS if (offer := setting(spec, name)) is not None}
    return [{"name": name} | offered(offer) for name, offer in found.items()]


def chosen(name: str, seed: int, settings: Mapping[str, Any]) -> Train:
    """A preset with some fields set otherwise; what is wrong with them the Spec says itself."""
    if name not in presets():
        raise EngramError(f"preset: no {name!r}; {did_you_mean(name, presets())}the list of presets names all")
    for field in settings:
        if field not in FIELDS:
            raise EngramError(f"{field}: cannot be set here; allowed: {', '.join(FIELDS)}")
    return with_settings(presets()[name], {**settings, "seed": seed})

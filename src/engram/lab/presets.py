"""Where a run of the lab can begin: the trainings of all experiments, with their main fields."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from engram import experiments
from engram.claims.experiment import Experiment, unique
from engram.engines.local import cores
from engram.errors import EngramError, did_you_mean
from engram.lab.all_fields import read
from engram.models import Transformer
from engram.records.record import walk
from engram.specs import Train
from engram.specs.fields import fields
from engram.specs.settings import offered, setting, with_settings
from engram.tasks.bigram import Bigram

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
TELLING = (
    "layers",
    "task.triggers",
    "task.outputs",
    "task.alpha",
    "task.length",
    "task.k",
    "task.K",
    "model.d",
    "model.positions",
    "plan.optimiser.lr",
    "plan.batch",
    "plan.steps",
)  # what a person would tell trainings by, most telling first
MOST_TOLD = 3


class Preset(NamedTuple):
    """A training of an experiment; `words` tell it from the experiment's others."""

    experiment: Experiment
    spec: Train
    words: str


@cache
def presets() -> Mapping[str, Preset]:
    """By name: an experiment, and a number where it has several trainings."""
    found = {name: preset for experiment in experiments.names() for name, preset in _of(experiments.find(experiment))}
    first = "birth.joint"
    return {first: found[first], **found}


def _of(experiment: Experiment) -> Iterator[tuple[str, Preset]]:
    labelled = experiment.labelled("quick", [0])
    trainings = [spec for spec in unique(labelled) if isinstance(spec, Train)]
    told = [_telling(spec) for spec in trainings]
    for i, spec in enumerate(trainings[:MOST]):
        label = next(label for label, specs in labelled.items() if spec in specs)
        name = experiment.name if len(trainings) == 1 else f"{experiment.name} {i + 1}"
        yield name, Preset(experiment, spec, _words(label, told[i], told))


def _telling(spec: Train) -> dict[str, str]:
    """Fields by which a training can be told from others, as text."""
    layers = {"layers": len(spec.model.layers)} if isinstance(spec.model, Transformer) else {}
    known = layers | {field: value for field, value in walk(spec) if not isinstance(value, tuple | dict)}
    return {field: str(known[field]) for field in TELLING if field in known}


def _words(label: Any, mine: Mapping[str, str], all_of_them: Sequence[Mapping[str, str]]) -> str:
    """The label of the file, if it is words; numbers in a label are said with the fields that they stand for."""
    if isinstance(label, str) and label not in mine.values():
        return label
    parts = label if isinstance(label, tuple) else (label,)
    named = [part for part in parts if isinstance(part, str) and part not in mine.values()]
    others = [field for field in mine if any(one.get(field) != mine[field] for one in all_of_them)]
    if len(others) > 1 or named:
        others = [field for field in others if field != "plan.steps"]  # follows from what else is different
    return ", ".join([*named, *(_said(field, mine[field]) for field in others)][:MOST_TOLD])


def _said(field: str, value: str) -> str:
    name = field.rpartition(".")[2]
    if name == "layers":
        return f"{value} layer{'s' * (value != '1')}"
    name = {"alpha": "α"}.get(name, name)
    return f"{value} {name}" if name in ("triggers", "outputs", "positions") else f"{name} = {value}"


def listed() -> list[dict[str, Any]]:
    return [_listed(name, preset) for name, preset in presets().items()]


def _listed(name: str, preset: Preset) -> dict[str, Any]:
    title, advice = preset.experiment.lab
    about = " ".join(filter(None, (preset.experiment.about, advice)))
    told = {"name": name, "experiment": preset.experiment.name, "title": title or preset.words, "about": about}
    return told | {"text": takes_text(preset.spec), "seconds": seconds_of(preset), "fields": fields_of(preset.spec)}


def seconds_of(preset: Preset) -> float | None:
    """What it takes on this machine, if anything tells."""
    of = [spec for spec in preset.experiment.specs("quick", [0]) if spec.seed == 0]
    try:
        return round(preset.experiment.seconds_of(preset.spec, "quick", len(of)) / cores(), 1)
    except EngramError:
        return None


def fields_of(spec: Train) -> list[dict[str, Any]]:
    found = {name: offer for name in FIELDS if (offer := setting(spec, name)) is not None}
    meanings = {one.field: one.meaning for one in fields(spec)}
    return [{"name": name, "meaning": meanings.get(name, "")} | offered(offer) for name, offer in found.items()]


def chosen(name: str, seed: int, settings: Mapping[str, Any]) -> Train:
    """A preset with some fields set otherwise; what is wrong with them the Spec says itself."""
    spec = preset_called(name).spec
    return with_settings(spec, {**read(spec, settings), "seed": seed})


def takes_text(spec: Train) -> bool:
    """Whether its task draws letters as they follow each other in a text."""
    return isinstance(spec.task, Bigram)


def preset_called(name: str) -> Preset:
    if name not in presets():
        raise EngramError(f"preset: no {name!r}; {did_you_mean(name, presets())}the list of presets names all")
    return presets()[name]

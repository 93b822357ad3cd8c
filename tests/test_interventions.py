"""An intervention is one class: whoever writes one, here in a file of one's own, has it in Specs, forms and words."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engram.errors import EngramError
from engram.learning import SGD, Plan
from engram.models import Layer, Transformer
from engram.models.factual import Factual
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import build, decode, encode, load_code, user_code
from engram.specs.events import Event, interventions, kind_called, kinds
from engram.tasks.facts import Facts
from lab import MINE, SCALE, Page, Served, own_run


@pytest.fixture
def spec() -> Train:
    return load_code("mine.py", (MINE + SCALE).encode()).specs("smoke", [0])[0]


def test_a_class_of_ones_own_is_asked_for_by_its_fields(spec: Train, tiny: Callable[..., Train]) -> None:
    *_, own = interventions(spec)
    assert own["kind"] == "scale"
    assert own["title"] == "Scale a matrix"
    assert own["hint"] == "All entries of the matrix are multiplied by a factor."
    assert own["fields"] == [
        {"name": "matrix", "label": "matrix", "type": "text", "value": "W_K1", "choices": ["W_K1", "W_K2", "W_O2"]},
        {"name": "factor", "label": "factor", "type": "number", "value": 2.0, "choices": None},
        {"name": "times", "label": "times", "type": "integer", "value": 1, "choices": None},
        {"name": "sign", "label": "sign", "type": "text", "value": "as it is", "choices": ["as it is", "turned"]},
        {"name": "forget", "label": "forget", "type": "boolean", "value": False, "choices": None},
    ]
    assert "scale" not in kinds(tiny()), "it belongs to the Specs that carry its file"
    with pytest.raises(EngramError, match="kind: no intervention 'scales'; did you mean scale"):
        kind_called("scales", spec)


def steered(spec: Train, **fields: object) -> Train:
    event = build(kind_called("scale", spec), {"step": 2, "matrix": "W_O2"} | fields)
    return build(Train, {name: getattr(spec, name) for name in Train.model_fields} | {"events": (event,)})  # type: ignore[return-value]


def test_it_acts_refuses_and_is_stored_with_its_code(spec: Train, home: Path) -> None:
    plain, scaled = execute(spec, home), execute(steered(spec, factor=3.0), home)
    assert torch.equal(scaled.snapshot(2)["W_O2"], 3 * plain.snapshot(2)["W_O2"])
    assert [event.sentence for event in Record(scaled.folder).train.events] == ["scale W_O2 by 3"]
    again = decode(encode(scaled.train), user_code(scaled.train))
    assert again == scaled.train
    for fields, why in (({"factor": 1.0}, "events.0: factor: 1 changes nothing"), ({"matrix": "W_V1"}, "not trained")):
        with pytest.raises(EngramError, match=why):
            steered(spec, **fields)


@pytest.mark.parametrize("words", ["scale {matrices}", "scale {matrix:g}", "scale {0}", "scale {"])
def test_what_cannot_be_told_is_refused(words: str) -> None:
    code = (MINE + SCALE).replace("scale {matrix} by {factor:g}", words)
    with pytest.raises(EngramError, match=r"events\.0: words: .* does not suit the fields"):
        steered(load_code("mine.py", code.encode()).specs("smoke", [0])[0])


def test_what_is_no_event_is_refused(spec: Train) -> None:
    fields = {name: getattr(spec, name) for name in Train.model_fields}
    with pytest.raises(EngramError, match=r"events\.0: must be an instance of Event; got 'freeze'"):
        build(Train, fields | {"events": ("freeze",)})


def test_a_form_offers_what_the_run_has(tiny: Callable[..., Train]) -> None:
    """Heads by layer; settings with their values; nothing where there is nothing to choose from."""
    model = Transformer(d=12, layers=(Layer(heads=2), Layer(heads=3)))
    spec = tiny().model_copy(update={"model": model})
    asked = {one["kind"]: {field["name"]: field for field in one["fields"]} for one in interventions(spec)}
    assert asked["ablate"]["head"]["after"] == "layer"
    assert {layer: offer["choices"] for layer, offer in asked["ablate"]["head"]["by"].items()} == {
        "1": [1, 2],
        "2": [1, 2, 3],
    }
    assert asked["change"]["value"]["by"]["task.triggers"]["choices"] == ["random", "fixed"]
    assert asked["change"]["value"]["by"]["plan.batch"] == {"type": "integer", "value": 4, "choices": None}
    task = Facts(S=4, R=2)
    plan = Plan(optimiser=SGD(lr=0.1), steps=2, batch=4, loss="answer", trained=("W_V",))
    facts = Train(task=task, model=Factual(d=8, answers=task.answers), plan=plan)
    assert not {"ablate", "restore"} & {one["kind"] for one in interventions(facts)}


def test_every_intervention_says_what_it_is(tiny: Callable[..., Train]) -> None:
    for name, kind in kinds(tiny()).items():
        assert kind.title
        assert kind.words
        assert (kind.__doc__ or "").endswith(".")
        assert issubclass(kind, Event)
        assert kind.stable_name, name


def test_it_steers_a_run_of_the_lab(lab: Served, page: Page) -> None:
    run = own_run(lab.home, MINE + SCALE)
    assert page.ask("start", run=run)["ok"]
    page.until(run, 20)
    page.ask("control", op="pause")
    offered = {one["kind"]: one for one in page.about[run]["interventions"]}
    assert offered["scale"]["title"] == "Scale a matrix"
    assert [field["name"] for field in offered["scale"]["fields"]] == ["matrix", "factor", "times", "sign", "forget"]
    for value, why in ((1.0, "changes nothing"), ("much", "valid number")):
        refused = page.ask("intervene", run=run, kind="scale", at=16, fields={"matrix": "W_O2", "factor": value})
        assert refused["field"] == "factor"
        assert why in refused["error"]
    answer = page.ask("intervene", run=run, kind="scale", at=16, fields={"matrix": "W_O2", "factor": 3})
    assert answer["ok"], answer
    page.ask("control", op="resume")
    page.until(answer["run"], 18)
    assert page.about[answer["run"]]["events"] == [{"step": 16, "what": "scale W_O2 by 3"}]
    child, parent = Record(lab.home / answer["run"]), Record(lab.home / run)
    assert torch.equal(child.snapshot(16)["W_O2"], 3 * parent.snapshot(16)["W_O2"])

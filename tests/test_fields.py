"""`engram fields`: every field that can be set, with type, value and meaning."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engram.experiments import find
from engram.learning import SGD, Adam, Plan
from engram.models import Layer, Transformer
from engram.specs import Check, Train
from engram.specs.events import Event
from engram.specs.fields import fields, meaning, settings_of, type_of
from engram.specs.settings import with_settings
from engram.tasks import Bigram
from engram.values import NAMED, Value, import_rooms

Said = Callable[..., tuple[int, str, str]]


def classes() -> list[type[Value]]:
    """All that a Spec can be made of, but interventions, which have forms of their own."""
    import_rooms()
    return [kind for kind in NAMED.values() if not issubclass(kind, Event)]


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_every_field_has_a_meaning(kind: type[Value]) -> None:
    assert [name for name in kind.model_fields if not meaning(kind, name)] == []


def test_every_field_can_be_set_under_its_name(tiny: Callable[..., Train]) -> None:
    """To what it is: the Spec stays the same. Classes have names, which are values, too."""
    check = Check(law="bigram.floor_levels", sizes={"K": 1, "T": 10}, draws=5)
    for spec in (tiny(frozen_until={"W_O2": 2}), tiny().model_copy(update={"model": Transformer(d=16)}), check):
        for one in fields(spec):
            if not isinstance(one.value, list | dict):
                assert with_settings(spec, {one.field: one.value}) == spec, one.field


def test_types_in_words() -> None:
    told = {name: type_of(field) for name, field in Plan.model_fields.items()}
    assert told["optimiser"] == "SGD | Adam | Muon"
    assert told["steps"] == "integer ≥ 1"
    assert told["trained"] == "list of text"
    assert told["frozen_until"] == "table of integer ≥ 0 by name"
    assert told["snapshot_every"] == "integer ≥ 1 | null"
    assert told["dtype"] == "float32 | float64"
    assert type_of(SGD.model_fields["momentum"]) == "number ≥ 0 and < 1"
    assert type_of(Adam.model_fields["lr"]) == "number > 0"
    assert type_of(Bigram.model_fields["no_repeat"]) == "true or false"


def test_fields_of_runs_that_differ(tiny: Callable[..., Train]) -> None:
    deep = tiny().model_copy(update={"model": Transformer(d=16, layers=(Layer(), Layer(heads=2)))})
    found = {row["field"]: row for row in settings_of([tiny(), tiny(steps=9), deep])}
    assert (found["plan.steps"]["value"], found["plan.steps"]["values"]) == (None, [6, 9])
    assert (found["task.K"]["value"], found["task.K"]["default"]) == (3, 5)
    assert found["plan.optimiser"]["value"] == "SGD"
    assert found["model.layers.1.heads"]["value"] == 2
    assert found["model"]["values"] == ["Simplified", "Transformer"]


def test_a_field_without_words_leaves_no_empty_line(home: Path, said: Said) -> None:
    text = said("fields", str(Path(__file__).parent.parent / "examples" / "own_task.py"))[1]
    assert "task.N = 26" in text
    assert not [line for line in text.splitlines() if line and not line.strip()]


def test_the_command(home: Path, said: Said) -> None:
    code, out, _ = said("fields", "birth.joint")
    assert code == 0
    assert "number of triggers in a sequence" in " ".join(out.split())
    rows = json.loads(said("fields", "birth.fig2", "--scale", "smoke", "--json")[1])["fields"]
    assert {"sizes.K", "task.K", "plan.optimiser.lr"} <= {row["field"] for row in rows}
    assert all(row["meaning"] for row in rows)
    assert [row["value"] for row in rows if row["field"] == "seed"] == [0]
    assert "did you mean birth.joint" in said("fields", "birth.jont")[2]
    assert find("birth.joint").specs("smoke", [0])

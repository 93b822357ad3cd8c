"""Specs: JSON and back without loss, identity by hash, every valid one runs, every invalid one says what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import field_validator

from engram.errors import EngramError
from engram.learning import SGD, Adam, Plan
from engram.models import Simplified, Transformer
from engram.runner.execute import execute
from engram.specs import Check, Train
from engram.specs.encode import build, decode, digest_of, encode
from engram.specs.settings import parse_settings, with_settings
from engram.specs.spec import run_id
from engram.tasks import Bigram
from engram.values import Value

BLOCKS = [("attention", "attention"), ("attention", "attention", "linear")]

optimisers = st.one_of(
    st.builds(SGD, lr=st.floats(1e-4, 1.0), momentum=st.floats(0, 0.95), weight_decay=st.floats(0, 0.1)),
    st.builds(Adam, lr=st.floats(1e-4, 0.1)),
)


@st.composite
def valid_specs(draw: st.DrawFn) -> Train:
    model = Simplified(
        d=draw(st.integers(1, 12)),
        scale=draw(st.sampled_from(["standard", "unit"])),
        blocks=draw(st.sampled_from(BLOCKS)),
    )
    trained = tuple(draw(st.lists(st.sampled_from(model.names), min_size=1, max_size=4, unique=True)))
    plan = Plan(
        optimiser=draw(optimisers),
        steps=draw(st.integers(1, 4)),
        batch=draw(st.integers(1, 3)),
        trained=trained,
        frozen_until=draw(st.dictionaries(st.sampled_from(trained), st.integers(0, 5))),
        loss=draw(st.sampled_from(["in_context", "first", "global", "all"])),
        probe_every=draw(st.integers(1, 3)),
        attention_every=draw(st.integers(1, 3)),
        dtype=draw(st.sampled_from(["float32", "float64"])),
    )
    triggers: Any = draw(st.sampled_from(["random", "fixed"]))
    K = draw(st.integers(1, 65))
    offset = draw(st.integers(0, 65 - K)) if triggers == "fixed" else 0
    outputs: Any = draw(st.sampled_from(["uniform", "bigram"]))
    task = Bigram(
        K=K,
        T=draw(st.integers(2, 30)),
        triggers=triggers,
        offset=offset,
        outputs=outputs,
        no_repeat=draw(st.booleans()),
    )
    return Train(task=task, model=model, plan=plan, seed=draw(st.integers(0, 2**62)))


@given(valid_specs())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_valid_spec_survives_json_and_runs(tmp_path_factory: pytest.TempPathFactory, spec: Train) -> None:
    again = decode(json.loads(json.dumps(encode(spec))))
    assert again == spec
    assert digest_of(again) == digest_of(spec)
    assert decode(encode(spec, defaults=False)) == spec
    record = execute(spec, tmp_path_factory.mktemp("runs"))
    assert record.finished
    assert len(record.rows) == spec.plan.steps + 1
    assert record.model().weights.keys() == set(spec.model.names)


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"task.k": 3}, "task.k: no such field in Bigram; did you mean K?"),
    ({"tsk.K": 3}, "did you mean task?"),
    ({"task.K": "three"}, "task.K: .*integer; got 'three'"),
    ({"task.K": 3.5}, "task.K: .*integer"),
    ({"task.K": True}, "task.K: .*integer"),
    ({"task.K": 0}, "task.K: must be positive; got 0"),
    ({"task.K": 66}, "task.K: K=66 needs more than the 65 tokens"),
    ({"task.T": 1}, "task.T: .*greater than or equal to 2; got 1"),
    ({"task.triggers": "rare"}, "task.triggers: .*'random' or 'fixed'; got 'rare'"),
    ({"task.offset": 5}, "task.offset: random triggers have no rank offset"),
    ({"task.corpus": "nowhere.txt"}, "task.corpus: cannot read .*shakespeare"),
    ({"model.d": 0}, "model.d: .*got 0"),
    ({"model.scale": "big"}, "model.scale: .*'standard' or 'unit'"),
    ({"model.blocks": ["attention"]}, "model.blocks"),
    ({"plan.optimiser.lr": -0.1}, "plan.optimiser.lr: must be positive; got -0.1"),
    ({"plan.optimiser.lr": float("nan")}, "plan.optimiser.lr"),
    ({"plan.optimiser.momentum": 1.0}, "plan.optimiser.momentum: .*less than 1"),
    ({"plan.steps": 0}, "plan.steps"),
    ({"plan.batch": 0}, "plan.batch"),
    ({"plan.trained": []}, "plan.trained: nothing to train"),
    ({"plan.trained": ["w_o2"]}, "plan.trained: unknown 'w_o2'; did you mean W_O2?"),
    ({"plan.frozen_until": {"W_F": 3}}, "plan.frozen_until: 'W_F' is not trained"),
    ({"plan.loss": "incontext"}, "plan.loss: unknown 'incontext'; did you mean in_context?"),
    ({"seed": -1}, "seed: .*got -1"),
    ({"task.K.x": 3}, r"--set task\.K\.x: no such field; allowed in task\.K: nothing"),
    ({"plan.optimizer.lr": 3}, r"--set plan\.optimizer\.lr: no such field; did you mean optimiser\? allowed in plan: "),
    ({"plan.trained.3": "W_O2"}, r"--set plan\.trained\.3: no such field; allowed in plan\.trained: 0, 1, 2$"),
    ({"plan.trained.1": "W_O2"}, "plan.trained: a matrix is named twice"),
    ({"model.blocks.0": "mlp"}, "model.blocks"),
    ({"plan.optimiser": {"lr": 0.1, "lrr": 0.2}}, r"plan\.optimiser\.lrr: no such field in SGD; did you mean lr"),
    ({"plan.optimiser.beta": 0.1}, r"plan\.optimiser\.beta: no such field in SGD; .*allowed: lr, momentum"),
    ({"tests": {"x": {"K": 3}}}, "tests.x: dict is not a task"),
]


@pytest.mark.parametrize(("change", "says"), INVALID, ids=[str(change) for change, _ in INVALID])
def test_every_invalid_spec_says_what_is_wrong(tiny: Callable[..., Train], change: dict[str, Any], says: str) -> None:
    with pytest.raises(EngramError, match=says) as error:
        with_settings(tiny(), change)
    assert "\n" not in str(error.value)


SIZES = ["task.K", "task.T", "model.d", "plan.batch", "plan.steps"]
nonsense = st.one_of(
    st.none(),
    st.text(max_size=5),
    st.booleans(),
    st.floats(),
    st.integers(max_value=0),
    st.lists(st.integers(), max_size=2),
)


@given(field=st.sampled_from(SIZES), value=nonsense)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nonsense_in_a_size_is_refused_in_one_line(tiny: Callable[..., Train], field: str, value: object) -> None:
    with pytest.raises(EngramError, match=field.replace(".", r"\.")) as error:
        with_settings(tiny(), {field: value})
    assert "\n" not in str(error.value).replace(repr(value), "")


def test_identity_is_non_default_fields_and_revisions(
    tiny: Callable[..., Train], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tiny()
    stated = spec.model_copy(update={"task": Bigram(K=3, T=24, triggers="random", corpus="shakespeare")})
    assert run_id(stated) == run_id(spec)
    changes = [{"task.K": 4}, {"seed": 1}, {"plan.optimiser.lr": 0.3}, {"model.scale": "unit"}]
    ids = [run_id(with_settings(spec, change)) for change in changes]
    assert len({run_id(spec), *ids}) == 5
    before = run_id(spec)
    monkeypatch.setattr(Simplified, "revision", 2)
    assert run_id(spec) != before


def test_a_text_is_known_by_its_content(tmp_path: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("to be or not to be")
    one, two = (Bigram.model_validate({"corpus": str(tmp_path / n), "K": 1}) for n in ("one.txt", "two.txt"))
    assert digest_of(one) == digest_of(two)
    assert encode(one)["corpus"]["path"].endswith("one.txt")


def test_settings_are_json_or_words() -> None:
    assert parse_settings(("a.b=3", "c=fixed", "d=[1, 2]")) == {"a.b": 3, "c": "fixed", "d": [1, 2]}
    with pytest.raises(EngramError, match="FIELD=VALUE"):
        parse_settings(("K",))


@pytest.mark.parametrize("name", ["a.b", "a b", "", "é", "class", "file", "sha256_of_file", "revision"])
def test_names_of_tests_are_words(tiny: Callable[..., Train], name: str) -> None:
    """A name becomes a column and a dotted field, and may not be a tag of the JSON."""
    with pytest.raises(EngramError, match=rf"^tests: {name!r} is not a name; use letters, digits, _, -"):
        build(Train, {**dict(tiny()), "tests": {name: Bigram(K=3, T=24)}})
    good = build(Train, {**dict(tiny()), "tests": {"Other_task-2": Bigram(K=3, T=24)}})
    assert decode(json.loads(json.dumps(encode(good)))) == good


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (Simplified, {"D": 3}, "D: no such field in Simplified; did you mean d? allowed: d, scale, blocks"),
    (Plan, {"stpes": 3}, "stpes: no such field in Plan; did you mean steps? allowed: optimiser, "),
    (
        Transformer,
        {"layers": ({"hedas": 2},)},
        "layers.0.hedas: no such field in Layer; did you mean heads? allowed: heads, queries, feed_forward",
    ),
    (Plan, {"steps": 1, "batch": 1}, "optimiser: Plan needs this field; it has no default for optimiser, steps, batch"),
    (Simplified, {"d": "x"}, "d: must be an integer; got 'x'"),
    (Simplified, {"d": np.eye(9)}, "d: must be an integer; got array([[1., 0., 0., "),
    (Bigram, {"K": -1}, "K: must be positive; got -1"),
]


@pytest.mark.parametrize(("kind", "fields", "says"), WRONG, ids=str)
def test_a_description_written_by_hand_is_explained(kind: Any, fields: dict[str, Any], says: str) -> None:
    """In one line, at any depth; pydantic, which may meet it in a validator, sees a ValueError."""
    with pytest.raises(EngramError) as error:
        kind(**fields)
    assert str(error.value).startswith(f"{kind.__name__}.{says}")
    assert "\n" not in str(error.value)
    assert isinstance(error.value, ValueError)


def test_fields_have_names_and_are_frozen() -> None:
    kind: Any = Simplified
    with pytest.raises(EngramError, match=r"^Simplified: name the fields, as in Simplified\(d=…\); got 64"):
        kind(64)
    with pytest.raises(EngramError, match=r"^Simplified\.d: it is frozen, .*; make another with d=…$"):
        kind().d = 3
    with pytest.raises(EngramError, match=r"^Simplified\.dd: no such field; did you mean d\? allowed: d, "):
        kind().dd = 3


class Even(Value):
    """A description with a rule for one field of its own."""

    n: int = 2

    @field_validator("n")
    @classmethod
    def _even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("must be even")
        return n


def test_a_rule_of_ones_own_is_told_with_its_field() -> None:
    with pytest.raises(EngramError, match=r"^task\.n: must be even$"):
        build(Even, {"n": 3}, "task")


def test_checks(tmp_path: Path) -> None:
    spec = Check(law="bigram.floor_levels", sizes={"K": 1, "T": 10}, draws=5)
    assert decode(encode(spec)) == spec
    record = execute(spec, tmp_path)
    assert record.finished
    assert set(record.rows[0]) == {"step", "floor", "floor.error", "sampled"}
    for change, says in [
        ({"law": "bigram.nothing"}, "law: "),
        ({"sizes": {"k": 3}}, "did you mean K"),
        ({"draws": 0}, "draws"),
    ]:
        with pytest.raises(EngramError, match=says):
            with_settings(spec, change)


def test_classes_from_elsewhere_are_refused() -> None:
    for tag in ("os.path.join", "tasks.nothing.Task", "records.record.Record", "x"):
        with pytest.raises(EngramError, match="class"):
            decode({"class": tag})

"""Fields set otherwise: each goes where it belongs, and what an experiment cannot read is drawn as it is."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engram import api
from engram.claims.experiment import unique
from engram.errors import EngramError
from engram.experiments import find
from engram.learning import SGD, Adam
from engram.models import Layer, Transformer
from engram.records.shelf import all_records
from engram.specs import Check, Spec, Train
from engram.specs.settings import all_with_settings, parse_settings, with_settings


def test_whole_numbers_count_into_tuples(tiny: Callable[..., Train]) -> None:
    """A field of one layer, a layer, one name of many; everything else stays as it was."""
    model = Transformer(d=12, layers=(Layer(), Layer(feed_forward="linear")))
    spec = tiny(trained=("E", "U")).model_copy(update={"model": model})
    assert with_settings(spec, {"model.layers.1.heads": 3}) == spec.model_copy(
        update={"model": Transformer(d=12, layers=(Layer(), Layer(heads=3, feed_forward="linear")))}
    )
    assert with_settings(spec, {"model.layers.0": {"heads": 2}}).model == Transformer(  # type: ignore[union-attr]
        d=12, layers=(Layer(heads=2), Layer(feed_forward="linear"))
    )
    changed = with_settings(spec, {"plan.trained.1": "W_O2"})
    assert changed.plan.trained == ("E", "W_O2")  # type: ignore[union-attr]
    assert with_settings(changed, {"plan.trained.1": "U"}) == spec


def test_a_setting_goes_to_the_specs_that_have_its_field(tiny: Callable[..., Train]) -> None:
    """Trainings beside Checks: refused is only what none of them has, by the one that knows most of it."""
    some, none = tiny(trained=("W_O2",), frozen_until={"W_O2": 2}), tiny(seed=1)
    check = Check(law="bigram.floor_levels", sizes={"K": 1, "T": 10}, draws=5)
    specs: list[Spec] = [check, some, none]
    fewer = all_with_settings(specs, {"plan.steps": 5, "draws": 3})
    assert fewer == [with_settings(check, {"draws": 3}), *(with_settings(s, {"plan.steps": 5}) for s in (some, none))]
    assert {spec.seed for spec in all_with_settings(specs, {"seed": 7})} == {7}
    assert all_with_settings(specs, {}) == specs
    assert all_with_settings(specs, {"sizes.K": 2})[0] == with_settings(check, {"sizes.K": 2})
    later = all_with_settings(specs, {"plan.frozen_until.W_O2": 4})
    assert later == [check, with_settings(some, {"plan.frozen_until.W_O2": 4}), none]
    assert all_with_settings([check, none], {"plan.frozen_until.W_O2": 4})[1] != none  # a dict takes new names
    for setting, says in [
        ("plan.stps", r"^plan\.stps: no such field in Plan; did you mean steps"),
        ("plam.steps", r"^--set plam\.steps: no such field; "),
        ("task.k", r"^task\.k: no such field in Bigram; did you mean K"),
        ("task.revision", "not a field of a Spec"),
        ("K", r"^--set K: no such field; did you mean sizes\.K or task\.K\? `engram fields NAME` lists"),
        ("optimiser.LR", r"did you mean plan\.optimiser\.lr\?"),
        ("optimizer.lr", r"did you mean plan\.optimiser\.lr\?"),
    ]:
        with pytest.raises(EngramError, match=says):
            all_with_settings(specs, {setting: 5})


def test_a_word_names_another_class_and_keeps_what_both_have(tiny: Callable[..., Train]) -> None:
    """plan.optimiser=Adam: a rate of learning and a decay are known to both, a momentum is not."""
    for word in ("Adam", "adam"):
        changed = with_settings(tiny(lr=0.25), {"plan.optimiser": word, "plan.optimiser.eps": 1e-6})
        assert changed.plan.optimiser == Adam(lr=0.25, weight_decay=1e-4, eps=1e-6)
    assert with_settings(changed, {"plan.optimiser": "SGD"}).plan.optimiser == SGD(lr=0.25, weight_decay=1e-4)
    assert with_settings(tiny(), {"model": "Transformer"}).model == Transformer(d=16)
    with pytest.raises(
        EngramError, match=r"^--set plan\.optimiser: no 'Adem' here; did you mean Adam\? allowed: SGD, Ad"
    ):
        with_settings(tiny(), {"plan.optimiser": "Adem"})


def test_whole_numbers_may_be_written_as_powers(tiny: Callable[..., Train]) -> None:
    """1e2 is 100 wherever a number stands."""
    settings = parse_settings(("plan.steps=1e2", "plan.snapshot_every=5e0", "plan.optimiser.lr=1e0"))
    plan = with_settings(tiny(), settings).plan
    assert (plan.steps, plan.snapshot_every, plan.optimiser.lr) == (100, 5, 1.0)
    assert type(plan.steps) is int
    check = Check(law="bigram.floor_levels", sizes={"K": 1, "T": 10}, draws=5)
    assert with_settings(check, parse_settings(("sizes.T=2e1", "draws=1E+1"))) == check.model_copy(
        update={"sizes": {"K": 1, "T": 20}, "draws": 10}
    )


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"model.d": -1}, r"^model\.d: must be positive; got -1$"),
        ({"plan.optimiser.lr": -0.1}, r"^plan\.optimiser\.lr: must be positive; got -0\.1$"),
        ({"task.T": 1}, r"^task\.T: must be greater than or equal to 2; got 1$"),
        ({"plan.steps": 2.5}, r"^plan\.steps: must be an integer; got 2\.5$"),
        ({"task.triggers": "some"}, r"^task\.triggers: must be 'random' or 'fixed'; got 'some'$"),
    ],
    ids=str,
)
def test_what_a_value_must_be(tiny: Callable[..., Train], setting: dict[str, Any], says: str) -> None:
    with pytest.raises(EngramError, match=says):
        with_settings(tiny(), setting)


def test_a_setting_that_only_some_runs_have(home: Path) -> None:
    """Trainings beside Checks: plan.steps is for the first, and what none has is refused before anything runs."""
    specs = unique(api.labelled_specs(find("birth.fig2"), "smoke", [0], {"plan.steps": 5}))
    assert [spec.steps for spec in specs] == [5, 5, 5, 5, 16, 16]
    with pytest.raises(EngramError, match=r"^plan\.stps: no such field in Plan; did you mean steps\?"):
        api.run("birth.fig2", "smoke", settings={"plan.stps": 5})
    assert all_records(home) == []


SAME: list[tuple[str, dict[str, Any], int]] = [  # fields that tell labels apart, and how many records are left
    ("birth.fig3", {"plan.frozen_until": {}}, 1),
    ("birth.fig3", {"plan.frozen_until": {"W_O2": 3, "W_K1": 3}}, 1),
    ("birth.fig4-left", {"task.K": 1, "task.triggers": "random", "task.offset": 0}, 6),
    ("birth.fig4-center", {"task.outputs": "uniform"}, 1),
    ("birth.fig9", {"sizes.d": 16}, 1),
]


@pytest.mark.parametrize(("name", "settings", "records"), SAME, ids=[f"{name} {s}" for name, s, _ in SAME])
def test_labels_that_no_longer_hold_decide_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, settings: dict[str, Any], records: int
) -> None:
    """No claim may speak of "W_O2 frozen" when nothing was frozen; a Spec that several labels share runs once."""
    monkeypatch.setattr(api, "save_figures", lambda figures: [Path(stem) for stem in figures])
    result = api.run(name, "smoke", settings=settings)
    assert (len(result.records), result.claims, len(result.notes)) == (records, [], 1)
    assert re.match("The experiment's claims and figure do not apply: .* tells the runs .* apart", result.notes[0])


def test_labels_that_hold_keep_their_claims(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that is the same under all labels may be set: claims and figure are those of the experiment."""
    monkeypatch.setattr(api, "save_figures", lambda figures: [Path(stem) for stem in figures])
    settings = {"model.d": 24, "plan.batch": 3}
    result = api.run("birth.fig3", "smoke", settings=settings)
    assert (len(result.figures), result.notes) == (1, [])
    assert {claim["id"]: claim["settings"] for claim in result.claims} == dict.fromkeys(
        find("birth.fig3").statements, settings
    )


OTHERWISE: list[tuple[str, dict[str, Any], int]] = [  # columns that claims and figure of an experiment want are missing
    ("birth.fig2", {"plan.loss": "global"}, 4),
    ("birth.fig4-center", {"tests": {}}, 2),
    ("birth.fig7", {"plan.at_end": []}, 1),
    ("birth.fig10", {"plan.loss": "global", "model.layers.1.heads": 2}, 1),
    ("birth.fig11", {"plan.at_end": [], "model.layers.0.heads": 2}, 1),
]


@pytest.mark.parametrize(("name", "settings", "figures"), OTHERWISE, ids=[f"{name} {s}" for name, s, _ in OTHERWISE])
def test_fields_set_otherwise_leave_plain_curves(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, settings: dict[str, Any], figures: int
) -> None:
    """No claims, two notes that say why, and a figure for each kind of training; several labels have one more."""
    monkeypatch.setattr(api, "save_figures", lambda figures: [Path(stem) for stem in figures])
    result = api.run(name, "smoke", settings=settings)
    trainings = [record for record in result.records if isinstance(record.spec, Train)]
    compared = name == "birth.fig4-center"  # two labels, and nothing but trainings
    assert (result.claims, len(result.figures), len(trainings)) == ([], figures + compared, figures)
    assert [note.split(" with")[0] for note in result.notes] == [
        "The experiment's claims do not apply",
        "The experiment's figure cannot be drawn",
    ]

"""No claim agrees on its planted alternatives, except those that are known to be vacuous and say so."""

import json
from math import inf
from pathlib import Path
from types import ModuleType

import pytest

from engram import controls
from engram.claims import Measure, Runs
from engram.claims.controls import Control, Tried, put_to_the_test
from engram.claims.experiment import Experiment
from engram.claims.ledger import Index, best_runs
from engram.claims.planting import changed, multiplied
from engram.cli.main import main
from engram.controls import birth
from engram.errors import EngramError
from engram.experiments import find, names
from engram.records.files import COMMITTED
from engram.show.controls import markdown, markdown_row, table_rows

PAGE = Path(__file__).parents[1] / "docs/controls.md"
VACUOUS = set[str]()  # claims that agree in a world where a part of their sentence is false: there is none


@pytest.fixture(scope="module")
def index() -> Index:
    return Index.of([COMMITTED])


def blurred(tried: Tried) -> list[str]:
    """Measures that have an interval on the data and none in another world: what is planted must keep its noise."""
    worlds = [zip(tried.on_data.measures, claim.measures, strict=True) for _, claim in tried.on_controls]
    return [a.name for pairs in worlds for a, b in pairs if b.interval == (-inf, inf) != a.interval]


def committed_runs(experiment: Experiment, index: Index) -> Runs:
    best = best_runs(experiment, index)
    assert best is not None
    return best[0]


def test_every_claim_has_a_control_and_every_control_a_claim() -> None:
    experiments = [find(name) for name in names()]
    assert [id for e in experiments for id in e.statements if not controls.of(e).get(id)] == []
    claims = {id for experiment in experiments for id in experiment.statements}
    folders = {experiment.name.partition(".")[0] for experiment in experiments}
    declared = {id for folder in folders for id in getattr(controls, folder).CONTROLS}
    assert declared - claims == set()


@pytest.mark.parametrize("name", names())
def test_only_vacuous_claims_agree_on_a_control(name: str, index: Index) -> None:
    """And docs/controls.md has these rows; `make controls` writes it."""
    experiment, best = find(name), best_runs(find(name), index)
    if best is None:
        assert f"- no records: {name}." in PAGE.read_text().split("\n")
        return
    tested = put_to_the_test(experiment, best[0], controls.of(experiment))
    assert {one.on_data.id for one in tested if one.vacuous} == VACUOUS & set(experiment.statements)
    assert [name for one in tested for name in blurred(one)] == []
    found = [markdown_row(row) for row in table_rows([one.to_json() for one in tested])]
    listed = [line for line in PAGE.read_text().split("\n") if line.startswith("| `")]
    own = [line for line in listed if line.split("`")[1] in experiment.statements]
    assert own == found
    idle = [f"- idle: {one.on_data.id}: {measure}." for one in tested for measure in one.idle]
    assert set(idle) <= set(PAGE.read_text().split("\n"))


def toy(index: Index, *measures: Measure) -> tuple[Experiment, Runs]:
    """The records of birth.joint under one sentence that is decided by given measures or by the accuracy."""
    module = ModuleType("toy")
    module.CLAIMS, module.SOURCE = {"toy.claim": "Models learn."}, "here"  # type: ignore[attr-defined]

    def claims(runs: Runs) -> list[Measure]:
        read = [record.last("accuracy.in_context") for record in runs["joint"]]
        return [*measures, Measure.over_seeds("accuracy", read, low=0.9)] if len(measures) != 1 else list(measures)

    module.claims = claims  # type: ignore[attr-defined]
    return Experiment("toy", module, "engram run toy.py"), committed_runs(find("birth.joint"), index)


LOWER = Control("accuracy is half as high", changed(multiplied(0.5, "accuracy.in_context")))
ALWAYS = Measure.over_seeds("never below zero", [0.2, 0.3, 0.25], low=-1)


def tried(index: Index, *measures: Measure) -> Tried:
    experiment, runs = toy(index, *measures)
    (tested,) = put_to_the_test(experiment, runs, {"toy.claim": [LOWER]})
    assert tested.on_data.verdict == "agrees"
    return tested


def test_a_claim_that_cannot_fail_is_named_vacuous(index: Index) -> None:
    assert tried(index, ALWAYS).vacuous == [LOWER.what]
    assert tried(index).vacuous == []


def test_a_measure_that_cannot_fail_is_named_idle(index: Index) -> None:
    tested = tried(index, ALWAYS, ALWAYS)
    assert tested.vacuous == []
    assert tested.idle == [ALWAYS.name, ALWAYS.name]
    assert "idle: toy.claim: never below zero." in markdown([tested.to_json()])


def test_a_claim_without_a_control_is_an_error(index: Index) -> None:
    experiment, runs = toy(index)
    with pytest.raises(EngramError, match=r"toy: no control for toy\.claim"):
        put_to_the_test(experiment, runs, {})


def test_the_command_prints_a_table_and_says_what_is_vacuous(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(birth.CONTROLS, "birth.learns", (Control("nothing is planted", lambda runs: runs),))
        with pytest.raises(SystemExit) as ended:
            main(["verify", "--controls", "birth.learns"])
    told = capsys.readouterr().out
    assert ended.value.code == 1
    assert "vacuous: birth.learns agrees although nothing is planted" in told
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--controls", "birth.learns", "--json"])
    assert ended.value.code == 0
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert (claim["id"], claim["verdict"], claim["vacuous"]) == ("birth.learns", "agrees", [])
    assert [control["verdict"] for control in claim["controls"]] == ["disagrees", "disagrees"]
    assert list(home.glob("*")) == []


def test_controls_cannot_be_combined_with_new_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--controls", "--anew"])
    assert ended.value.code == 2
    assert "--controls" in capsys.readouterr().err

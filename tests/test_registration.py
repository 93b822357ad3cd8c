"""What is registered, and what a change of form, seeds or records makes of a verdict."""

import json
import subprocess
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from engram import experiments, registered
from engram.claims import Claim, Measure
from engram.claims import registration as registrations
from engram.claims.ledger import Entry, Index, best_runs, entries_of
from engram.claims.registration import FRESH, KINDS, Band, Registered, Sentence, forms_at, registration
from engram.claims.seeds import read_seeds, seeds_in_words
from engram.cli.register import register
from engram.errors import EngramError
from engram.records.files import COMMITTED
from engram.runner.execute import environment

BANDS = (Band("slope at d = #", 0.8, 1.2), Band("gap", 0, inf))
SENTENCE = Sentence("sentence", "It grows.", "section 1", BANDS)


def measured(name: str, low: float, high: float) -> Measure:
    return Measure.over_seeds(name, [1.0, 1.01, 0.99], low, high)


GROWS = Claim("x.grows", "It grows.", "", (measured("slope at d = 64", 0.8, 1.2), measured("gap", 0, inf)))


def test_what_is_computed_must_be_what_was_registered() -> None:
    assert SENTENCE.difference(GROWS) is None
    wider = replace(GROWS, measures=(measured("slope at d = 64", 0.7, 1.2), GROWS.measures[1]))
    assert "the band of “slope at d = 64”" in str(SENTENCE.difference(wider))
    other = replace(GROWS, measures=(*GROWS.measures, measured("slope of d", 0.8, 1.2)))
    assert "“slope of d” is not registered" in str(SENTENCE.difference(other))
    assert "“gap” is not computed" in str(SENTENCE.difference(replace(GROWS, measures=GROWS.measures[:1])))
    assert "sentence" in str(SENTENCE.difference(replace(GROWS, statement="It grows fast.")))


def test_at_paper_scale_sizes_in_names_are_those_of_the_scale() -> None:
    quick = Sentence("own", "It grows.", "here", (Band("slope of W_O2 at d = 64", 0.8, 1.2),))
    larger = Claim("x.grows", "It grows.", "", (measured("slope of W_O2 at d = 256", 0.8, 1.2),))
    assert quick.difference(larger) is not None
    assert quick.difference(larger, "paper") is None
    other = replace(larger, measures=(measured("slope of W_O1 at d = 256", 0.8, 1.2),))
    assert "is not registered" in str(quick.difference(other, "paper"))  # W_O1 is another matrix, not a size
    own = replace(quick, paper=(Band("slope of W_O2 at d = 256", 0.9, 1.1),))
    assert "the band of" in str(own.difference(larger, "paper"))


@pytest.mark.parametrize("words", ["0.5", "≥ 0", "1 … ", "> a", ""])
def test_a_band_that_nobody_can_read_is_refused(words: str) -> None:
    with pytest.raises(EngramError, match="must read like"):
        Band.read("slope", words)


WRITTEN = """
["x"]
n = { quick = 5 }

["x".claims."x.a"]
kind = "own"
sentence = "It grows."
place = "here"
measures = [["slope", "> 0"]]
"""


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("n = {", "m = {", "x has no 'n'"),
        ("n = { quick = 5 }", "n = { quick = 5 }\nfirst_sed = 10100", "x has an unknown 'first_sed'"),
        ('place = "here"\n', "", "x.a has no 'place'"),
        ("place =", 'plaice = ""\nplace =', "x.a has an unknown 'plaice'"),
        ('"own"', '"ours"', "the kind of x.a must be one of sentence"),
        ("[[", "[[[", "cannot be read"),
    ],
)
def test_a_registration_with_a_mistake_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, why: str
) -> None:
    monkeypatch.setattr(registered, "FILE", tmp_path / "registration.toml")
    registered.FILE.write_text(WRITTEN)
    assert list(registration.__wrapped__()) == ["x"]
    registered.FILE.write_text(WRITTEN.replace(old, new))
    with pytest.raises(EngramError, match=why):
        registration.__wrapped__()


@pytest.mark.parametrize("seeds", [range(1), range(8), range(10_000, 10_005), [4, 7], [3]])
def test_seeds_in_words_are_read_back(seeds: Any) -> None:
    assert read_seeds(seeds_in_words(seeds)) == list(seeds)


@pytest.mark.parametrize("words", ["", "0", "8-3", "a", "1.5", "-4", "1,b"])
def test_seeds_that_are_none_are_refused(words: str) -> None:
    with pytest.raises(EngramError, match="--seeds"):
        read_seeds(words)


def test_every_experiment_and_claim_is_registered() -> None:
    """And nothing else is: sentences are those of the files."""
    stated = {name: experiments.find(name).statements for name in experiments.names()}
    written = {name: {id: c.sentence for id, c in entry.claims.items()} for name, entry in registration().items()}
    assert written == stated


def test_every_claim_has_a_kind_a_place_and_fresh_seeds() -> None:
    for name, entry in registration().items():
        assert entry.first_seed >= FRESH, name
        for id, claim in entry.claims.items():
            assert claim.kind in KINDS, id
            assert claim.place, id
            assert claim.bands, id


def test_the_file_is_registered_as_it_is() -> None:
    """A change of the file, or of what experiments run, needs `engram register`."""
    assert register(check=True) == 0
    assert registered.in_force()["date"] is not None


def test_a_record_keeps_the_registration_and_the_commit_that_it_was_made_under() -> None:
    env = environment("cpu", "none")
    assert env["registration"] == registered.in_force()
    tree = Path(registered.__file__).parents[2]
    if (tree / ".git").exists():
        head = subprocess.run(["git", "-C", str(tree), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        assert env["commit"] == head.stdout.strip()


def test_a_form_changes_with_all_that_can_change_a_verdict() -> None:
    raw = {"claims": {"x.a": {"sentence": "It grows.", "measures": [["slope", "> 0"]]}}}
    entry, ids = Registered({"quick": 5}, {}, raw=raw), ["run-1", "run-2"]
    form = entry.forms("quick", ids)["x.a"]
    assert form == entry.forms("quick", reversed(ids))["x.a"]
    band = {"claims": {"x.a": {"sentence": "It grows.", "measures": [["slope", "> 0.1"]]}}}
    changed = [replace(entry, raw=band), replace(entry, n={"quick": 6}), replace(entry, first_seed=FRESH + 100)]
    assert form not in [other.forms("quick", ids)["x.a"] for other in changed]
    assert form != entry.forms("quick", ["run-1", "run-3"])["x.a"]


def test_a_version_has_the_forms_of_all_lines_up_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"date": "2026-01-01", "file": "a", "forms": {"x": {"quick": "1"}, "y": {"quick": "2"}}},
        {"date": "2026-01-02", "file": "b", "forms": {"x": {"quick": "3", "paper": "4"}}},
        {"date": "2026-01-03", "file": "b", "forms": {"y": {"quick": "5"}}},
    ]
    (tmp_path / "history").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(registered, "HISTORY", tmp_path / "history")
    for cached in (registered.history, forms_at):
        cached.cache_clear()
    try:
        assert forms_at("a") == {"x": {"quick": "1"}, "y": {"quick": "2"}}
        assert forms_at("b") == {"x": {"quick": "3", "paper": "4"}, "y": {"quick": "5"}}
        assert forms_at("c") == {}
    finally:
        monkeypatch.undo()
        for cached in (registered.history, forms_at):
            cached.cache_clear()


def test_records_of_other_seeds_are_exploratory() -> None:
    """The first seeds were looked at before anything was registered."""
    experiment = experiments.find("birth.joint")
    found = Index.of([COMMITTED])
    old = experiment.labelled("quick", [0, 1])
    runs = registrations_free(old, found)
    for entry in entries_of(experiment, runs):
        assert entry.status == "exploratory"
        assert entry.unregistered is not None
        assert "seeds" in entry.unregistered


def registrations_free(labelled: Any, index: Index) -> Any:
    from engram.claims import Runs
    from engram.specs.spec import run_id

    ids = [run_id(spec) for specs in labelled.values() for spec in specs]
    return Runs.of(labelled, {id: index.found[id].record for id in ids}, "quick", [0, 1])


def test_too_few_seeds_decide_neither_way() -> None:
    experiment = experiments.find("birth.joint")
    against = Claim("x", "", "", (Measure.over_seeds("gap", [-1.0, -1.1], low=0),))
    assert against.verdict == "disagrees"
    assert Entry("x", "", experiment, "quick", against).verdict == "inconclusive"


def test_a_seed_that_diverged_weakens_a_disagreement_too() -> None:
    experiment = experiments.find("birth.joint")
    values = [-1.0, -1.1, -1.2, -1.0, -0.9, -1.0, -1.1, -1.0, -1.0, -1.1]
    against = Claim("x", "", "", (Measure.over_seeds("gap", values, low=0),))
    assert Entry("x", "", experiment, "quick", against).verdict == "disagrees"
    assert Entry("x", "", experiment, "quick", against, diverged=(10_003,)).verdict == "inconclusive"


def test_registered_seeds_decide_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other seeds that lie beside them are not taken in, and fresh ones are not looked at before all have ended."""
    experiment, index = experiments.find("birth.joint"), Index.of([COMMITTED])
    mine = Registered({"quick": 2}, {}, first_seed=1)
    monkeypatch.setitem(registrations.registration(), "birth.joint", mine)
    best = best_runs(experiment, index)
    assert best is not None
    assert best[0].seeds == (1, 2)
    late = Registered({"quick": 5}, {}, first_seed=FRESH)
    monkeypatch.setitem(registrations.registration(), "birth.joint", late)
    best = best_runs(experiment, index)
    assert best is not None
    assert set(best[0].seeds) < set(range(FRESH)) or best[0].seeds == tuple(range(FRESH, FRESH + 5))

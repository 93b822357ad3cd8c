"""The first result of a newcomer reads as what it is: where the numbers lie, and what all seeds say."""

from collections.abc import Callable
from math import nan
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from engram.bench import suite
from engram.bench.lines import Benchmark
from engram.claims import Measure
from engram.claims.verdicts import committed_verdicts
from engram.experiments import find, names
from engram.show.preliminary import is_preliminary, place_of, print_first, sentence
from engram.show.tables import found

Said = Callable[..., tuple[int, str, str]]
LEDGER = {"a.b": {"verdict": "agrees", "scale": "quick", "seeds": 10}}


def measure(value: float | None, n: int = 1, method: str = "t over seeds") -> dict[str, Any]:
    return {
        "name": "x",
        "note": "",
        "bound": None,
        "measured": value,
        "predicted": [0.9, None],
        "n": n,
        "method": method,
    }


def claim(*measures: dict[str, Any], seeds: int = 1, scale: str = "quick", **more: Any) -> dict[str, Any]:
    about = {"id": "a.b", "statement": "It holds.", "verdict": "inconclusive", "settings": {}, "scale": scale}
    return about | {"measures": list(measures), "seeds": list(range(seeds))} | more


def test_one_seed_is_told_with_the_verdict_over_all() -> None:
    one = claim(measure(0.95))
    assert is_preliminary(one, 5)
    assert sentence(one, 5, LEDGER) == (
        "this seed: inside the predicted range; over 10 seeds: the claim holds (ledger: agrees)"
    )
    missed = sentence(claim(measure(0.95), measure(0.5)), 5, {})
    assert missed == "this seed: outside the predicted range; the ledger has no verdict yet"


def test_some_seeds_smoke_and_settings() -> None:
    assert sentence(claim(measure(0.95, 3), seeds=3), 5, LEDGER).startswith(
        "these 3 seeds, of the 5 that a verdict needs: "
    )
    smoke = claim(measure(0.1), scale="smoke", verdict="disagrees")
    assert is_preliminary(smoke, 1)
    assert sentence(smoke, 1, LEDGER) == (
        "this seed at smoke scale, which is too small to decide: outside the predicted range; "
        "over 10 seeds at quick scale: the claim holds (ledger: agrees)"
    )
    assert "no verdict of the ledger applies" in sentence(claim(measure(0.95), settings={"task.K": 3}), 5, LEDGER)


def test_what_is_decided_stays_decided() -> None:
    """Enough seeds, or an exact law, have a verdict."""
    assert not is_preliminary(claim(measure(0.95, 5), seeds=5), 5)
    assert not is_preliminary(claim(measure(0.95, 1, "exact"), verdict="agrees"), 5)


def test_a_memory_that_is_not_born_gives_a_bound() -> None:
    """The last step stands for its birth: the ratio is told as a bound, and no number changes."""
    ratio = Measure.over_seeds("log ratio", [0.7], low=0)
    assert ratio.bounded("≥", 0) == ratio
    assert Measure.over_seeds("log ratio", [nan]).bounded("≥", 1).estimate.note == ""  # no number, and no bound
    late = ratio.bounded("≥", 1)
    assert (late.values, late.interval, late.verdict) == (ratio.values, ratio.interval, ratio.verdict)
    console = Console(width=100, record=True)
    print_first(console, [claim(measure(0.7) | {"bound": late.estimate.bound, "note": late.estimate.note})], 5, {})
    told = " ".join(console.export_text().split())
    assert "a bound, at least: the seed did not get there, and the end of the run stands for the step" in told
    assert "≥ 0.7 predicted" in told
    several = Measure.over_seeds("log ratio", [0.7, 0.8, 0.9], low=0).bounded("≤", 2).estimate
    assert several.note.startswith("a bound, at most: 2 of 3 seeds did not get there")
    assert found({"bound": several.bound, "measured": 0.8}) == "≤ 0.8"
    assert found({"bound": several.bound, "measured": None}) == "–"
    both = Measure.over_seeds("log ratio", [0.7, 0.8], low=0).bounded("≥", 2).bounded("≤", 1).estimate
    assert (both.bound, "at least" in both.note and "at most" in both.note) == ("", True)


def test_places() -> None:
    assert [place_of(measure(value)) for value in (0.95, 0.9, None)] == ["inside", "outside", None]


def test_every_claim_has_a_committed_verdict() -> None:
    assert set(committed_verdicts()) == {id for name in names() for id in find(name).statements}


def test_run_never_says_inconclusive_of_one_seed(home: Path, said: Said) -> None:
    code, out, err = said("run", "memory.margin", "--scale", "smoke")
    assert code == 0, err
    assert "inconclusive" not in out
    assert "this seed at smoke scale" in out


def test_lines_are_printed(home: Path) -> None:
    console = Console(record=True, width=100)
    print_first(console, [claim(measure(0.95), measure(None))], 5, LEDGER)
    printed = console.export_text()
    assert "a.b  this seed: not measured in full, or outside the predicted range; over 10 seeds:" in printed
    assert "0.95  predicted: > 0.9  inside" in printed


def test_bench_prints_each_line_as_it_is_measured(
    said: Said, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = list[str]()

    def first(machine: suite.Bench) -> Any:
        yield Benchmark("first", 1.0, 2.0, "baseline: twice as slow")

    def second(machine: suite.Bench) -> Any:
        printed.extend(capsys.readouterr())
        yield Benchmark("second", 3.0, 3.0, "baseline: the same")

    monkeypatch.setattr(suite, "BENCHMARKS", {"first": first, "second": second})
    code, out, _ = said("bench")
    assert code == 0
    assert "first" in printed[0]
    assert "2 ×" in printed[0]
    assert "second" in out
    assert "measured in " in out
    assert "measuring second (2 of 2" in printed[1]

"""Findings quote the ledger: every number is a record's, and prose that a verdict no longer supports is found out."""

import json
from pathlib import Path
from typing import Any

import pytest

from engram.claims.findings import Finding, declared, read_finding
from engram.claims.registration import registration
from engram.cli import findings as command
from engram.cli.decided import Decided
from engram.cli.main import main
from engram.errors import EngramError
from engram.experiments import find, names
from engram.show.findings import changed_verdicts, markdown
from engram.show.quoting import filled
from engram.show.save import MOST_BYTES, small_image

DECLARED = declared()


def measure(name: str = "slope", measured: float | None = 0.45888, **fields: Any) -> dict[str, Any]:
    common = {"n": 5, "counts": "seeds", "method": "Student's t", "verdict": "agrees", "note": None}
    return (
        common | {"name": name, "measured": measured, "interval": [0.4372, 0.4805], "predicted": [0.4, None]} | fields
    )


def claim(verdict: str = "agrees", measures: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    parts = [measure()] if measures is None else measures
    said = {"id": "toy.claim", "statement": "Widths grow.", "verdict": verdict, "status": "exploratory", "n": 5}
    where = {"scale": "quick", "range": "N 64 … 1024", "command": "engram run toy --seeds 5", "experiment": "toy"}
    none = {"why_missing": None, "settings": {}, "diverged": [], "looked": None, "unregistered": "nobody wrote it down"}
    return (parts[0] if parts else measure(measured=None)) | said | where | none | {
        "stale": False, "holm": None, "measures": parts, "kind": "own"} | fields  # fmt: skip


def toy(text: str = "It is {slope} {toy.claim}.", **fields: Any) -> Finding:
    numbers = fields.pop("numbers", {"slope": ["toy.claim", "slope"]})
    entry = {"title": "Widths grow", "about": "here", "text": text, "means": "Much.", "limits": "Little."}
    rest = {"figures": {"toy": "A line."}, "log": [], "claims": {"toy.claim": ["agrees"]}, "numbers": numbers}
    return read_finding("toy", entry | rest | fields)


def test_thirteen_findings_are_declared_each_with_claims_figures_and_an_entry_of_the_log() -> None:
    assert len(DECLARED) == len({finding.title for finding in DECLARED}) == 13
    entries = {path.stem for path in (Path(__file__).parents[1] / "docs/log").iterdir()}
    for finding in DECLARED:
        assert finding.claims
        assert finding.figures
        assert finding.log
        assert set(finding.log) <= entries, finding.name


def test_what_is_declared_exists() -> None:
    """Claims, experiments that draw, and measures, by the names under which they are registered."""
    experiments = {name: find(name) for name in names()}
    owner = {id: name for name, experiment in experiments.items() for id in experiment.statements}
    for finding in DECLARED:
        assert set(finding.claims) <= set(owner), finding.name
        assert all(hasattr(experiments[name].module, "figure") for name in finding.figures), finding.name
        for quote in finding.numbers.values():
            bands = registration()[owner[quote.claim]].claims[quote.claim].bands
            assert any(quote.is_registered_as(band.name) for band in bands), (finding.name, quote.measure)


def test_a_number_is_quoted_as_its_record_has_it() -> None:
    claims = {"toy.claim": claim()}
    assert filled(toy("{slope}"), "{slope}", claims) == "0.46 (0.44 … 0.48)"
    assert filled(toy(), "{slope:value} at {toy.claim:range}", claims) == "0.459 at N 64 … 1024"
    assert filled(toy(), "{slope:factor} {slope:percent}", claims) == "1.58 (1.55 … 1.62) 46 (44 … 48) %"
    assert filled(toy(), "{toy.claim}", claims) == "[`toy.claim` **agrees**; exploratory: 5 seeds, quick scale]"
    exact = {"toy.claim": claim(measures=[measure(measured=-0.25, method="exact")])}
    assert filled(toy(), "{slope}", exact) == "−0.25"
    single = {"toy.claim": claim(measures=[measure(interval=[None, None], n=1)])}
    assert filled(toy(), "{slope}", single) == "0.459 (1 seed, no interval)"
    assert filled(toy(), "{slope}", {"toy.claim": claim("missing", [])}) == "(not measured yet)"


def test_a_measure_is_found_by_its_name_with_any_size_in_it() -> None:
    """# stands for a number, as in the registration; of several the finding says which."""
    both = {"toy.claim": claim(measures=[measure("at d = 8", 1.0), measure("at d = 64", 2.0)])}
    last = toy("{end} {end:size}", numbers={"end": ["toy.claim", "at d = #", "last"]})
    assert filled(last, "{end:value} at {end:size}", both) == "2 at 64"
    several = toy("{end}", numbers={"end": ["toy.claim", "at d = #"]})
    with pytest.raises(EngramError, match=r"toy: 2 measures of toy\.claim are called 'at d = #'"):
        filled(several, "{end}", both)
    with pytest.raises(EngramError, match=r"toy: no measure of toy\.claim is called 'width'; it has 'at d = 8', 'at d"):
        filled(toy("{w}", numbers={"w": ["toy.claim", "width"]}), "{w}", both)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"text": "It is {slop}, {slope}."}, "'slop' is neither a number nor a claim"),
        ({"text": "It is {slope:digits}."}, "'slope:digits': a number is shown as"),
        ({"text": "Nothing."}, "the number 'slope' is not quoted"),
        ({"claims": {"toy.claim": ["true"]}}, "'true' is no verdict"),
        ({"claims": {"toy.other": ["agrees"]}}, "the number 'slope' is of toy.claim, which is not among its claims"),
        ({"expects": {"width": ["agrees"]}}, "expects 'width', which is not one of its numbers"),
        ({"colour": "red"}, "unknown 'colour'"),
    ],
)
def test_a_mistake_in_a_declaration_is_one_line(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(EngramError, match=complaint) as caught:
        toy(**fields)
    assert str(caught.value).startswith("findings: toy: ")
    assert "\n" not in str(caught.value)


def test_a_verdict_that_the_prose_does_not_expect_is_said_above_it() -> None:
    """Also one that is stale or missing."""
    assert changed_verdicts([toy()], [claim()]) == []
    states = {"inconclusive": claim("inconclusive"), "stale": claim(stale=True), "missing": claim("missing", [])}
    for word, one in states.items():
        now = [one]
        (line,) = changed_verdicts([toy()], now)
        assert line == f"findings: toy: toy.claim is “{word}”, and the prose was written for agrees"
        assert f"> **The prose below is out of date.** `toy.claim` is “{word}”, and" in markdown([toy()], now)
    assert "out of date" not in markdown([toy()], [claim()])


def test_a_finding_about_a_claim_that_nobody_makes_is_refused() -> None:
    with pytest.raises(EngramError, match=r"^findings: toy: no claim is called toy\.claim; `engram list` shows them$"):
        markdown([toy()], [claim() | {"id": "toy.other"}])


def test_a_part_of_a_claim_may_be_relied_on_too() -> None:
    """A claim can keep its verdict while the number that the prose speaks of has lost its own."""
    relies = toy(expects={"slope": ["disagrees"]}, claims={"toy.claim": ["disagrees"]})
    assert changed_verdicts([relies], [claim("disagrees", [measure(verdict="disagrees")])]) == []
    (line,) = changed_verdicts([relies], [claim("disagrees")])
    assert line == "findings: toy: toy.claim “slope” is “agrees”, and the prose was written for disagrees"
    assert changed_verdicts([toy(expects={"slope": ["agrees"]})], [claim("missing", [])]) != []


def test_the_page_says_how_sure_it_is() -> None:
    page = markdown([toy()], [claim(holm=0.0123, looked="The band was wider.")])
    assert "It is 0.46 (0.44 … 0.48) [`toy.claim` **agrees**; exploratory: 5 seeds, quick scale]." in page
    assert "**How sure.** Of 1 claim 1 agrees; 1 is exploratory. Little." in page
    assert "| `toy.claim` Widths grow. | agrees | exploratory | 5 seeds, quick scale: N 64 … 1024 | 0.0123 |" in page
    assert "Exploratory: nobody wrote it down. Decided after seeing numbers: The band was wider." in page
    assert "engram run toy --seeds 5" in page
    assert "![A line.](findings/toy.webp)" in page


def test_the_command_fails_when_prose_is_out_of_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("engram.claims.findings.declared", lambda: (toy(),))
    for verdict, code in (("agrees", 0), ("disagrees", 1)):
        monkeypatch.setattr(command, "decided", lambda *_, now=verdict: Decided([claim(now)], []))
        for words in (["--markdown"], ["--json"], []):
            with pytest.raises(SystemExit) as ended:
                main(["findings", *words])
            assert ended.value.code == code
            out, err = capsys.readouterr()
            assert ("toy.claim is “disagrees”" in err) == bool(code)
            assert verdict in (json.loads(out)["findings"][0]["claims"][0]["verdict"] if "--json" in words else out)


def test_the_same_figure_is_small_and_says_which_records_it_shows() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6))
    figure.subplots().plot(range(50))
    image = small_image(figure, "records 1234")
    assert b"records 1234" in image
    assert image[8:12] == b"WEBP"
    assert len(image) <= MOST_BYTES

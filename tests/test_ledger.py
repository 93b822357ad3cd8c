"""The ledger says of every claim what is known of it, and the same on its page as in LEDGER.md."""

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claims import CLAIMS, WHY
from engram import api
from engram.claims.ledger import OTHER, PAPERS, TALKS, Entry, Index, missing_specs, paper_of
from engram.cli.main import main
from engram.experiments import find, names
from engram.records.files import COMMITTED
from engram.registered import STATUSES
from engram.show.claims import STATES, claim_state, tally
from engram.show.ledger_markdown import markdown
from engram.show.ledger_page import page, plot


def test_every_claim_of_engram_has_a_known_paper() -> None:
    """Also a claim without records; a new title belongs into PAPERS."""
    claims = [
        Entry(id, text, experiment).to_json()
        for experiment in map(find, names())
        for id, text in experiment.statements.items()
    ]
    assert {claim["id"] for claim in claims if claim["paper"] not in (*PAPERS, TALKS)} == set()
    assert all(claim["paper"] == "Birth of a Transformer" for claim in claims if claim["id"].startswith("birth."))


def test_the_paper_is_the_one_that_the_source_names_first() -> None:
    assert paper_of("Ramsauer et al. 2021; Smart, Bietti and Sengupta 2025", "x") == "Ramsauer et al. 2021"
    assert paper_of("talks; the task of Birth of a Transformer", "memory.x") == "Birth of a Transformer"
    assert paper_of("slides", "memory.x") == TALKS
    assert paper_of("", "birth.fig3") == "Birth of a Transformer"
    assert paper_of("my own idea", "mine") == OTHER


def test_each_claim_has_one_state_and_says_why() -> None:
    html, text = page(CLAIMS), markdown(CLAIMS)
    said = "agrees disagrees missing stale inconclusive inconclusive"
    assert [claim_state(claim) for claim in CLAIMS] == said.split()
    assert tally(CLAIMS) == {"agrees": 1, "disagrees": 1, "inconclusive": 2, "stale": 1, "missing": 1}
    for said in ("No record decides", "The record is stale", "Fewer seeds than", "Seeds that diverged: 7"):
        assert html.count(said) == text.count(said) == 1
    for claim in CLAIMS:
        assert f'id="{claim["id"]}" data-paper="{claim["paper"]}" data-state="{claim_state(claim)}"' in html
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{claim['id']}` |")]
        assert claim_state(claim) in row.split(" | ")[-4]


def test_a_disagreement_is_shown_in_full_with_its_explanation() -> None:
    """An explanation belongs to a disagreement: a claim that agrees has none."""
    html, text = page(CLAIMS), markdown(CLAIMS)
    assert {claim["id"]: claim["why"] for claim in CLAIMS if claim["why"]} == {"birth.outside": WHY["birth.outside"]}
    assert html.count("Why it disagrees.</b> b|c is &lt;b&gt;large&lt;/b&gt; *because* of `it`.") == 1
    full = text.partition("\n## Disagreements\n")[2]
    assert re.findall(r"^### (.*)$", text, flags=re.MULTILINE) == ["`birth.outside`"]
    assert r"b\|c is \<b>large\</b> \*because\* of \`it\`." in full
    assert full.count("\n| ") == 2 + 2  # head, rule, and both measures
    assert "(#birthoutside)" in text
    assert "Not explained yet." in markdown([claim | {"why": None} for claim in CLAIMS])
    assert markdown(CLAIMS[:1]).endswith("## Disagreements\n\nNone.\n")


def test_page_is_one_file_without_addresses_or_clock() -> None:
    html = page(CLAIMS, "these <records>", "engram ledger")
    assert html == page(CLAIMS, "these <records>", "engram ledger")
    assert not re.search(r"https?:|src=|@import|url\(|Date", html)
    assert "these &lt;records&gt;" in html
    assert html.count("</script>") == 1
    assert "0 of 0 claims" in page([])


def test_markdown_tables_keep_their_columns() -> None:
    """A bar in a name may not open a new cell; counts of papers add up to all."""
    lines = markdown(CLAIMS).splitlines()
    widths = {len(re.split(r"(?<!\\)\|", line)) - 2 for line in lines if line.startswith("|")}
    assert widths == {6, 10, 2 + len(STATES), 2 + len(STATES) + len(STATUSES)}
    table = lines[lines.index("| paper | claims | agrees | disagrees | inconclusive | stale | missing |") + 2 :]
    table = table[: 1 + len({claim["paper"] for claim in CLAIMS})]
    counts = [[int(cell) for cell in line.split("|")[2:-1]] for line in table]
    assert [sum(column) for column in zip(*counts[:-1], strict=True)] == counts[-1]
    assert counts[-1][0] == sum(counts[-1][1:]) == len(CLAIMS)


NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(NUMBERS, min_size=5, max_size=5))
def test_a_drawing_keeps_the_order_of_its_numbers(numbers: list[float]) -> None:
    """Band, interval and dot, wherever they lie."""
    drawn = plot({"predicted": numbers[:2], "interval": numbers[2:4], "measured": numbers[4]})
    marks = [float(x) for x in re.findall(r"M(\S+) (?:3v14|7v6)", drawn) + re.findall(r'cx="(\S+?)"', drawn)]
    order = sorted(range(5), key=numbers.__getitem__)
    assert [marks[i] for i in order] == sorted(marks)
    assert all(0 <= mark <= 150 for mark in marks)


def test_an_open_side_reaches_the_edge() -> None:
    drawn = plot({"predicted": (0.9, None), "interval": (None, None), "measured": 0.95})
    left, width = map(float, re.findall(r'x="(\S+?)" y="3" width="(\S+?)"', drawn)[0])
    assert left + width == 150
    assert "M0 10H150" in drawn.partition("line")[2]
    assert "<circle" not in plot({"predicted": (0, 1), "interval": None, "measured": None})


def test_command_writes_the_page(home: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From local and committed records, or from the committed ones only; here all records are local."""

    def run(*words: str) -> str:
        with pytest.raises(SystemExit):
            main(["ledger", "memory.attention", *words])
        return "".join(capsys.readouterr())

    home.mkdir()
    for records in COMMITTED.glob("memory.attention*"):
        shutil.copy(records, home)
    monkeypatch.setattr("engram.records.files.COMMITTED", home / "none")
    assert run("--html", "new/all.html") == "ledger  new/all.html\n"
    assert json.loads(run("--html", "c.html", "--committed", "--json")) == {"ledger": str(Path("c.html").resolve())}
    decided, bare = (json.loads(run("--json", *words))["claims"] for words in ((), ("--committed",)))
    assert {claim["verdict"] for claim in decided} == {"agrees"}
    assert {claim["verdict"] for claim in bare} == {"missing"}
    command = "engram ledger memory.attention --html FILE"
    assert Path("new/all.html").read_text() == page(decided, "local and committed records", command)
    assert Path("c.html").read_text() == page(bare, "the committed records", f"{command} --committed")
    assert "is a folder" in run("--html", "new")
    assert "choose one" in run("--html", "l.html", "--markdown")


@pytest.mark.parametrize(("options", "asked"), [((), 0), (("--anew",), 60)], ids=["committed", "anew"])
def test_verify_runs_what_has_no_record(
    options: tuple[str, ...], asked: int, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """With --anew committed records do not count: neither as run nor in what is told."""
    ran: list[Any] = []
    monkeypatch.setattr(api, "run_specs", lambda specs, watch, where: ran.extend(specs))
    with pytest.raises(SystemExit) as end:
        main(["verify", "birth.fig9", "--json", *options])
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    assert (len(ran), claim["verdict"], end.value.code) == (asked, "missing" if asked else "agrees", int(bool(asked)))


def test_specs_that_experiments_share_are_missing_once() -> None:
    shared = missing_specs([find("birth.fig4-left"), find("birth.fig5")], "quick", Index([]))
    assert shared == missing_specs([find("birth.fig4-left")], "quick", Index([]))
    assert len(shared) == 5 * find("birth.fig5").least_seeds("quick") + 5


@pytest.mark.parametrize("bundle", ["birth.fig9-quick", "memory.lemmas-quick"])
def test_a_committed_record_is_checked_by_its_name(bundle: str, home: Path, capsys: pytest.CaptureFixture) -> None:
    """In a home that is empty: the name is found in the bundle, and what it says is computed again."""
    with zipfile.ZipFile(COMMITTED / f"{bundle}.zip") as packed:
        name = packed.namelist()[0].partition("/")[0]
    with pytest.raises(SystemExit) as end:
        main(["runs", "check", name, "--steps", "2"])
    assert (end.value.code, " agree to " in capsys.readouterr().out) == (0, True)  # to the byte, or on others to 0.1 %


@pytest.mark.parametrize("command", ["rm", "resume"])
def test_a_committed_record_is_not_changed(command: str, home: Path, capsys: pytest.CaptureFixture) -> None:
    name = next(COMMITTED.glob("bigram-simplified-*")).name
    with pytest.raises(SystemExit) as end:
        main(["runs", command, name])
    assert (end.value.code, "no run" in capsys.readouterr().err) == (2, True)
    assert (COMMITTED / name / "spec.json").exists()

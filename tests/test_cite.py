"""Every claim can be cited, with the papers that its source names, and what is cited is what the ledger says."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from engram.claims.papers import PAPERS, cited
from engram.cli.decided import decided
from engram.records.files import COMMITTED
from engram.show.citing import about, lines
from engram.show.tables import number

ROOT = Path(__file__).parent.parent
Said = Callable[..., tuple[int, str, str]]


def test_every_claim_is_cited_with_its_numbers_and_its_papers() -> None:
    names = {paper.name for paper in PAPERS}
    for claim in decided((), [COMMITTED]).claims:
        told = about(claim, "0", None)
        text = "\n".join(lines(told))
        assert claim["statement"] in text
        assert claim["command"] in text
        for measure, line in zip(claim["measures"], told["numbers"], strict=True):
            assert number(measure["measured"]) in line
        assert len(told["bibtex"]) > (claim["paper"] in names), claim["id"]
        for entry in told["bibtex"]:
            assert entry.count("{") == entry.count("}")
            assert re.match(r"@\w+\{\w+,\n", entry)


def test_papers_are_those_of_the_file_for_the_citation() -> None:
    written = (ROOT / "CITATION.cff").read_text(encoding="utf-8").partition("references:")[2]
    titles = {
        title.strip('"').lower(): int(year)
        for title, year in re.findall(r"title: (.+?)\n.*?year: (\d+)", written, re.S)
    }
    for paper in PAPERS:
        assert titles.get(paper.title.lower()) == paper.year, paper.key
        assert paper.arxiv is None or f"arxiv.org/abs/{paper.arxiv}\n" in written, paper.key
    assert len({paper.key for paper in PAPERS}) == len(PAPERS)


def test_two_papers_of_one_name_are_told_apart_by_their_titles() -> None:
    source = "Sanford, Hsu and Telgarsky 2024, One-layer transformers fail to solve the induction heads task, Theorem 1"
    assert [paper.key for paper in cited(source)] == ["sanford2024onelayer"]
    assert cited("talks, slide 3") == []


def test_the_command_cites_a_claim_and_names_the_nearest(said: Said) -> None:
    code, out, _ = said("cite", "birth.output-first", "--json")
    assert code == 0
    assert json.loads(out)["seeds"] == list(range(10000, 10010))
    code, _, error = said("cite", "birth.outputfirst")
    assert code == 2
    assert "did you mean birth.output-first?" in error


@pytest.mark.parametrize("name", ["x" * 300, "", "../../etc"])
def test_nonsense_is_refused_in_a_line(said: Said, name: str) -> None:
    code, _, error = said("cite", name)
    assert code == 2
    assert len(error.strip().split("\n")) == 1

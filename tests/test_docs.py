"""What the documents say is true: paths exist, Python examples run, the ledger is the one of the committed records."""

import doctest
import json
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import engram
from engram.calculator import measured
from engram.claims import verdicts
from engram.claims.findings import declared, stamp
from engram.claims.ledger import Index, best_runs, ledger
from engram.cli.decided import adjusted
from engram.experiments import find, matching, names
from engram.measuring import measured_points, table
from engram.records.bundle import MOST_COMMITTED
from engram.records.files import COMMITTED
from engram.records.shelf import all_records
from engram.show.findings import changed_verdicts
from engram.show.findings import markdown as findings_page
from engram.show.ledger_markdown import markdown
from engram.show.ledger_page import page
from engram.show.paper import fitted
from engram.show.save import MOST_BYTES
from figures import covered, faults, misfits

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_path_in_a_document_exists(document: Path) -> None:
    for path in re.findall(r"\]\((?!https:|engram:)([^)#]+)\)", document.read_text()):
        assert (document.parent / path).exists(), path


def test_the_log_lists_every_entry_by_its_date_and_title() -> None:
    listed = re.findall(r"^- (\S+) · \[(.+)\]\((.+)\)$", (ROOT / "LOG.md").read_text(), flags=re.MULTILINE)
    assert {path for _, _, path in listed} == {f"docs/log/{entry.name}" for entry in (ROOT / "docs/log").iterdir()}
    assert [date for date, _, _ in listed] == sorted(date for date, _, _ in listed)
    for date, title, path in listed:
        assert path.startswith(f"docs/log/{date}-")
        assert (ROOT / path).read_text().startswith(f"# {title}\n\n{date}\n\n## Set-up\n")


def test_python_of_the_readme_runs(home: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_sessions_of_the_readme_run() -> None:
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert results.attempted >= 5
    assert results.failed == 0


def test_commands_of_the_readme_are_known() -> None:
    from engram.cli.main import app

    for line in re.findall(r"^engram (.*?)(?:#.*)?$", README, flags=re.MULTILINE):
        app.parse_args(line.split(), exit_on_error=False, print_error=False)
    targets = re.findall(r"^make (\w+)", README, flags=re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert targets == ["birth", "test"]
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_doctests() -> None:
    modules = [
        "engram",
        *(info.name for info in pkgutil.walk_packages(engram.__path__, "engram.") if "__main__" not in info.name),
    ]
    results = [doctest.testmod(import_module(name)) for name in modules]
    assert sum(result.failed for result in results) == 0


@pytest.fixture(scope="module")
def index() -> Index:
    return Index.of([COMMITTED])


@pytest.fixture(scope="module")
def committed(index: Index) -> list[dict[str, Any]]:
    """Every claim, decided by the committed records."""
    assert index.unreadable == []
    return adjusted([entry.to_json() for entry in ledger(matching(()), index)])


def test_every_disagreement_is_explained(committed: list[dict[str, Any]]) -> None:
    """With a control that shows the code is right. An explanation may wait for the seeds that decide again."""
    disagree = {claim["id"]: claim["why"] for claim in committed if claim["verdict"] == "disagrees"}
    assert {id for id, why in disagree.items() if "Control" not in (why or "")} == set()
    explained = {id for name in names() for id in find(name).explanations}
    agree = {claim["id"] for claim in committed if claim["verdict"] == "agrees"}
    assert set(disagree) <= explained
    assert explained & agree == set()


def test_ledgers_are_generated_from_committed_records(committed: list[dict[str, Any]]) -> None:
    """Both files are those of `make ledger`, to the byte."""
    assert (ROOT / "LEDGER.md").read_text() == markdown(committed)
    html = page(committed, "the committed records", "engram ledger --html FILE --committed")
    assert (ROOT / "docs/ledger.html").read_text() == html


def test_verdicts_are_those_of_committed_records(committed: list[dict[str, Any]]) -> None:
    """What first results are compared with is what `make ledger` reads off the records, to the byte."""
    assert verdicts.FILE.read_text() == verdicts.table(committed)


def test_capacities_are_generated_from_committed_records(index: Index) -> None:
    """What the calculator fits is what `make capacities` reads off the records, to the byte."""
    assert measured.FILE.read_text() == table(measured_points(index))


def test_findings_are_generated_from_committed_records(committed: list[dict[str, Any]]) -> None:
    """The page is that of `make findings`, to the byte; where a verdict has changed, a person rewrites the prose."""
    assert changed_verdicts(declared(), committed) == []
    assert (ROOT / "docs/findings.md").read_text() == findings_page(declared(), committed)


def test_figures_of_findings_are_small_and_show_the_records_that_decide(index: Index) -> None:
    """`make findings` draws them."""
    shown = {name for finding in declared() for name in finding.figures}
    assert {path.name for path in (ROOT / "docs/findings").iterdir()} == {f"{name}.webp" for name in shown}
    for name in shown:
        image, best = (ROOT / f"docs/findings/{name}.webp").read_bytes(), best_runs(find(name), index)
        assert best is not None
        assert stamp(best[0]).encode() in image, name
        assert len(image) <= MOST_BYTES, name


@pytest.mark.parametrize("name", ["facts.lower-bound", "facts.scalings", "memory.many-to-one", "theory.three-steps"])
def test_figures_of_committed_records_can_be_read(name: str, index: Index) -> None:
    """All are drawn at smoke size in test_examples.py; these were once hard to read at their real sizes."""
    best = best_runs(find(name), index)
    assert best is not None
    assert faults(find(name).figure(best[0])) == []


@pytest.mark.parametrize(
    "name", ["birth.fig8", "birth.fig9", "memory.denoising", "memory.quantised", "scaling.families"]
)
def test_no_legend_lies_on_curves(name: str, index: Index) -> None:
    best = best_runs(find(name), index)
    assert best is not None
    assert covered(find(name).figure(best[0])) == []


@pytest.mark.parametrize("name", ["birth.fig3", "birth.joint", "hops.depth", "memory.denoising"])
@pytest.mark.parametrize("width", [3.25, 6.75])
def test_figures_of_committed_records_fit_into_a_paper(name: str, width: float, index: Index) -> None:
    best = best_runs(find(name), index)
    assert best is not None
    assert misfits(fitted(find(name).figure(best[0]), width), width) == []


def test_committed_records_are_whole_and_small() -> None:
    records = all_records(COMMITTED)
    assert records
    for record in records:
        assert record.finished
        assert not record.stale
        assert "pid" not in json.dumps(record.env)
        assert isinstance(record.rows[-1]["step"], int)
    assert sum(file.stat().st_size for file in COMMITTED.rglob("*") if file.is_file()) < MOST_COMMITTED


def test_nothing_speaks_of_a_machine() -> None:
    """No absolute machine paths in what is shipped."""
    for file in [*DOCUMENTS, *(ROOT / "src").rglob("*.py"), *COMMITTED.rglob("*.json")]:
        assert not re.search(r"(^|[\s\"'(=])/(work|root|home|tmp)/", file.read_text()), file


def test_one_version_everywhere() -> None:
    """The package, its metadata, the citation and the newest release of the changelog name the same version."""
    said = {
        "pyproject.toml": r'^version = "(.+)"',
        "CITATION.cff": r"^version: (.+)",
        "CHANGELOG.md": r"^## \[(\d.+?)\]",
    }
    found = {file: re.search(mark, (ROOT / file).read_text(), flags=re.MULTILINE) for file, mark in said.items()}
    assert {file: match and match[1] for file, match in found.items()} == dict.fromkeys(said, engram.__version__)


def test_no_room_hides_a_name_of_the_package() -> None:
    """A folder engram/run would hide engram.run as soon as anything imports it."""
    rooms = {info.name for info in pkgutil.iter_modules(engram.__path__)}
    assert not rooms & set(engram.__all__)
    assert all(hasattr(engram, name) for name in engram.__all__)

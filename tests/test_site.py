"""The site of all documents: it is built without a warning or a network, and what its pages say can be run."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engram.cli.main import app
from engram.records import Record

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
BY_HAND = [page for page in DOCS if page.name not in ("findings.md", "costs.md", "controls.md")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every warning is an error."""
    into = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", "-b", "html", "-d"]
    built = subprocess.run(
        [*command, str(into / "trees"), ".", str(into / "site")], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr[-3000:]
    return into / "site"


def test_the_site_needs_no_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', text)
        assert fetched == [], page
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "hallucin" in index


def test_the_site_has_every_document(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT)).with_suffix(".html").exists(), page
    generated = (site / "docs/generated/command-line.html").read_text(encoding="utf-8")
    assert all(f"engram {name}" in generated for name in app if not name.startswith("-"))


@pytest.mark.parametrize("page", [page for page in BY_HAND if ">>> " in page.read_text()], ids=lambda page: page.name)
def test_sessions_run(page: Path, home: Path) -> None:
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("page", BY_HAND, ids=lambda page: page.name)
def test_commands_are_known(page: Path) -> None:
    between_fences = page.read_text().split("\n```")[1::2]
    plain = "".join(block for block in between_fences if block.startswith("\n"))  # of no language
    for line in re.findall(r"^(?:\$ )?engram (.*?)(?:  +#.*| [|>] .*)?$", plain, re.MULTILINE):
        app.parse_args(line, exit_on_error=False, print_error=False)


def test_twenty_lines_read_a_record(home: Path) -> None:
    """Without Engram, as the page on the format shows it."""
    from engram import SGD, Bigram, Plan, Simplified, Train, run

    plan = Plan(optimiser=SGD(lr=0.2), steps=4, batch=4)
    record = run(Train(task=Bigram(K=3, T=24), model=Simplified(d=16), plan=plan))
    assert isinstance(record, Record)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/record-format.md").read_text(), re.DOTALL)
    assert len(code.split("\n\n\n")[1].splitlines()) <= 20
    assert "engram" not in code
    names: dict[str, object] = {"folder": record.folder}
    exec(code, names)
    columns, weights = names["columns"], names["weights"]
    assert isinstance(columns, dict)
    assert isinstance(weights, dict)
    assert columns["loss"] == record.column("loss").tolist()
    assert sorted(weights) == record.snapshot_steps

"""Every file of examples/ runs, and what it shows is there: a task, a model with its memory, a probe, a claim."""

import re
from pathlib import Path

import pytest

from engram import Linear, api
from engram.errors import EngramError
from engram.lab.pictures import catalogue
from engram.learning import Plan
from engram.models import Simplified
from engram.probes.probe import Look, known_probes
from engram.show.gallery import gallery
from engram.show.report import report

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("own_*.py")), ids=lambda file: file.stem)
def test_every_example_runs_and_resumes_from_its_record_alone(file: Path, home: Path) -> None:
    result = api.run(str(file), scale="smoke", seeds=2)
    assert result.notes == []
    assert len(result.figures) >= 4
    for record in result.records:
        assert list(record.code) == [file.name] or record.code == {}
        assert api.recheck(record)["ok"]
    assert file.read_text().startswith('"""')
    assert f"engram run ./{file.name}" in file.read_text()


def test_a_model_of_ones_own_is_read_like_any_other(home: Path) -> None:
    (record,) = api.run(str(EXAMPLES / "own_model.py"), scale="smoke").records
    (memory,) = record.memories()
    assert "kl.W" in record.columns
    assert [picture.name for picture in gallery(record)] == ["curves", "memories"]
    assert catalogue(record.train)[0]["name"] == "memory:W"
    assert Linear.of(memory).truncate(rank=2).W.shape == (128, 128)


def test_a_probe_of_ones_own_is_in_rows_and_report(home: Path) -> None:
    (record,) = api.run(str(EXAMPLES / "own_probe.py"), scale="smoke").records
    assert [("entropy.global" in row) for row in record.rows] == [step % 5 == 0 or step == 12 for step in range(13)]
    assert record.rows[0]["entropy.global"] > 0
    pictures = {picture.name: picture.figure for picture in gallery(record)}
    drawn = {line.get_label() for ax in pictures["probes"].axes for line in ax.lines}
    assert drawn == {"in context", "global"}
    page = report("mine", [(record, gallery(record))], [])
    assert "What the probes of this plan measured." in page


def own(text: str, path: Path) -> Path:
    path.write_text((EXAMPLES / "own_probe.py").read_text() + text)
    return path


WRONG = {
    "columns": ('\n\nCertainty.measure = lambda self, look: {"loss": 0.0}\n', "'loss' is not a column of this probe"),
    "undeclared": ('\n\nCertainty.columns = ()\n', "must be a Probe that says how its columns begin"),
    "suits": (
        '\n\nCertainty.missing = lambda self, task, model: "three layers"\n', "'Certainty' needs three layers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_probe_is_told(kind: str, home: Path, tmp_path: Path) -> None:
    text, says = WRONG[kind]
    with pytest.raises(Exception, match=says):
        api.run(str(own(text, tmp_path / "wrong.py")), scale="smoke")


def test_a_probe_that_asks_for_what_a_look_lacks_is_told_and_its_run_leaves_nothing(home: Path, tmp_path: Path) -> None:
    file = own("\n\nCertainty.measure = lambda self, look: look.weights\n", tmp_path / "guessed.py")
    with pytest.raises(Exception, match=r"a Look has no 'weights'; did you mean w\? it has: task, model, w, "):
        api.run(str(file), scale="smoke")
    assert [path for path in home.iterdir() if path.name != "figures"] == []


def test_the_page_and_the_docstring_list_all_that_a_look_has() -> None:
    has = {name for name in (*Look.__dataclass_fields__, *vars(Look)) if not name.startswith("_")}
    row = next(line for line in (EXAMPLES.parent / "docs" / "python.md").read_text().splitlines() if "Look`" in line)
    for name in has:
        assert re.search(rf"\b{name}\b", Look.__doc__ or ""), name
        assert re.search(rf"`{name}[`(]", row), name


def test_what_is_no_probe_is_told() -> None:
    plan = Plan.model_fields["probes"]
    assert plan.default == ()
    with pytest.raises(Exception, match=r"plan.probes: Simplified must be a Probe"):
        api.run(str(EXAMPLES / "own_probe.py"), scale="smoke", settings={"plan.probes": (Simplified(d=4),)})


def test_built_in_probes_declare_what_they_measure() -> None:
    """Each says how its columns begin, and either when every training has it or by which name a plan asks for it."""
    for kind in known_probes():
        assert kind.columns, kind
        assert (kind.rhythm is None) != (kind.called is None), kind
        assert kind.__doc__, kind


def test_a_named_class_in_ones_own_file_is_refused_when_it_is_loaded(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "named.py"
    file.write_text((EXAMPLES / "own_probe.py").read_text().replace("(Probe):", '(Probe, name="mine.Certainty"):'))
    with pytest.raises(EngramError, match=r"leave name='mine.Certainty' out; the record carries your file instead"):
        api.run(str(file), scale="smoke")

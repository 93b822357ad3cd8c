"""A file of one's own: it runs, its record carries its code, and only what changes numbers changes its identity."""

import json
import subprocess
import sys
from math import inf
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from engram import api
from engram.claims.experiment import SCALES, Runs, Scale
from engram.claims.ledger import entries_of
from engram.errors import EngramError
from engram.experiments import find, names
from engram.runner.execute import execute
from engram.show.save import drawn_data
from engram.specs.spec import run_id
from figures import faults

EXAMPLES = Path(__file__).parent.parent / "examples"
MINE = EXAMPLES / "own_task.py"
GOLDEN = Path(__file__).parent / "golden_birth_joint.jsonl"


@pytest.fixture
def mine(home: Path) -> Path:
    path = Path("mine.py")
    path.write_text(MINE.read_text())
    return path


def test_a_file_with_its_own_task_runs(mine: Path, home: Path) -> None:
    result = api.run("./mine.py", scale="smoke", seeds=2)
    assert [claim["id"] for claim in result.claims] == ["mine.looks-back"]
    assert result.claims[0]["command"] == "engram run mine.py --scale smoke --seeds 2"
    mine.unlink()  # the record keeps what it needs
    record = api.load(result.records[0].id)
    assert record.spec.title == "repeat-simplified"
    assert record.model()(record.train.task.sample(0, 0, 2).tokens).logits.shape == (2, 32, 26)
    assert api.recheck(record)["ok"]


def test_only_code_that_makes_numbers_changes_the_identity(mine: Path) -> None:
    ids = []
    text = mine.read_text()
    for change in ("", "\n# a comment\n", "\ndef figure(records):\n    return None\n", "\nSPEED = 3\n"):
        mine.write_text(text + change)
        ids.append(run_id(find("./mine.py").specs("smoke", [0])[0]))
    assert ids[0] == ids[1] == ids[2] != ids[3]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def specs(:", "cannot be loaded: SyntaxError"),
        ("x = 1", "needs a function specs"),
        ("raise SystemExit(3)", "cannot be loaded: SystemExit"),
        ("def specs(scale, seeds):\n    return None", "must return a list of Specs"),
        (MINE.read_text().replace("lr=0.2", "lr=-1"), "lr"),
        (
            MINE.read_text().replace("    L: int = 8\n", "    L: int = 8\n    widths: list[int] = [1]\n"),
            "cannot be stored",
        ),
        ("import nothing_like_this", "cannot be loaded: ModuleNotFoundError"),
        (MINE.read_text().replace('"first": ~again', '"fist": ~again'), "first"),
        (MINE.read_text().replace("t % L, axis=1)", "t % L, axis=1) + 20"), "must lie in 0"),
        (
            MINE.read_text().replace("~again}", "again}").replace("batch=64", 'batch=64, loss="all"'),
            "exactly one group",
        ),
    ],
)
def test_a_broken_file_says_what_is_wrong(mine: Path, text: str, says: str) -> None:
    mine.write_text(text)
    with pytest.raises(EngramError, match=says):
        api.run("./mine.py", scale="smoke")


CRASHES = {
    "specs raises": (
        ("def specs(scale, seeds):\n", "def specs(scale, seeds):\n    1 / 0\n"),
        "in specs: ZeroDivisionError",
    ),
    "sample raises": (("        words =", "        1 / 0\n        words ="), "in sample: ZeroDivisionError"),
    "targets too low": (("z[:, 1:]", "0 * z[:, 1:] - 100"), "targets must lie in 0"),
    "shapes": (("z[:, 1:]", "z[:, 2:]"), "Repeat.sample: targets: expected"),
    "floats": (("Batch(z[:, :-1]", "Batch(1.0 * z[:, :-1]"), "Repeat.sample: tokens: expected"),
    "bad description": (("Simplified(d=64)", "Simplified(D=64)"), "Simplified.D: no such field"),
    "no groups": (('    groups: tuple[str, ...] = ("in_context", "first")\n', ""), "lacks groups"),
}


@pytest.mark.parametrize(("change", "says"), CRASHES.values(), ids=CRASHES)
def test_a_crash_in_a_user_file_is_told_with_its_place(mine: Path, change: tuple[str, str], says: str) -> None:
    """In a process of its own, where types are not checked; what the file prints does not reach stdout."""
    mine.write_text(mine.read_text().replace(*change) + "\nprint('hello from the file')\n")
    command = [sys.executable, "-m", "engram", "run", "./mine.py", "--scale", "smoke", "--json"]
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    error = json.loads(failed.stdout)["error"]
    assert (failed.returncode, error["kind"]) == (2, "input")
    assert failed.stderr.splitlines()[-1] == f"engram: {error['message']}"
    assert says in error["message"]
    assert "please report" not in failed.stderr


def test_a_setting_does_not_hide_a_bug_in_ones_own_file(mine: Path, home: Path) -> None:
    """Claims of a shipped experiment may not fit other Specs; those of one's own file are one's own to mend."""
    mine.write_text(mine.read_text() + "\n\ndef claims(records):\n    return [records[7]]\n")
    with pytest.raises(IndexError):
        api.run("./mine.py", scale="smoke", settings={"plan.steps": 3})


def test_integers_of_any_width_will_do(mine: Path, home: Path) -> None:
    wide = api.run("./mine.py", scale="smoke").records[0].column("loss")
    mine.write_text(mine.read_text().replace("t % L, axis=1)", "t % L, axis=1).astype(np.int32)"))
    assert np.array_equal(api.run("./mine.py", scale="smoke").records[0].column("loss"), wide)


@pytest.mark.parametrize("name", names())
def test_every_experiment_runs_at_smoke_scale_with_well_formed_claims(name: str, home: Path) -> None:
    """In this process, so that every annotation on the way is checked; with two seeds, and with one."""
    experiment = find(name)
    index = {run_id(spec): execute(spec, home) for spec in experiment.specs("smoke", [0, 1])}
    one, both = (Runs.of(experiment.labelled("smoke", seeds), index, "smoke") for seeds in ([0], [0, 1]))
    for runs in (one, both):
        entries = entries_of(experiment, runs)
        assert [entry.id for entry in entries] == list(experiment.statements)
        assert json.dumps([entry.to_json() for entry in entries], allow_nan=False)
        for measure in (m for entry in entries if entry.claim for m in entry.claim.measures):
            assert measure.low < measure.high
            assert (measure.low, measure.high) != (-inf, inf)
    figure = experiment.figure(both)
    whole_figure_is_in_its_data(figure)
    assert faults(figure) == []
    assert experiment.about.endswith((".", '".'))
    assert experiment.times != "not stated"


def whole_figure_is_in_its_data(figure: Figure) -> None:
    """The JSON beside a figure has every panel, and every line, image, box and shape in it, with its numbers."""
    drawn = json.loads(json.dumps(drawn_data(figure), allow_nan=False))["panels"]
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    assert len(panels) == len(drawn) > 0
    for ax, data in zip(panels, drawn, strict=True):
        counts = [len(artists) for artists in (ax.lines, ax.images, ax.patches, ax.collections)]
        assert counts == [len(data[kind]) for kind in ("lines", "images", "boxes", "shapes")]
        assert all(len(line["x"]) == len(line["y"]) for line in data["lines"])


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("scale", SCALES)
def test_specs_of_every_scale_are_different(name: str, scale: Scale) -> None:
    """Under a label no Spec comes twice; two labels may share one."""
    for specs in find(name).labelled(scale, [0, 1]).values():
        assert len({run_id(spec) for spec in specs}) == len(specs)


def test_numbers_change_only_with_a_revision(home: Path) -> None:
    """Golden rows of birth.joint at smoke scale. If this fails on purpose, bump `revision` of what changed."""
    golden = [
        json.loads(line) for line in (Path(__file__).parent / "golden_birth_joint.jsonl").read_text().splitlines()
    ]
    (record,) = api.run("birth.joint", scale="smoke").records
    assert len(record.rows) == len(golden)
    for row, expected in zip(record.rows, golden, strict=True):
        assert row == pytest.approx(expected, rel=2e-4, abs=2e-4, nan_ok=True)

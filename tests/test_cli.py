"""The command line is a contract: one object on stdout with --json, exit codes, one-line errors."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engram.cli.main import main
from engram.experiments import find
from engram.learning import SGD, Plan
from engram.models import Layer, Transformer
from engram.records import Record
from engram.records.files import sha256, write_digest
from engram.records.shelf import all_records
from engram.runner.execute import execute
from engram.show.report import report
from engram.specs import Train
from engram.specs.spec import run_id
from engram.tasks import Bigram

SMOKE = ["run", "birth.joint", "--scale", "smoke"]


def engram(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of a command, in this process."""
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code, out, err = engram(capsys, *words, "--json")
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


def test_run_answers_with_claims_records_and_figures(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, *SMOKE, "--seeds", "2")
    assert set(found) == {"experiment", "scale", "seconds", "claims", "records", "figures"}
    assert [claim["id"] for claim in found["claims"]] == list(find("birth.joint").statements)
    assert [Record(Path(folder)).finished for folder in found["records"]] == [True, True]
    assert {Path(path).suffix for path in found["figures"]} == {".png", ".svg", ".pdf", ".csv", ".json"}
    assert all(Path(path).stat().st_size > 1000 for path in found["figures"])
    drawn = json.loads(Path(next(path for path in found["figures"] if path.endswith(".json"))).read_text())
    assert "W_O2" in [line["label"] for line in drawn["panels"][1]["lines"]]


ONE_BY_ONE = """
import sys, torch
from pathlib import Path
from engram.runner.execute import execute
from engram.experiments import find
torch.set_num_threads(1)
for spec in find("birth.joint").specs("smoke", [int(seed) for seed in sys.argv[2:]]):
    execute(spec, Path(sys.argv[1]))
"""


def test_many_runs_in_processes_equal_one_by_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine may not change a number: two worker processes against one, one thread each."""
    folders = [Path(folder) for folder in answer(capsys, *SMOKE, "--seeds", "3")["records"]]
    rows = {folder.name: (folder / "rows.jsonl").read_bytes() for folder in folders}
    for folder in folders:
        answer(capsys, "runs", "rm", folder.name, "--yes")
    subprocess.run([sys.executable, "-c", ONE_BY_ONE, str(home), "0", "1", "2"], check=True)
    assert {folder.name: (folder / "rows.jsonl").read_bytes() for folder in folders} == rows


def test_a_claim_that_is_newer_than_the_verdicts_is_listed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.claims.verdicts.committed_verdicts", dict)
    (one,) = answer(capsys, "list", "theory.construction")["experiments"]
    assert set(one["verdicts"]) == {"theory.construction"}


def test_list_doctor_ledger_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiments = {e["name"]: e for e in answer(capsys, "list")["experiments"]}
    assert "birth.learns" in experiments["birth.joint"]["claims"]
    assert "quick" in experiments["birth.joint"]["times"]
    assert answer(capsys, "doctor")["doctor"]["torch"].startswith("2.")
    claims = answer(capsys, "ledger", "birth")["claims"]
    wanted = {"id", "statement", "source", "experiment", "predicted", "measured", "interval", "n", "scale", "verdict",
              "stale", "command"}  # fmt: skip
    assert all(wanted <= set(claim) for claim in claims)
    assert answer(capsys, "runs", "ls") == {"runs": []}
    for words in (["list"], ["doctor"], ["ledger", "birth.learns"], ["runs", "ls"]):
        assert engram(capsys, *words)[0] == 0


def test_show_diff_check_report_pack_rm(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, *SMOKE)
    answer(capsys, *SMOKE, "--set", "task.K=2")
    one, two = (record.id for record in all_records(home))
    assert answer(capsys, "runs", "show", one)["spec"]["task"]["K"] == 5
    differences = {row["field"] for row in answer(capsys, "runs", "diff", one, two)["differences"]}
    assert "task.K" in differences
    assert not differences & {"task.T", "model.d", "seed", "env.torch"}
    assert answer(capsys, "runs", "check", one)["ok"]
    assert Path(answer(capsys, "report", one, two, "-o", "both.html")["report"]).stat().st_size > 100_000
    packed = answer(capsys, "runs", "pack", one, "--into", "packed", "--weights")["packed"]
    assert answer(capsys, "runs", "check", packed)["ok"]
    assert Record(Path(packed)).rows == Record(home / one).rows
    assert Record(Path(packed)).model().weights["W_O2"].dtype.is_floating_point
    assert answer(capsys, "runs", "rm", two, "--yes") == {"removed": [two]}
    for words in (["runs", "show", one], ["runs", "ls"], ["runs", "check", one, "--steps", "3"]):
        assert engram(capsys, *words)[0] == 0


def test_check_fails_on_tampered_records(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, *SMOKE)
    (record,) = all_records(home)
    rows = record.folder / "rows.jsonl"
    honest = rows.read_bytes()
    lines = honest.split(b"\n")
    lines[3] = lines[3].replace(b'"loss": ', b'"loss": 1')
    rows.write_bytes(b"\n".join(lines))
    code, _, err = engram(capsys, "runs", "check", record.id)
    assert (code, "does not match the digest" in err) == (2, True)
    digest = json.loads((record.folder / "digest.json").read_text())  # a forger would mend the digest as well
    del digest["digest"]
    write_digest(record.folder, digest | {"rows.jsonl": sha256(rows.read_bytes())})
    code, out, _ = engram(capsys, "runs", "check", record.id)
    assert (code, "differs at step 3, loss" in out) == (1, True)
    rows.write_bytes(honest)


def test_birth_at_smoke_size_tells_its_story(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engram.experiments.birth import joint

    monkeypatch.setitem(joint.SIZES, "quick", joint.SIZES["smoke"])
    code, out, err = engram(capsys, "birth")
    assert code == 0, err
    assert "W_O2" in out
    assert "not born by step 12: recall not above 0.5" in out
    assert "in-context accuracy" in out
    for line in out.splitlines():
        if line.startswith(("figure", "report")):
            assert Path(line.split()[1]).exists()
        if line.startswith("figure"):
            assert line.endswith(".png (also .pdf, .svg, .csv)")
            assert all(Path(line.split()[1]).with_suffix(kind).exists() for kind in (".pdf", ".svg", ".csv"))
    assert "device cpu" in err
    stamp = all_records(home)[0].folder.joinpath("rows.jsonl").stat().st_mtime_ns
    assert engram(capsys, "birth")[1] == out  # the stored run, at once
    assert all_records(home)[0].folder.joinpath("rows.jsonl").stat().st_mtime_ns == stamp
    (home / run_id(joint.specs("quick", [1])["joint"][0])).mkdir()  # begun elsewhere and not finished: not a fresh seed
    assert Record(Path(answer(capsys, "birth", "--fresh")["records"][0])).train.seed == 2


BAD = [
    (["run", "birth.jont"], "did you mean birth.joint?"),
    (["run", "./nothing.py"], "cannot read nothing.py"),
    (["run", "birth.joint", "--scale", "huge"], "the allowed scales are smoke, quick, paper"),
    (["run", "birth.joint", "--seeds", "0"], "a number of seeds (8), a range"),
    (["run", "birth.joint", "--seeds", "many"], "a number of seeds (8), a range"),
    (["run", "birth.joint", "--seeds", "2.4"], "a number of seeds (8), a range"),
    (["verify", "--scale", "huge"], "the allowed scales are smoke, quick, paper"),
    (["ledger", "--markdown", "--json"], "choose one"),
    ([*SMOKE, "--set", "task.revision=7"], "not a field of a Spec"),
    ([*SMOKE, "--set", "task.corpus=latin.txt"], "not UTF-8"),
    ([*SMOKE, "--set", 'plan.trained=["W_O2", "W_O2"]'], "named twice"),
    (["report", "nothing", "-o", "."], "no run 'nothing'"),
    (["run", "birth.joint", "--device", "tpu"], "allowed: auto, cuda, mps, cpu"),
    (["run", "birth.joint", "--engine", "moon"], "allowed: local"),
    ([*SMOKE, "--set", "task.K"], "FIELD=VALUE"),
    ([*SMOKE, "--set", "task.kk=3"], "did you mean K?"),
    ([*SMOKE, "--set", "model.d=0"], "model.d"),
    ([*SMOKE, "--set", "plan.optimiser.lr=1e38", "plan.steps=60"], "not finite at step"),
    ([*SMOKE, "--set", "task.corpus=empty.txt"], "empty.txt is empty"),
    ([*SMOKE, "--set", "task.corpus=one.txt"], "one letter"),
    ([*SMOKE, "--set", "task.corpus=none.txt"], "cannot read"),
    (["ledger", "nonsense"], "nothing begins with nonsense"),
    (["runs", "show", "nothing"], "no run 'nothing'"),
    (["runs", "resume", "nothing"], "engram runs ls"),
    (["report"], "name at least one run"),
    (["runs", "ls", "--jsn"], "did you mean --json?"),
    (["brith"], "no command 'brith'; did you mean birth? `engram --help` lists them"),
    (["runs", "lst"], "no command 'lst'; did you mean ls? `engram runs --help` lists them"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_line_and_exit_code_2(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    Path("empty.txt").write_text("")
    Path("one.txt").write_text("aaaa")
    Path("latin.txt").write_bytes("für".encode("latin-1"))
    code, out, err = engram(capsys, *words)
    assert (code, "error" in out if "--json" in words else out == "") == (2, True)
    last = err.strip().splitlines()[-1]
    assert last.startswith("engram: ")
    assert says in last
    assert "Traceback" not in err


def test_an_unreadable_home_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, home: Path) -> None:
    from engram.errors import explain_crash

    told = explain_crash(PermissionError(13, "Permission denied", "runs"))
    assert told == "cannot use runs (Permission denied); check it, or set ENGRAM_HOME to another folder"
    assert "lower plan.batch" in explain_crash(MemoryError())


def test_a_field_that_no_claim_of_the_experiment_fits(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another loss has other columns: no claims, plain curves, and the run is kept."""
    found = answer(capsys, *SMOKE, "--set", "plan.loss=global")
    assert found["claims"] == []
    assert len(found["figures"]) == 5


def test_fields_set_otherwise_end_well(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Schedules that are all the same, under the labels of five: one run, one figure, no claims, and why."""
    code, out, err = engram(capsys, "run", "birth.fig3", "--scale", "smoke", "--set", "plan.frozen_until={}")
    assert (code, "do not enter the ledger" in out) == (0, True)
    assert not any(word in out + err for word in ("Traceback", "please report"))
    assert out.count("record  ") == out.count("figure  ") == 1
    assert not any(id in out for id in find("birth.fig3").statements)
    assert "plan.frozen_until tells the runs of this experiment apart" in out


def test_transformers_and_tests_are_shown_compared_and_reported(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Layers and tests have dotted names of their own in every answer."""
    plan = Plan(optimiser=SGD(lr=0.1), steps=2, batch=2, trained=("U",))
    for heads in (2, 1):
        model = Transformer(d=8, layers=(Layer(heads=heads), Layer()))
        execute(Train(task=Bigram(K=2, T=12), model=model, plan=plan, tests={"other": Bigram(K=1, T=9)}), home)
    one, two = (record.id for record in all_records(home))
    facts = answer(capsys, "runs", "show", one)["facts"]
    assert (facts["model.layers.0"], facts["tests.other.K"]) == ("Layer", 1)
    found = {row["field"]: {row["a"], row["b"]} for row in answer(capsys, "runs", "diff", one, two)["differences"]}
    assert found["model.layers.0.heads"] == {1, 2}
    assert not any(name.startswith(("model.layers.1", "tests")) for name in found)
    assert "model.layers.0.heads" in report("Two", [(record, []) for record in all_records(home)], [])
    assert engram(capsys, "runs", "show", one)[0] == engram(capsys, "runs", "diff", one, two)[0] == 0


def test_figures_are_the_same_bytes_each_time(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [Path(path) for path in answer(capsys, *SMOKE)["figures"]]
    before = [file.read_bytes() for file in files]
    answer(capsys, *SMOKE)
    assert [file.read_bytes() for file in files] == before


def test_unwritable_home(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "file" / "runs"))
    code, _, err = engram(capsys, *SMOKE)
    assert (code, "set ENGRAM_HOME to another folder" in err) == (2, True)

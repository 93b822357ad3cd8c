"""`engram birth --text`: what copying pays comes first, then two births; prose is warned about."""

import json
from pathlib import Path

import numpy as np
import pytest

from engram.cli.envelopes import ANSWERS
from engram.cli.main import main
from engram.experiments.real import birth


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A text in which what comes next is drawn letter by letter: copying pays nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "runs"))
    for table in ("SIZES", "STEPS", "EVERY"):
        monkeypatch.setitem(getattr(birth, table), "quick", getattr(birth, table)["smoke"])
    place = tmp_path / "mine"
    place.mkdir()
    (place / "a.txt").write_text("".join(np.random.default_rng(0).choice(list("abcdefgh \n"), 150_000)))
    return place


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["birth", *words])
    assert end.value.code == 0


def test_a_folder_gives_birth_or_not_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--text", str(folder))
    out, err = capsys.readouterr()
    assert "pays 0.0" in err
    assert "an induction head may not be born" in err
    assert out.count("not born") == 2
    assert "in-context score" in out
    assert len(list((folder.parent / "runs" / "figures").glob("*-birth.png"))) == 1
    run("--text", str(folder), "--json")
    found = json.loads(capsys.readouterr().out)
    ANSWERS["birth"].model_validate(found)
    assert found["births"] == {"previous-token head": {"0.5": None}, "induction head": {"0.25": None}}
    assert found["claims"] == []
    assert found["payoff"] < 0.2


def test_what_is_no_text_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["birth", "--text", str(tmp_path / "nowhere")])
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("engram: task.corpus: cannot read")

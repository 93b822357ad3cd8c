"""--json is a contract: every answer has its schema, and so has every error; help says what every parameter is."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from cyclopts import App

from engram.claims.registration import Status
from engram.cli import envelopes
from engram.cli.completion import SHELLS, experiments_to_complete
from engram.cli.envelopes import ANSWERS, Error, schema
from engram.cli.main import app
from engram.experiments import names
from engram.registered import STATUSES

ROOT = Path(__file__).parent.parent
Said = Callable[..., tuple[int, str, str]]


def test_the_schema_is_published() -> None:
    """To write it anew: json.dumps(engram.cli.envelopes.schema(), indent=1, ensure_ascii=False)."""
    assert json.loads((ROOT / "docs/answers.schema.json").read_text()) == schema()
    described = (ROOT / "docs/json.md").read_text()
    assert [command for command in ANSWERS if f"`engram {command}`" not in described] == []


def test_a_status_is_no_verdict() -> None:
    """How a claim was decided must not read as how it ended: a claim on fresh seeds may disagree."""
    assert list(STATUSES) == [*get_args(Status)] == [*get_args(envelopes.Status)]
    assert "confirmed" not in "".join((ROOT / name).read_text() for name in ("LEDGER.md", "docs/findings.md"))


ASKED = {
    "list": ["list", "birth.joint"],
    "fields": ["fields", "memory.margin"],
    "run": ["run", "memory.margin", "--scale", "smoke"],
    "show": ["show", "memory.margin", "--scale", "smoke"],
    "ledger": ["ledger", "memory.margin"],
    "cite": ["cite", "memory.margin"],
    "doctor": ["doctor"],
    "predict": ["predict", "pairs", "1000"],
    "runs ls": ["runs", "ls"],
}


OF_A_RUN = {
    "sweep": ["sweep", "birth.joint", "--scale", "smoke", "--set", "task.K=1,3"],
    "runs show": ["runs", "show", "last"],
    "runs tag": ["runs", "tag", "last", "good"],
    "runs note": ["runs", "note", "last", "seen"],
    "runs check": ["runs", "check", "last"],
    "runs resume": ["runs", "resume", "last"],
    "truncate": ["truncate", "last", "--sequences", "8"],
    "report": ["report", "last", "--output", "one.html"],
    "runs export": ["runs", "export", "last", "--into", "elsewhere"],
    "runs import": ["runs", "import", "elsewhere"],
}
OF_FACTS = {
    "fact learn": ["fact", "learn", str(ROOT / "examples" / "countries.csv"), "--steps", "300"],
    "fact see": ["fact", "see", "last", "France", "capital"],
    "fact edit": ["fact", "edit", "last", "France", "capital", "Rome", "--keep"],
    "runs rm": ["runs", "rm", "last", "--yes"],
}


@pytest.mark.parametrize("asked", [ASKED, OF_A_RUN, OF_FACTS], ids=["lists", "of a run", "of facts"])
def test_answers_have_their_schemas(
    asked: dict[str, list[str]], home: Path, said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command, words in asked.items():
        code, out, err = said(*words, "--json")
        assert (code, out.count("\n")) == (0, 1), err
        ANSWERS[command].model_validate_json(out)


def test_a_sweep_that_is_only_planned_has_the_same_schema(home: Path, said: Said) -> None:
    _, out, _ = said(*OF_A_RUN["sweep"], "--dry-run", "--json")
    assert ANSWERS["sweep"].model_validate_json(out).model_dump()["left"] == 2


def test_every_command_that_answers_has_a_schema() -> None:
    """The kinds of `predict` answer alike; the script of `completion` is no answer."""
    known = {"predict pairs", "predict facts", "predict zipf", "completion"}
    assert {command for command, _ in commands(app)} - known <= set(ANSWERS)


BAD = {
    "usage": [["brith"], ["runs", "ls", "--jsn"], ["run"]],
    "input": [["run", "birth.jont"], ["run", "theory"], ["fields", "birth.joint", "--scale", "huge"]],
}


@pytest.mark.parametrize(("kind", "words"), [(kind, words) for kind, some in BAD.items() for words in some], ids=str)
def test_an_error_is_an_object_too(home: Path, said: Said, kind: str, words: list[str]) -> None:
    """The same words are on stderr, as without --json."""
    code, out, err = said(*words, "--json")
    assert (code, out.count("\n")) == (2, 1)
    error = Error.model_validate_json(out).error
    assert (error.kind, error.exit_code) == (kind, 2)
    assert err.splitlines()[-1] == f"engram: {error.message}"
    assert json.loads(out) == {"error": {"kind": kind, "message": error.message, "exit_code": 2}}


def test_a_mistake_of_engram_is_an_object(home: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("engram.cli.experiments._verdicts", broken)
    code, out, _ = said("list", "birth.joint", "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (2, "unexpected")


def commands(of: App, way: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    for name in of:
        if not name.startswith("-"):
            inner = of[name]
            here = (*way, name)
            yield from commands(inner, here) if inner.default_command is None else [(" ".join(here), inner)]


@pytest.mark.parametrize(
    ("command", "inner"), list(commands(app)), ids=lambda value: value if isinstance(value, str) else ""
)
def test_help_says_what_every_parameter_is(command: str, inner: App) -> None:
    found = inner.assemble_argument_collection(parse_docstring=True)
    options = [argument for argument in found if argument.name != "*"]  # a group of them is none itself
    assert [argument.name for argument in options if not (argument.parameter.help or "").strip()] == []
    assert inner.help.strip()


def test_help_tells_of_json_and_debug(said: Said) -> None:
    for words in ([], ["run"], ["runs", "ls"]):
        code, out, _ = said(*words, "--help")
        assert code == 0
        assert "--json" in out
        assert "--debug: show the traceback" in " ".join(out.split())


def test_the_shell_completes_experiments(said: Said, tmp_path: Path) -> None:
    assert experiments_to_complete(None) == names()
    for shell in SHELLS:
        assert "engram" in said("completion", shell)[1]
    script = tmp_path / "engram.bash"
    script.write_text(said("completion", "bash")[1])
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert "unknown shell" in said("completion", "csh")[2]

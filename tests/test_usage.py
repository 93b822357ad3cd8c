"""A word that is missing is called by its place and not as an option, with an example that works."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cyclopts import App, CycloptsError

from engram.claims.seeds import read_seeds, seeds_in_words
from engram.cli.main import app
from engram.cli.usage import EXAMPLES, commands_of, in_words
from engram.errors import EngramError
from engram.experiments import find
from engram.specs import Train
from engram.specs.settings import full_name

Said = Callable[..., tuple[int, str, str]]
MISSING = {
    "show": "engram show needs NAME: an experiment, one of its claims, or your own file (./file.py) after it was run; "
    "for example: engram show birth.joint (did you mean engram runs show?)",
    "run": "engram run needs NAME: as `engram list` shows it",
    "runs show": "engram runs show needs RUN: a run: its name",
    "runs diff": "engram runs diff needs A B: a run",
    "runs diff last": "engram runs diff needs B: a run",
    "fact see last": "engram fact see needs SUBJECT RELATION: the subject of the fact",
    "predict zipf": "engram predict zipf needs ALPHA: the exponent, above 0",
    "probe": "engram probe needs MODEL: a Hugging Face folder",
    "truncate": "engram truncate needs RUN: a run",
}


@pytest.mark.parametrize(("words", "says"), MISSING.items(), ids=MISSING)
def test_what_is_missing_is_named(words: str, says: str, home: Path, said: Said) -> None:
    code, _, err = said(*words.split())
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"engram: {says}")
    assert "; for example: engram " in err
    assert "--name" not in err


IDLE = {"birth", "bench", "lab", "verify", "queue run", "queue pack", "register", "runs manifest"}  # they do much


@pytest.mark.parametrize("command", sorted(set(commands_of(app)) - IDLE))
def test_a_command_alone_answers_or_says_in_one_line_why_not(command: str, home: Path, said: Said) -> None:
    code, out, err = said(*command.split())
    assert "Traceback" not in out + err
    assert "unexpected" not in err
    assert code == 0 or (code in (1, 2) and err.startswith("engram: ") and err.count("\n") == 1)
    code, out, err = said(*command.split(), "--json")
    assert "Traceback" not in out + err
    assert code == 0 or (json.loads(out)["error"]["message"] in err and err.count("\n") == 1)


def test_an_option_that_must_be_given_is_named_as_one() -> None:
    def wants(*, alpha: float) -> None:
        """It needs an option.

        Parameters
        ----------
        alpha
            The exponent.
        """

    own = App(exit_on_error=False, print_error=False)
    own.command(wants)
    with pytest.raises(CycloptsError) as found:
        own(["wants"])
    assert in_words(found.value, own).startswith("engram wants needs --alpha: the exponent; for example: ")


def test_what_is_left_over_is_named(home: Path, said: Said) -> None:
    assert said("show", "birth.joint", "extra")[2] == "engram: engram show takes only NAME; left over: 'extra'\n"
    assert said("doctor", "now")[2] == "engram: engram doctor takes only options; left over: 'now'\n"


@pytest.mark.parametrize("command", EXAMPLES)
def test_examples_are_commands(command: str) -> None:
    """Their words are parsed; what they name need not be there."""
    app.parse_args([*command.split(), *EXAMPLES[command].split()], exit_on_error=False, print_error=False)


def test_a_number_that_looks_like_a_seed_is_no_number_of_seeds(home: Path, said: Said) -> None:
    code, _, err = said("run", "memory.margin", "--scale", "smoke", "--seeds", "10000")
    assert code == 2
    assert "did you mean --seeds 10000-10000, a single seed? 10,000 seeds are --seeds 0-9999" in err
    assert len(read_seeds("999")) == 999
    assert seeds_in_words(range(10_000)) == "0-9999"
    with pytest.raises(EngramError, match="0-1999"):
        read_seeds("2000")


TYPOS = {
    "run birth.joint --seed 7": "engram run has no option --seed; a single seed is --seeds 7-7, "
    "the first eight are --seeds 8",
    "birth --seed=7": "engram birth has no option --seed; `engram birth --help` lists what there is",
    "run birth.joint --scal quick": "engram run has no option --scal; did you mean --scale?",
    "runs ls --where": "--where needs a value; `engram runs ls --help` says which",
    "run birth.joint --set": "--set needs a value; `engram run --help` says which",
    "report last -o": "-o needs a value; `engram report --help` says which",
    "predict pairs many": "NUMBER: must be a number; got 'many'",
    "fact learn facts.csv --steps 1.5": "--steps: must be a whole number; got '1.5'",
    "lab --port abc": "--port: must be a whole number; got 'abc'",
}


@pytest.mark.parametrize(("words", "says"), TYPOS.items(), ids=TYPOS)
def test_a_mistake_is_told_in_plain_words(words: str, says: str, home: Path, said: Said) -> None:
    assert said(*words.split()) == (2, "", f"engram: {says}\n")


def test_a_model_that_is_misspelt(home: Path, said: Said) -> None:
    assert said("probe", "smolm2")[2].endswith("; did you mean smollm2?\n")
    assert said("probe", "zzzqqq")[2].endswith("lists them)\n")


def test_names_that_may_be_meant_are_few(home: Path, said: Said) -> None:
    """A run of a transformer has some seventy names: a line that no terminal shows in one piece helps nobody."""
    said("run", "birth.joint", "--scale", "smoke")
    _, _, err = said("runs", "ls", "--sort", "recal.W_O2")
    assert "did you mean recall.W_O2? allowed: " in err
    assert err.endswith("… (`engram runs show RUN` has all)\n")
    assert len(err) < 500


def test_a_memory_that_is_not_born_is_told(home: Path, said: Said) -> None:
    """Births are told as they come; what has not come by the end of a single training is told then."""
    code, out, _ = said("run", "birth.joint", "--scale", "smoke")
    assert code == 0
    assert "  ○ W_K1 is not born by step 12 (recall 0." in out
    assert "is not born" not in said("run", "birth.joint", "--scale", "smoke", "--seeds", "2")[1]


def test_the_last_part_of_a_field_is_enough_where_it_is_unique(home: Path, said: Said) -> None:
    code, _, err = said("run", "birth.joint", "--scale", "smoke", "--set", "K=3")
    assert code == 0
    assert "--set K sets task.K\n" in err
    assert "K=3" in said("runs", "ls")[1]
    again = said("run", "birth.joint", "--scale", "smoke", "--set", "task.K=3")[2]
    assert "nothing" in again or "finished" in again, "the same run"
    assert "--set K sets task.K" in said("sweep", "birth.joint", "--scale", "smoke", "--set", "K=1,3", "--dry-run")[2]
    assert said("run", "birth.joint", "--set", "K=3", "task.K=4")[2].endswith("set twice: K, task.K\n")


def test_an_ambiguous_last_part_is_refused_with_the_candidates() -> None:
    (spec,) = find("birth.joint").specs("smoke", [0])
    assert isinstance(spec, Train)
    tests = spec.model_copy(update={"tests": {"other": spec.task}})
    with pytest.raises(EngramError, match=r"--set K: could be task\.K, tests\.other\.K; write one of them"):
        full_name("K", [tests])


def test_a_short_text_is_told(home: Path, said: Said) -> None:
    Path("short.txt").write_text("hello world")
    Path("long.txt").write_text("hello world " * 500)
    words = ("run", "birth.joint", "--scale", "smoke", "--set", "plan.steps=2")
    assert "short.txt has only 11 bytes" in said(*words, "task.corpus=short.txt", "task.K=1")[2]
    assert "has only" not in said(*words, "task.corpus=long.txt", "task.K=1")[2]

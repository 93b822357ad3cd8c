"""How the command line speaks: answers on stdout, everything else on stderr."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from cyclopts import Parameter

from engram.errors import EngramError, did_you_mean
from engram.text import printable, printable_json

if TYPE_CHECKING:
    from engram.engines.choosing import Where

JSON = "Print one JSON object on stdout, also where it fails (docs/json.md)."
BESIDE = (".pdf", ".svg", ".csv")  # a figure in other formats, in the order in which they are told
answers_to: list[Any] = []
answered: list[bool] = []  # whether a command has printed its object


def say(*lines: str) -> None:
    """For a person, beside the answer: stderr. Each is one line, whatever names and values it quotes."""
    for line in lines:
        print(printable(line), file=sys.stderr)


def tell(*lines: str) -> None:
    """The answer for a person: stdout. Each is one line, whatever names and values it quotes."""
    for line in lines:
        print(printable(line), flush=True)


def answer(data: dict[str, Any]) -> None:
    """One object on stdout. With --json nothing else is printed there."""
    answered.append(True)
    print(printable_json(json.dumps(data, ensure_ascii=False, allow_nan=False)), file=answers_to[-1])


def near(path: Path) -> Path:
    """A path as a person would write it: from here if it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def in_a_folder(output: Path) -> Path:
    """Where a file of one's own is written. Its folder must be there: a slip of the hand makes none."""
    path = output.resolve()
    missing = [folder for folder in (path.parent, *path.parents) if not folder.exists()]
    if missing:
        first = missing[-1]
        hint = did_you_mean(first.name, [one.name for one in first.parent.iterdir() if one.is_dir()])
        raise EngramError(f"-o {output}: {near(path.parent)} does not exist; {hint}make it first, or name another")
    return path


def whole_page(tell: Callable[[str], None] = say) -> Any:
    """How a report is made that is the page of the lab; what was left out of it is said on stderr, or as one wishes."""
    from functools import partial

    from engram.lab.whole import whole_report

    return partial(whole_report, tell=tell)


def tell_figures(paths: Iterable[Path]) -> None:
    """A line for each figure: its PNG, and the formats beside it; --json lists every file."""
    by_stem: dict[Path, list[str]] = {}
    for path in paths:
        by_stem.setdefault(path.with_suffix(""), []).append(path.suffix)
    for stem, (first, *others) in by_stem.items():
        beside = [kind for kind in BESIDE if kind in others]
        tell(f"figure  {near(stem)}{first}" + (f" (also {', '.join(beside)})" if beside else ""))


def console() -> Any:
    from rich.console import Console

    return Console(highlight=False)


def _whole(type_: type, tokens: Any) -> int:
    """Digits, as in 10000, 10,000, 10_000 and 1e4: 2.4 seeds are a mistake, not 2."""
    if not WHOLE.fullmatch(tokens[0].value):
        raise ValueError(f"must be a whole number; got {tokens[0].value!r}")
    digits = _digits(tokens[0].value)
    return int(digits) if digits.isdecimal() else int(float(digits))


def _any(type_: type, tokens: Any) -> float:
    try:
        return float(_digits(tokens[0].value))
    except ValueError:
        raise ValueError(f"must be a number; got {tokens[0].value!r}") from None


def _digits(text: str) -> str:
    """Without the signs that only part thousands."""
    return re.sub("[,_]", "", text) if GROUPED.fullmatch(text) else text


GROUPED = re.compile(r"\d{1,3}([,_]\d{3})+")
WHOLE = re.compile(rf"\d+|\d+e\+?\d{{1,2}}|{GROUPED.pattern}", re.IGNORECASE)
Number = Annotated[float, Parameter(converter=_any)]
WholeNumber = Annotated[int, Parameter(converter=_whole)]


def watched(what: str, where: "Where") -> Any:
    """The terminal view, headed by what runs where."""
    return _view(lambda specs: f"{what}, {len(specs)} run{'s' * (len(specs) > 1)}", where)


def watched_as(heading: str, where: "Where") -> Any:
    """The same under a heading that says how many runs there are."""
    return _view(lambda specs: heading, where)


def _view(heading: Callable[[Any], str], where: "Where") -> Any:
    from engram.engines.purposes import NO_PURPOSES
    from engram.show.terminal import View

    def watch(specs: Any, purposes: Any = NO_PURPOSES) -> Any:
        say(f"{heading(specs)} · {where.words}")
        return View(specs, names={id: purpose.words for id, purpose in purposes.items()})

    return watch


def confirmed(question: str, command: str) -> bool:
    """Whether a person at the terminal says yes; where this is not interactive, --yes must be given."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise EngramError(f"{command}: {question} Not interactive: add --yes")
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_table(name: str, rows: list[dict[str, Any]], json: bool) -> None:
    from engram.show.tables import print_rows

    answer({name: rows}) if json else print_rows(console(), rows)


def fail(kind: str, message: str, code: int, words: list[str]) -> NoReturn:
    """One line on stderr and an exit code; with --json also an object in the place of the answer that does not come."""
    say(f"engram: {message}")
    if "--json" in words and not answered:
        answer_error(kind, message, code)
    sys.exit(code)


def answer_error(kind: str, message: str, code: int) -> None:
    """The object that stands where an answer does not come (engram.cli.envelopes.Error)."""
    error = {"kind": kind, "message": message, "exit_code": code}
    with suppress(OSError):  # nobody may be reading any more
        print(printable_json(json.dumps({"error": error}, ensure_ascii=False)), flush=True)


@contextmanager
def only_the_answer_on_stdout(words: list[str]) -> Iterator[None]:
    """With --json whatever else is printed, also by a user's file, goes to stderr; `answer` knows the way out."""
    answered.clear()
    answers_to.append(sys.stdout)
    try:
        with redirect_stdout(sys.stderr) if "--json" in words else nullcontext():
            yield
    finally:
        answers_to.pop()

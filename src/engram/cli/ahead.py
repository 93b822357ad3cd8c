"""What a command says before it begins: what is here, what it will compute, and how long that takes."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from engram.cli.output import confirmed, say
from engram.errors import EngramError

if TYPE_CHECKING:
    from engram.engines.ahead import Ahead
    from engram.engines.choosing import Where

WORTH_A_HINT = 5.0  # seconds of computing
RANGE = re.compile(r"-?[\d.e]+ *(:|\.\.+|…|;|-) *-?[\d.e:]+")  # as other tools write several values
SHORT_TEXT = 5000  # bytes, below which a text of one's own is told to be short


def what_is_ahead(name: str, scale: str, seeds: Sequence[int], settings: dict[str, Any], where: "Where") -> "Ahead":
    """Of an experiment."""
    from engram.claims.experiment import known_scale
    from engram.engines.ahead import ahead
    from engram.experiments import find
    from engram.records.files import home

    return ahead(find(name), known_scale(scale), seeds, settings, home(), where.build())


def spelt_out(name: str, scale: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings by the whole names of their fields: --set K=3 sets task.K where no other field ends so, and says it."""
    from engram.claims.experiment import known_scale
    from engram.experiments import find
    from engram.specs.settings import full_name

    if not settings:
        return settings
    specs = find(name).specs(known_scale(scale), [0])
    full = {path: full_name(path, specs) for path in settings}
    say(*(f"--set {path} sets {field}" for path, field in full.items() if field != path))
    if len(set(full.values())) < len(full):
        raise EngramError(f"--set: a field is set twice: {', '.join(full)}")
    return {full[path]: value for path, value in settings.items()}


@contextmanager
def hint_at_sweeps(name: str, settings: dict[str, Any]) -> Iterator[None]:
    """Several values for a field that takes one are those of a sweep."""
    try:
        yield
    except EngramError as error:
        listed = (f"{path}={value}" for path, value in settings.items() if "," in str(value) and path in str(error))
        if (several := next((word for word in listed if "[" not in word), None)) is None:
            raise
        raise EngramError(f"{error}; for several values: engram sweep {name} --set {quote(several)}") from None


@contextmanager
def hint_at_commas(settings: dict[str, Any]) -> Iterator[None]:
    """8:32 and 8..32 are no values of a sweep."""
    try:
        yield
    except EngramError as error:
        odd = any(isinstance(v, str) and RANGE.fullmatch(v) for values in settings.values() for v in values)
        if not odd:
            raise
        raise EngramError(f"{error}; values are separated by commas, as in --set model.d=8,16,32") from None


def refuse_if_written(run: str | None, other: str) -> None:
    """Two processes cannot write one run: said before anything is announced. `other`: the option for another seed."""
    if run is not None:
        raise EngramError(f"run {run} is being written by another process; wait for it, or use another seed ({other})")


def warn_of_short_texts(settings: dict[str, Any]) -> None:
    """What is counted in a few letters is chance; a file that cannot be read is refused elsewhere."""
    values = [value for one in settings.values() for value in (one if isinstance(one, list) else [one])]
    for path in (Path(value) for value in values if isinstance(value, str) and value != "shakespeare"):
        letters = path.stat().st_size if path.is_file() else SHORT_TEXT
        if letters < SHORT_TEXT:
            say(
                f"{path} has only {letters:,} bytes: the statistics of so short a text are mostly chance; "
                "give it some ten thousand letters or more"
            )


def heading(name: str, scale: str, found: "Ahead", settings: dict[str, Any]) -> str:
    """What is here and what will be computed; and where the committed records tell the same at once."""
    from engram.records.files import COMMITTED

    committed = not settings and scale != "smoke" and any(COMMITTED.glob(f"{name}-*.zip"))
    if committed and (found.seconds or 0.0) > WORTH_A_HINT:
        say(f"`engram show {name}` draws it from the committed records, without training")
    return f"{name}, {scale} scale, {found.sentence}"


def agreed(found: "Ahead", yes: bool) -> bool:
    """Whether to begin: what is long is asked first, and needs --yes where nobody can be asked."""
    return yes or not found.is_long or agreed_to(found.runs, found.seconds, "run")


def agreed_to(runs: int, seconds: float | None, command: str) -> bool:
    """Whether a person wants so many runs that take so long."""
    from engram.engines.ahead import in_words

    if confirmed(f"{runs} run{'s' * (runs != 1)}, {in_words(seconds)}: begin?", command):
        return True
    say("nothing was run")
    return False

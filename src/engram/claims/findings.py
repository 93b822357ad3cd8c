"""What running the papers has shown: findings that quote claims of the ledger, one file each in data/findings.

Files are read in the order of their names. Their prose quotes numbers and verdicts in braces:

    {slope}              a number that its table [numbers] names, with its 95 % interval
    {slope:value}        the same without its interval
    {slope:factor}       e to its power, for the logarithm of a ratio; {slope:percent}: a hundred times it
    {slope:size}         the number that stands for # in the name of the measure
    {theory.samples}     the verdict of a claim, with its status, seeds and scale
    {theory.samples:range}   the sizes within which it was tested

[claims] says under which verdicts of its claims the prose is true, and [expects] the same of single numbers. When
records change one of them, the page says so above the prose, and `engram findings` ends with exit code 1 until a person
has rewritten it.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from engram.claims.claim import Verdict
from engram.claims.experiment import Runs
from engram.claims.registration import NUMBER
from engram.errors import EngramError
from engram.registered import digest_of

FOLDER = Path(__file__).parents[1] / "data" / "findings"
Which = Literal["first", "last"]
NUMBER_FORMS = ("value", "factor", "percent", "size")
CLAIM_FORMS = ("range",)
BRACES = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")
PROSE = ("text", "means", "limits")
FIELDS = ("title", "about", *PROSE, "figures", "log", "claims", "numbers")
OPTIONAL = ("expects",)
Claim = Mapping[str, Any]  # as `Entry.to_json` gives it


@dataclass(frozen=True)
class Quote:
    """A measure of a claim by its name, in which # stands for a number; where several have it, which of them."""

    claim: str
    measure: str
    which: Which | None = None

    def of(self, claims: Mapping[str, Claim]) -> Claim | None:
        """The measure; None while no record decides the claim."""
        parts = claims[self.claim]["measures"]
        found = [part for part in parts if self.match(part["name"])]
        if parts and not found:
            known = ", ".join(repr(part["name"]) for part in parts)
            raise EngramError(f"no measure of {self.claim} is called {self.measure!r}; it has {known}")
        if len(found) > 1 and self.which is None:
            raise EngramError(
                f"{len(found)} measures of {self.claim} are called {self.measure!r}; add which: 'first' or 'last'"
            )
        return found[-1 if self.which == "last" else 0] if found else None

    def match(self, name: str) -> re.Match[str] | None:
        return re.fullmatch(f"({NUMBER})".join(map(re.escape, self.measure.split("#"))), name)

    def is_registered_as(self, name: str) -> bool:
        """Whatever the sizes: those of another scale may be others."""
        return _without_numbers(self.measure) == _without_numbers(name)


def _without_numbers(name: str) -> str:
    return re.sub(NUMBER, "#", name)


@dataclass(frozen=True)
class Finding:
    """A finding as it was declared.

    about       the paper and the place in it
    text        what was found; `means` for a reader of the paper; `limits` of what is known
    claims      claim id → the verdicts under which the prose is true
    numbers     name in the prose → the measure that it quotes
    expects     name in the prose → the verdicts of this measure under which the prose is true
    figures     experiment whose figure is shown → what it shows
    log         entries of docs/log that have more
    """

    name: str
    title: str
    about: str
    text: str
    means: str
    limits: str
    claims: Mapping[str, Sequence[str]]
    figures: Mapping[str, str]
    log: Sequence[str]
    numbers: Mapping[str, Quote]
    expects: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def quoted(self) -> list[tuple[str, str | None]]:
        """What stands in braces, and in which form it is shown."""
        return [(found[1], found[2]) for part in PROSE for found in BRACES.finditer(getattr(self, part))]


@cache
def declared() -> tuple[Finding, ...]:
    """All findings, the most interesting first."""
    return tuple(read_finding(file.stem, _parsed(file)) for file in sorted(FOLDER.glob("*.toml")))


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise EngramError(f"findings: {file.name} cannot be read ({error})") from None


def read_finding(name: str, entry: Mapping[str, Any]) -> Finding:
    """Refuses fields that are misspelt, braces that quote nothing, and numbers that are not quoted."""
    allowed = (*FIELDS, *OPTIONAL)
    unknown, missing = sorted(set(entry) - set(allowed)), [key for key in FIELDS if key not in entry]
    if unknown:
        raise _mistake(name, f"unknown {unknown[0]!r}; allowed: {', '.join(allowed)}")
    if missing:
        raise _mistake(name, f"no {missing[0]!r}")
    prose = {key: entry[key].strip() for key in ("title", "about", *PROSE)}
    numbers = {key: Quote(*quote) for key, quote in entry["numbers"].items()}
    tables = {key: entry.get(key, {}) for key in ("figures", "log", "claims", "expects")}
    finding = Finding(name, **prose, **tables, numbers=numbers)
    for complaint in _complaints(finding):
        raise _mistake(name, complaint)
    return finding


def _mistake(name: str, complaint: str) -> EngramError:
    return EngramError(f"findings: {name}: {complaint}")


def _complaints(finding: Finding) -> list[str]:
    quoted, expected = finding.quoted(), [*finding.claims.values(), *finding.expects.values()]
    forms = dict.fromkeys(finding.claims, CLAIM_FORMS) | dict.fromkeys(finding.numbers, NUMBER_FORMS)
    verdicts = [word for words in expected for word in words if word not in get_args(Verdict)]
    strange = [(key, q.claim) for key, q in finding.numbers.items() if q.claim not in finding.claims]
    unquoted = sorted(set(finding.numbers) - {key for key, _ in quoted})
    return [
        *(f"{word!r} is no verdict; allowed: {', '.join(get_args(Verdict))}" for word in verdicts),
        *(f"the number {key!r} is of {id}, which is not among its claims" for key, id in strange),
        *(f"{key!r} is neither a number nor a claim of it" for key, _ in quoted if key not in forms),
        *(
            f"'{key}:{form}': a {'number' if key in finding.numbers else 'claim'} is shown as {', '.join(forms[key])}"
            for key, form in quoted
            if form is not None and form not in forms.get(key, ())
        ),
        *(f"the number {key!r} is not quoted" for key in unquoted),
        *(f"expects {key!r}, which is not one of its numbers" for key in finding.expects if key not in finding.numbers),
    ]


def stamp(runs: Runs) -> str:
    """Of the records that a figure shows: it changes when others decide."""
    return f"records {digest_of(' '.join(sorted(record.id for record in runs.records)).encode())}"

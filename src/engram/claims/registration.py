"""What was registered of each claim before its records were made, and what that makes of its verdict.

The file (data/registration.toml) is written by hand: for each experiment the number of seeds, the first of them and
its claims, for each claim its kind, sentence, place, measures and bands. A measure is matched by its name, in which #
stands for a number. The *form* of a claim at a scale is the digest of all that can change its verdict: its sentence,
measures, bands and seeds, and the Specs that are run. `engram register` writes it down with the date.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf, isclose
from typing import Any, Literal, get_args

from engram import registered
from engram.claims.claim import Claim, Measure
from engram.errors import EngramError
from engram.records import Record
from engram.registered import KINDS

Kind = Literal["sentence", "number", "own", "identity"]
Status = Literal["registered", "fresh seeds", "exploratory", "exact"]
FRESH = 10_000  # seeds from here on are used once, under a registration
NUMBER = r"[-−+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
SIZE = rf"(?<![\w.]){NUMBER}"  # not the 2 of W_O2


@dataclass(frozen=True)
class Band:
    """A measure by its name, in which # stands for a number, and the open interval that it must lie in."""

    name: str
    low: float
    high: float

    @classmethod
    def read(cls, name: str, words: str) -> "Band":
        """
        >>> Band.read("slope", "0.8 … 1.2"), Band.read("gap", "> 0")
        (Band(name='slope', low=0.8, high=1.2), Band(name='gap', low=0.0, high=inf))
        """
        one_sided = re.fullmatch(rf"([<>]) ({NUMBER})", words)
        both = re.fullmatch(rf"({NUMBER}) … ({NUMBER})", words)
        if one_sided:
            edge = float(one_sided[2])
            return cls(name, edge, inf) if one_sided[1] == ">" else cls(name, -inf, edge)
        if both:
            return cls(name, float(both[1]), float(both[2]))
        raise EngramError(
            f"registration: the band of {name!r} must read like '> 0', '< 0.5' or '0.8 … 1.2'; got {words!r}"
        )

    def of_any_size(self) -> "Band":
        """The same at another scale, where measures are named after other sizes."""
        return Band(re.sub(SIZE, "#", self.name), self.low, self.high)

    def names(self, measure: Measure) -> bool:
        return re.fullmatch(NUMBER.join(map(re.escape, self.name.split("#"))), measure.name) is not None

    def is_that_of(self, measure: Measure) -> bool:
        return all(isclose(a, b, rel_tol=1e-5) for a, b in ((self.low, measure.low), (self.high, measure.high)))


@dataclass(frozen=True)
class Sentence:
    """A claim as it was registered.

    looked    what was decided after numbers had been seen
    gap       what the source says that is not measured, or what is measured that it does not say
    paper     bands at paper scale, where they are others than at quick
    """

    kind: Kind
    sentence: str
    place: str
    bands: tuple[Band, ...]
    quote: str | None = None
    looked: str | None = None
    gap: str | None = None
    paper: tuple[Band, ...] = ()

    def bands_at(self, scale: str) -> tuple[Band, ...]:
        if scale != "paper":
            return self.bands
        return self.paper or tuple(band.of_any_size() for band in self.bands)

    def difference(self, claim: Claim, scale: str = "quick") -> str | None:
        """How what is computed differs from what was registered; None if it does not."""
        if claim.statement != self.sentence:
            return "its sentence is not the registered one"
        used, bands = set[Band](), self.bands_at(scale)
        for measure in claim.measures:
            named = [band for band in bands if band.names(measure)]
            if not any(band.is_that_of(measure) for band in named):
                return f"{'the band of' if named else 'the measure'} “{measure.name}” is not registered"
            used.update(named)
        left = [band.name for band in bands if band not in used]
        return f"the registered measure “{left[0]}” is not computed" if left else None


@dataclass(frozen=True)
class Registered:
    """An experiment as it was registered. `earlier`: records of other seeds had been looked at before."""

    n: Mapping[str, int]
    claims: Mapping[str, Sentence]
    first_seed: int = FRESH
    earlier: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def seeds(self, scale: str) -> range | None:
        """The seeds that decide at a scale: so many, no more; None if the scale is not registered."""
        return range(self.first_seed, self.first_seed + self.n[scale]) if scale in self.n else None

    def forms(self, scale: str, runs: Iterable[str]) -> dict[str, str]:
        """For each claim the digest of all that can change its verdict."""
        seeds = self.seeds(scale) or range(0)
        common = {"seeds": [seeds.start, len(seeds)], "runs": sorted(runs)}
        asked = {id: {"measures": c.get(scale, c["measures"])} for id, c in self.raw["claims"].items()}
        whole = {id: common | asked[id] | {"sentence": c["sentence"]} for id, c in self.raw["claims"].items()}
        return {id: registered.digest_of(json.dumps(one, sort_keys=True).encode()) for id, one in whole.items()}


@cache
def registration() -> dict[str, Registered]:
    """What is registered, by experiment."""
    try:
        entries = tomllib.loads(registered.FILE.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise EngramError(f"registration: {registered.FILE.name} cannot be read ({error})") from None
    return {name: _read(name, entry) for name, entry in entries.items()}


def _read(name: str, entry: dict[str, Any]) -> Registered:
    _refuse_other_fields(name, entry, {"n", "claims"}, {"first_seed", "earlier"})
    claims = {id: _read_claim(id, claim) for id, claim in entry["claims"].items()}
    rest = {key: value for key, value in entry.items() if key in ("first_seed", "earlier")}
    return Registered(entry["n"], claims, raw=entry, **rest)


def _refuse_other_fields(name: str, entry: dict[str, Any], needed: set[str], allowed: set[str]) -> None:
    """A field that is misspelt would be one that is not there, and change seeds or status without a word."""
    missing, unknown = sorted(needed - set(entry)), sorted(set(entry) - needed - allowed)
    if missing:
        raise EngramError(f"registration: {name} has no {missing[0]!r}")
    if unknown:
        known = ", ".join(sorted(needed | allowed))
        raise EngramError(f"registration: {name} has an unknown {unknown[0]!r}; allowed: {known}")


def _read_claim(id: str, claim: dict[str, Any]) -> Sentence:
    _refuse_other_fields(id, claim, {"kind", "sentence", "place", "measures"}, {"quote", "looked", "gap", "paper"})
    if claim["kind"] not in get_args(Kind):
        raise EngramError(f"registration: the kind of {id} must be one of {', '.join(KINDS)}; got {claim['kind']!r}")
    bands, paper = (tuple(Band.read(*one) for one in claim.get(key, ())) for key in ("measures", "paper"))
    known = {key: claim[key] for key in ("kind", "sentence", "place", "quote", "looked", "gap") if key in claim}
    return Sentence(bands=bands, paper=paper, **known)


@cache
def forms_at(file: str) -> dict[str, dict[str, str]]:
    """The form of every claim by scale in the version of the file with this digest; none if it was never one.

    Where the same file was registered again, because Specs had changed, the later line counts: records of other Specs
    have other names.
    """
    forms: dict[str, dict[str, str]] = {}
    last = max((i for i, version in enumerate(registered.history()) if version["file"] == file), default=-1)
    for version in registered.history()[: last + 1]:
        for id, changed in version["forms"].items():
            forms[id] = forms.get(id, {}) | changed
    return forms


def made_under(record: Record) -> dict[str, dict[str, str]]:
    """The forms that were registered when a record was begun."""
    under = record.env["sittings"][0].get("registration") or {}
    return forms_at(under.get("file", ""))

"""The ledger, remembered: as long as no record and no line of code has changed, it need not be decided again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.errors import EngramError

Claims = list[dict[str, Any]]
Words = tuple[str, ...]


@dataclass(frozen=True)
class Decided:
    """Claims as --json prints them, and records that cannot be read and decide nothing."""

    claims: Claims
    unreadable: list[dict[str, str]]


def decided(words: Words, homes: Sequence[Path], reread: bool = False) -> Decided:
    """The claims of the experiments that are named; where claims are named, only these."""
    from engram.records.remembered import Memory

    memory, key = Memory("ledger", *homes), _key(homes, reread)
    known = {} if reread else memory.recall()
    if known.get("key") != key or not _names(known["ids"], words) <= set(known["claims"]):
        known = _decide(words, homes, key, known if known.get("key") == key else {})
        memory.keep(known)
    names = _names(known["ids"], words)
    claims = [claim for name in known["claims"] if name in names for claim in known["claims"][name]]
    named = [c for c in claims if not words or c["id"].startswith(words) or c["experiment"].startswith(words)]
    return Decided(adjusted(named), known["unreadable"])


def adjusted(claims: Claims) -> Claims:
    """With Holm's p-value of each verdict on a paper, among those that are listed."""
    from engram.claims.multiplicity import holm

    about = [claim for claim in claims if claim["kind"] in ("sentence", "number")]
    found = dict(zip((c["id"] for c in about), holm([c["verdict_p"] for c in about]), strict=True))
    return [claim | {"holm": found.get(claim["id"])} for claim in claims]


def _key(homes: Sequence[Path], reread: bool) -> str:
    """Changes with every record that has ended, with the registration, and with what manifests list."""
    from engram.records import manifest
    from engram.records.files import sha256
    from engram.records.index import lines
    from engram.registered import history, in_force

    found = [(i, line) for i, home in enumerate(homes) for line in lines(home, reread)]
    ended = [(i, line.id, line.bundle, line.stamp) for i, line in found if line.ended]
    return sha256(repr([in_force(), len(history()), [manifest.stamp(home) for home in homes], ended]).encode())


def _names(ids: dict[str, list[str]], words: Words) -> set[str]:
    """Experiments whose name, or one of whose claims, begins with one of the words; all when there are none."""
    known = [(name, one) for name, own in ids.items() for one in (name, *own)]
    hits = {word: {name for name, one in known if one.startswith(word)} for word in words}
    unknown = sorted(word for word, found in hits.items() if not found)
    if unknown:
        raise EngramError(f"nothing begins with {', '.join(unknown)}; `engram list` shows experiments and claims")
    return set.union(*hits.values()) if words else set(ids)


def _decide(words: Words, homes: Sequence[Path], key: str, known: dict[str, Any]) -> dict[str, Any]:
    from engram import experiments
    from engram.claims.ledger import Index, ledger

    ids = {name: list(experiments.find(name).statements) for name in experiments.names()}
    index, before = Index.of(homes), known.get("claims", {})
    new = sorted(_names(ids, words) - set(before))
    claims = before | {name: [e.to_json() for e in ledger([experiments.find(name)], index)] for name in new}
    told = [{"record": broken.record, "why": broken.why} for broken in index.unreadable]
    unreadable = told + [one for one in known.get("unreadable", []) if one not in told]
    in_order = {name: claims[name] for name in ids if name in claims}
    return {"key": key, "ids": ids, "claims": in_order, "unreadable": unreadable}

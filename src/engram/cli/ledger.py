"""`engram verify` and `engram ledger`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli.decided import Decided, Words, decided
from engram.cli.output import answer, console, near, say, tell, watched
from engram.cli.where import HERE, Computing
from engram.errors import EngramError

if TYPE_CHECKING:
    from engram.engines.choosing import Where

MOST_UNREADABLE = 10  # are listed one by one


def verify(
    *names: str,
    scale: str = "quick",
    anew: bool = False,
    computing: Computing = HERE,
    controls: bool = False,
    markdown: bool = False,
    json: bool = False,
) -> int:
    """Run what is missing and print the ledger. Exit code 1 if a verdict differs from the committed ledger.

    The same where a committed record is damaged or lost, or where damage leaves a claim without a verdict.

    Parameters
    ----------
    names
        Experiments or claims, or what their names begin with; all unless some are named.
    scale
        smoke, quick or paper: at which scale what is missing is run.
    anew
        Ignore the committed records: run everything that has not been run here.
    controls
        Run nothing, but test every claim on planted alternatives. Exit code 1 if one agrees where it must not.
    markdown
        With --controls: print the table as in docs/controls.md, from the committed records only.
    """
    if controls or markdown:
        from engram.cli.controls import verify_controls

        if anew or not controls or (markdown and json):
            raise EngramError("verify: --controls takes --json or --markdown, and no --anew; choose one")
        return verify_controls(names, json, markdown)
    from engram.claims.ledger import Index, missing_specs
    from engram.experiments import matching
    from engram.records.files import COMMITTED, home

    where, chosen = computing.where(), list(matching(names))
    homes = [home()] if anew else [home(), COMMITTED]
    missing = missing_specs(chosen, scale, Index.of(homes))
    failed = _run_missing(missing, f"{' '.join(names) or 'all'}, {scale} scale", where) if missing else None
    now = decided(names, homes)
    _print_ledger(now, json)
    committed = decided(names, [COMMITTED])
    verdicts = {claim["id"]: claim["verdict"] for claim in committed.claims}
    changed = [c["id"] for c in now.claims if verdicts[c["id"]] not in ("missing", c["verdict"])]
    if changed:
        say(f"differs from the committed ledger: {', '.join(changed)}")
    if failed:
        raise failed
    spoiled = committed.unreadable or any(claim["why_missing"] for claim in now.claims)
    return 1 if changed or spoiled else 0


def _run_missing(specs: list[Any], what: str, where: "Where") -> EngramError | None:
    """Runs them; failures are reported after the ledger of all the others."""
    from engram import api
    from engram.engines import Failed

    try:
        api.run_specs(specs, watch=watched(what, where), where=where)
    except Failed as error:
        return error
    return None


def ledger(
    *names: str,
    html: Path | None = None,
    committed: bool = False,
    markdown: bool = False,
    sources: bool = False,
    reread: bool = False,
    json: bool = False,
) -> None:
    """Print the ledger of committed and local records; nothing is run.

    Parameters
    ----------
    names
        Experiments or claims, or what their names begin with; all unless some are named.
    html
        Write it to this file: one page with filters that opens offline.
    committed
        Use only the committed records.
    markdown
        Print it as in LEDGER.md, always from the committed records only.
    sources
        Print docs/theory/index.md: from theorems, figures and slides to function, claim and verdict.
    reread
        Read every record again, instead of what is remembered of those whose files have not changed.
    """
    from engram.records.files import COMMITTED, home

    if sum((markdown, sources, json or html is not None)) > 1:
        raise EngramError("ledger: --markdown, --sources and --json or --html cannot be combined; choose one")
    only = committed or markdown or sources
    now = decided(names, [COMMITTED] if only else [home(), COMMITTED], reread)
    if html is None and not markdown and not sources:
        _print_ledger(now, json)
        return
    _report_unreadable(now)
    if html is not None:
        _write_html(html, names, now, only, json)
    else:
        tell(*_pages(now, sources).removesuffix("\n").split("\n"))


def _pages(now: Decided, sources: bool) -> str:
    """As LEDGER.md, or as docs/theory/index.md."""
    from engram.show import ledger_markdown, theorem_table

    if not sources:
        return ledger_markdown.markdown(now.claims)
    from engram.cli.sources import functions

    return theorem_table.markdown(now.claims, functions())


def _write_html(html: Path, names: Words, now: Decided, only: bool, json: bool) -> None:
    from engram.pages import write_ledger

    command = " ".join(["engram ledger", *names, "--html FILE", *(["--committed"] if only else [])])
    records = "the committed records" if only else "local and committed records"
    path = write_ledger(html.resolve(), now.claims, records, command)
    answer({"ledger": str(path)}) if json else tell(f"ledger  {near(path)}")


def _print_ledger(now: Decided, json: bool) -> None:
    from engram.show.claims import counts
    from engram.show.tables import print_claims, print_counts, print_surety

    if json:
        answer({"claims": now.claims, "counts": counts(now.claims), "unreadable": now.unreadable})
    else:
        print_claims(console(), now.claims)
        tell("")
        print_counts(console(), counts(now.claims))
        print_surety(console(), now.claims)
    _report_unreadable(now)


def _report_unreadable(now: Decided) -> None:
    """Say how many records decide nothing because they cannot be read or believed, which ones, why, and what for."""
    if now.unreadable:
        n = len(now.unreadable)
        are = "records or bundles are" if n > 1 else "record or bundle is"
        say(f"DAMAGE: {n} {are} damaged, lost or not in the manifest, and decide{'s' * (n == 1)} nothing:")
        say(*(f"  {broken['record']}: {broken['why']}" for broken in now.unreadable[:MOST_UNREADABLE]))
        if n > MOST_UNREADABLE:
            say(f"  and {n - MOST_UNREADABLE} more; --json names all of them")
    lost = [claim["id"] for claim in now.claims if claim["why_missing"]]
    if lost:
        say(f"claims that are missing for it: {', '.join(lost)}")

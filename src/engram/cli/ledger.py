"""`engram verify` and `engram ledger`."""

from pathlib import Path
from typing import Any

from engram.cli.output import answer, console, near, say, tell, watched
from engram.errors import EngramError

Words = tuple[str, ...]
MOST_UNREADABLE = 10  # are listed one by one


def verify(*names: str, scale: str = "quick", anew: bool = False, json: bool = False) -> int:
    """Run what is missing and print the ledger. Exit code 1 if a verdict differs from the committed ledger.

    Parameters
    ----------
    anew
        Ignore the committed records: run everything that has not been run here.
    """
    from engram.claims.ledger import Index, ledger, missing_specs
    from engram.experiments import matching
    from engram.records.files import COMMITTED, home

    chosen, homes = list(matching(names)), [home()] if anew else [home(), COMMITTED]
    missing = missing_specs(chosen, scale, Index.of(homes))
    failed = _run_missing(missing, f"{' '.join(names) or 'all'}, {scale} scale") if missing else None
    index = Index.of(homes)
    entries = _entries(names, index)
    _print_ledger(entries, index, json)
    committed = {entry.id: entry.verdict for entry in ledger(chosen, Index.of([COMMITTED]))}
    changed = [e.id for e in entries if committed[e.id] not in ("missing", e.verdict)]
    if changed:
        say(f"differs from the committed ledger: {', '.join(changed)}")
    if failed:
        raise failed
    return 1 if changed else 0


def _run_missing(specs: list[Any], what: str) -> EngramError | None:
    """Runs them; failures are reported after the ledger of all the others."""
    from engram import api
    from engram.engines import Failed

    try:
        api.run_specs(specs, watch=watched(what, "auto"))
    except Failed as error:
        return error
    return None


def ledger(
    *names: str, html: Path | None = None, committed: bool = False, markdown: bool = False, json: bool = False
) -> None:
    """Print the ledger of committed and local records; nothing is run.

    Parameters
    ----------
    html
        Write it to this file: one page with filters that opens offline.
    committed
        Use only the committed records.
    markdown
        Print it as in LEDGER.md, always from the committed records only.
    """
    from engram.claims.ledger import Index
    from engram.records.files import COMMITTED, home

    if markdown and (json or html):
        raise EngramError("ledger: --markdown cannot be combined with --json or --html; choose one")
    only = committed or markdown
    index = Index.of([COMMITTED] if only else [home(), COMMITTED])
    entries = _entries(names, index)
    if html is None and not markdown:
        _print_ledger(entries, index, json)
        return
    _report_unreadable(index)
    claims = [entry.to_json() for entry in entries]
    if html is not None:
        from engram.api import write_ledger

        command = " ".join(["engram ledger", *names, "--html FILE", *(["--committed"] if only else [])])
        records = "the committed records" if only else "local and committed records"
        path = write_ledger(html.resolve(), claims, records, command)
        answer({"ledger": str(path)}) if json else tell(f"ledger  {near(path)}")
    else:
        from engram.show.ledger_markdown import markdown as as_markdown

        tell(*as_markdown(claims).removesuffix("\n").split("\n"))


def _entries(names: Words, index: Any) -> list[Any]:
    """Claims of the experiments that are named; where claims are named, only these."""
    from engram.claims.ledger import ledger
    from engram.experiments import matching

    found = ledger(matching(names), index)
    return [e for e in found if not names or any(k.startswith(names) for k in (e.id, e.experiment.name))]


def _print_ledger(entries: list[Any], index: Any, json: bool) -> None:
    from engram.show.tables import print_claims

    claims = [entry.to_json() for entry in entries]
    unreadable = [{"record": broken.record, "why": broken.why} for broken in index.unreadable]
    answer({"claims": claims, "unreadable": unreadable}) if json else print_claims(console(), claims)
    _report_unreadable(index)


def _report_unreadable(index: Any) -> None:
    """Say how many records decide nothing because they cannot be read, which ones, and why."""
    if index.unreadable:
        n = len(index.unreadable)
        say(f"{n} record{'s' * (n > 1)} cannot be read and decide{'s' * (n == 1)} nothing:")
        say(*(f"  {broken.record}: {broken.why}" for broken in index.unreadable[:MOST_UNREADABLE]))
        if n > MOST_UNREADABLE:
            say(f"  and {n - MOST_UNREADABLE} more; --json names all of them")

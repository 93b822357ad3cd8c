"""`engram runs`: list, show, compare, remove, resume, check, pack, list digests."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from engram.cli.output import WholeNumber, answer, confirmed, near, print_table, tell, watched
from engram.cli.trust import ask_trust
from engram.errors import EngramError

runs = App(name="runs", help="Stored runs: list, show, compare, remove, resume, check, pack.")


@runs.command
def ls(*, json: bool = False) -> None:
    """List all stored runs, the newest last."""
    from engram.records.files import home
    from engram.records.index import overview

    print_table("runs", overview(home()), json)


@runs.command
def show(run: str, *, json: bool = False) -> None:
    """Show what a run is, and its last values."""
    from engram.records.compare import facts
    from engram.records.files import home
    from engram.records.kept import Kept
    from engram.records.places import named

    record = Kept(named(run, home()))
    if json:
        answer({"id": record.id, "spec": record.spec_json, "env": record.env, "facts": facts(record)})
        return
    print_table("facts", [{"field": name, "value": value} for name, value in facts(record).items()], json)


@runs.command
def diff(a: str, b: str, *, json: bool = False) -> None:
    """Show only what differs between two runs."""
    from engram.records.compare import diff as differences
    from engram.records.files import home
    from engram.records.kept import Kept
    from engram.records.places import named

    one, other = (Kept(named(run, home())) for run in (a, b))
    print_table("differences", differences(one, other), json)


@runs.command
def rm(*names: str, yes: bool = False, json: bool = False) -> None:
    """Remove runs: whole names, or `last`. Asks first.

    Parameters
    ----------
    yes
        Remove them without asking.
    """
    from engram.records.files import home
    from engram.records.shelf import removable, remove

    records = [removable(name, home()) for name in names]
    listed = [record.id for record in records]
    if not records:
        raise EngramError("runs rm: name at least one run; `engram runs ls` lists them")
    if yes or confirmed(f"remove {', '.join(listed)}?", "runs rm"):
        for record in records:
            remove(record)
        answer({"removed": listed}) if json else tell(f"removed {', '.join(listed)}")


@runs.command
def resume(run: str, *, trust: bool = False, json: bool = False) -> None:
    """Resume a run where it stopped.

    Parameters
    ----------
    trust
        Let code that the record carries run on this machine, now and in future.
    """
    from engram.api import load_own
    from engram.engines.local import Local

    record = load_own(run)
    ask_trust(record, trust)
    if record.stale:
        raise EngramError(f"run {record.id} is of an older revision and cannot be resumed; run its experiment again")
    device = record.env["sittings"][0]["device"]
    with watched(f"resuming {record.id}", device)([record.spec]) as on_row:
        (record,) = Local(record.folder.parent, device).run([record.spec], on_row).all_records()
    answer({"id": record.id, "rows": len(record.table)}) if json else tell(f"record  {near(record.folder)}")


@runs.command
def check(
    record: str,
    *,
    steps: int = 20,
    seconds: float = 20.0,
    everything: Annotated[bool, Parameter(name="--all")] = False,
    pick: WholeNumber | None = None,
    trust: bool = False,
    json: bool = False,
) -> int:
    """Verify a record: every file in it, and its rows against rows that are computed again. Exit code 1 if they differ.

    Parameters
    ----------
    steps
        Rows from the beginning that are recomputed in any case.
    seconds
        Time for more: random stretches from stored states, or a longer beginning where the record has no states.
    everything
        Recompute every row, however long it takes.
    pick
        Draw the same stretches again: the number that an earlier check printed.
    trust
        Let code that the record carries run on this machine, now and in future.
    """
    from engram.api import load, recheck

    found = load(record)
    ask_trust(found, trust)
    result = recheck(found, steps, seconds, everything, pick)
    answer(result) if json else tell(result["message"])
    return 0 if result["ok"] else 1


@runs.command
def bundle(
    name: str, *, scale: str = "quick", seeds: str = "5", into: Path = Path("packed"), json: bool = False
) -> None:
    """Pack the finished runs of an experiment into one small file."""
    from engram.claims.experiment import known_scale
    from engram.claims.seeds import read_seeds
    from engram.experiments import find
    from engram.records.bundle import bundle as bundled
    from engram.records.files import home
    from engram.records.shelf import of_spec

    specs = find(name).specs(known_scale(scale), read_seeds(seeds))
    records = [of_spec(spec, [home()]) for spec in specs]
    if None in records:
        raise EngramError(
            f"runs bundle: not all runs are finished; first: engram run {name} --scale {scale} --seeds {seeds}"
        )
    target = bundled([record for record in records if record], into.resolve() / f"{name}-{scale}.zip")
    answer({"packed": str(target), "runs": len(records)}) if json else tell(f"packed  {near(target)}")


@runs.command
def manifest(folder: Path | None = None, *, json: bool = False) -> None:
    """List the digests of all records of a folder in its file MANIFEST; without a folder, of the committed records.

    The ledger then believes no record of that folder but those listed.
    """
    from engram.records.files import COMMITTED
    from engram.records.manifest import NAME, write

    home = COMMITTED if folder is None else folder.resolve()
    before, now = write(home)
    told = {
        "added": sorted(now.keys() - before.keys()),
        "removed": sorted(before.keys() - now.keys()),
        "changed": sorted(name for name in now.keys() & before.keys() if now[name] != before[name]),
    }
    if json:
        answer({"manifest": str(home / NAME), "listed": len(now)} | told)
        return
    tell(*(f"{what} {name}" for what, names in told.items() if before for name in names))
    tell(f"manifest  {near(home / NAME)}, {len(now)} lines")


@runs.command
def pack(run: str, *, into: Path = Path("packed"), weights: bool = False, json: bool = False) -> None:
    """Copy a finished run in a small form: rows gzipped; with --weights, final weights in float16."""
    from engram.api import load
    from engram.records.bundle import pack as packed

    target = packed(load(run), into.resolve(), weights)
    answer({"packed": str(target)}) if json else tell(f"packed  {near(target)}")

"""`engram runs`: list, show, compare, remove, resume, check, pack, list digests."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from engram.cli.output import WholeNumber, answer, confirmed, near, print_table, say, tell, tell_figures, watched
from engram.cli.trust import ask_trust
from engram.errors import EngramError

runs = App(name="runs", help="Stored runs: list, show, compare, remove, resume, check, pack.")


@runs.command
def ls(
    *,
    where: Annotated[tuple[str, ...], Parameter(consume_multiple=1)] = (),
    tag: Annotated[tuple[str, ...], Parameter(consume_multiple=1)] = (),
    sort: str | None = None,
    json: bool = False,
) -> None:
    """List stored runs: what each was made for, what was set, when, how long, and how it ended; the newest last.

    Parameters
    ----------
    where
        Only runs for which this holds: a field, a final value or a column of the table, as in --where K=5 "loss<0.1";
        "note~head": it contains this.
    tag
        Only runs with this tag.
    sort
        A field, a final value or a column of the table, the largest last; left out, the newest last.
    """
    from dataclasses import asdict

    from engram.cli.run_table import print_runs, table
    from engram.records.choosing import chosen, in_order
    from engram.records.faces import faces
    from engram.records.files import home

    found = faces(home())
    shown = chosen(in_order(found, sort), where, tag)
    if json:
        answer({"runs": [asdict(face) | {"words": face.words} for face in shown]})
        return
    if not shown:
        tell(f"none of {len(found)} runs matches" if found else f"no runs in {near(home())}; `engram birth` makes one")
        return
    print_runs(table(shown, [face.run for face in found]))


@runs.command
def show(run: str, *, json: bool = False) -> None:
    """Show what a run is: what it was made for, its settings, stored steps, births of memories, and final values."""
    from dataclasses import asdict

    from engram.cli.run_table import births_table, story
    from engram.records.compare import facts
    from engram.records.faces import births, face_of
    from engram.records.files import home
    from engram.records.kept import Kept
    from engram.records.places import named

    record = Kept(named(run, home()))
    face, told = face_of(record), facts(record)
    if json:
        born = {name: {str(level): step for level, step in levels.items()} for name, levels in births(record).items()}
        about = {name: value for name, value in asdict(face).items() if name not in ("fields", "final")}
        more = {"about": about, "births": born, "stored_steps": record.snapshot_steps}
        answer({"id": record.id, "spec": record.spec_json, "env": record.env, "facts": told} | more)
        return
    print_table("about", story(face, record.snapshot_steps), json)
    settings = {name: value for name, value in told.items() if not name.startswith(("env.", "final."))}
    final, env = ({name: value for name, value in told.items() if name.startswith(p)} for p in ("final.", "env."))
    told_of = [[{"field": name, "value": value} for name, value in part.items()] for part in (settings, final, env)]
    for part in (told_of[0], births_table(births(record), record.last_step), *told_of[1:]):
        if part:
            tell("")
            print_table("part", part, json)


@runs.command
def tag(run: str, *tags: str, remove: bool = False, json: bool = False) -> None:
    """Give a run tags, or take them away; `engram runs ls --tag TAG` lists what has one.

    Parameters
    ----------
    tags
        Words of your own, such as good or figure-2.
    remove
        Take these tags away instead.
    """
    from engram.api import load_own
    from engram.records.about import change, with_tags

    folder = load_own(run).folder
    now = change(folder, lambda about: with_tags(about, tags, remove)).tags
    answer({"run": folder.name, "tags": list(now)}) if json else tell(f"{folder.name}: {', '.join(now) or 'no tags'}")


@runs.command
def note(run: str, *words: str, json: bool = False) -> None:
    """Write a note about a run, which `runs ls` and `runs show` say; without words the note is removed.

    Parameters
    ----------
    words
        The note.
    """
    from engram.api import load_own
    from engram.records.about import change, with_note

    folder = load_own(run).folder
    now = change(folder, lambda about: with_note(about, " ".join(words))).note
    answer({"run": folder.name, "note": now}) if json else tell(f"{folder.name}: {now or 'no note'}")


@runs.command
def diff(a: str, b: str, *, json: bool = False) -> None:
    """Show what differs between two runs: settings, births, curves and final values; and draw both."""
    from engram.cli.run_table import births_beside_table, drawn_beside, shortened
    from engram.records.compare import births_beside, curves_beside
    from engram.records.compare import diff as differences
    from engram.records.files import home
    from engram.records.kept import Kept
    from engram.records.places import named

    one, other = (Kept(named(run, home())) for run in (a, b))
    found = {
        "differences": differences(one, other),
        "births": births_beside(one, other),
        "curves": curves_beside(one, other),
    }
    figures = drawn_beside(one, other) if found["curves"] else []
    if json:
        answer(found | {"figures": [str(path) for path in figures]})
        return
    if one.id == other.id:
        say(f"{a} and {b} are the same run, {one.id}; `engram runs ls` lists the others")
    born = births_beside_table(found["births"], {"a": one.last_step, "b": other.last_step})
    for name, rows in (found | {"births": born}).items():
        if rows:
            tell(*([] if name == "differences" else [""]))
            print_table(name, shortened(rows), json)
    tell_figures(figures)


@runs.command
def rm(*names: str, yes: bool = False, json: bool = False) -> None:
    """Remove runs, each by its name, a part of it that no other run has, or `last`. Asks first.

    Parameters
    ----------
    yes
        Remove them without asking.
    """
    from engram.records.faces import words_of
    from engram.records.files import home
    from engram.records.shelf import removable, remove

    records = list({record.id: record for record in (removable(name, home()) for name in names)}.values())
    listed = [record.id for record in records]
    if not records:
        raise EngramError("runs rm: name at least one run; `engram runs ls` lists them")
    if yes or confirmed(f"remove {', '.join(f'{r.id} ({words_of(r)})' for r in records)}?", "runs rm"):
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
    from engram.engines.choosing import Where
    from engram.engines.local import Local
    from engram.records.shelf import refuse_if_written

    record = load_own(run)
    ask_trust(record, trust)
    if record.stale:
        raise EngramError(f"run {record.id} is of an older revision and cannot be resumed; run its experiment again")
    refuse_if_written(record)
    if record.finished:
        say(f"run {record.id} is finished; there is nothing to resume")
        answer({"id": record.id, "rows": len(record.table)}) if json else tell(f"record  {near(record.folder)}")
        return
    device = record.env["sittings"][0]["device"]
    with watched(f"resuming {record.id}", Where(device=device))([record.spec]) as on_row:
        engine = Local(record.folder.parent, device, snapshots=record.about.snapshots)
        (record,) = engine.run([record.spec], on_row).all_records()
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

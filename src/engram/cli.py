"""The command line. Everything heavy is imported inside the command that needs it."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter

from engram.errors import EngramError, Interrupted

app = App(
    name="engram",
    help="An open laboratory for transformers as associative memories.",
    default_parameter=Parameter(negative=""),
    help_epilogue="Runs are kept in ./runs, or in $ENGRAM_HOME. Every command takes --json and --debug.",
)
runs = App(
    name="runs",
    help="Stored runs: list, show, compare, remove, resume, check.",
    default_parameter=Parameter(negative=""),
)
app.command(runs)

Settings = Annotated[tuple[str, ...], Parameter(name="--set", consume_multiple=True)]
Words = tuple[str, ...]


def say(*lines: str) -> None:
    """To a person, beside the answer: stderr."""
    for line in lines:
        print(line, file=sys.stderr)


def answer(data: dict[str, Any]) -> None:
    """One object on stdout. Once it is wanted, nothing else is printed there."""
    print(json.dumps(data, ensure_ascii=False, allow_nan=False))


def near(path: Path) -> Path:
    """A path as a person would write it: from here if it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def console() -> Any:
    from rich.console import Console

    return Console(highlight=False)


@app.command
def birth(*, fresh: bool = False, device: str = "auto", json: bool = False) -> int:
    """Watch an induction head being born: terminal view, figures, report, claims.

    Parameters
    ----------
    fresh
        Take the next seed instead of showing the stored run.
    device
        auto, cpu, cuda or mps.
    """
    from engram import api
    from engram.experiments import find
    from engram.show.terminal import View

    specs = api.specs_of(find("birth.joint"), "quick", [api.birth_seed(fresh)], {})
    _announce("birth.joint", "quick", specs, device)
    with View(specs) as view:
        result, report = api.birth(fresh, device, view.see)
    if json:
        answer(result.to_json() | {"report": str(report), "births": _births(result.records[0])})
    else:
        _tell_birth(result, report)
    return 0


def _births(record: Any) -> dict[str, dict[str, int | None]]:
    from engram.records.readings import MEMORIES, birth

    return {
        name: {str(level): birth(record, column, level) for level in (0.5, 0.9)} for column, name in MEMORIES.items()
    }


def _tell_birth(result: Any, report: Path) -> None:
    from engram.records.readings import MEMORIES, birth, late_mean
    from engram.show.progress import LEVELS, birth_summary
    from engram.show.tables import print_claims

    (record,) = result.records
    found = {(column, level): birth(record, column, level) for column in MEMORIES for level in LEVELS}
    print(*birth_summary({key: step for key, step in found.items() if step is not None}), sep="\n")
    accuracy = late_mean(record, "accuracy.in_context", record.train.steps)
    print(f"\nin-context accuracy {accuracy:.3f} (mean of the last 30 steps)\n")
    print_claims(console(), result.claims)
    print("\nOne seed decides nothing: `engram ledger birth` has the verdicts over seeds.")
    pictures = [path for path in result.figures if path.suffix == ".png"]
    print("", *(f"figure  {near(path)}" for path in pictures), f"report  {near(report)}", sep="\n")


@app.command(name="list")
def list_(*, json: bool = False) -> int:
    """Experiments with their claims and times."""
    from engram import experiments

    found = [experiments.find(name) for name in experiments.names()]
    rows = [{"name": e.name, "about": e.about, "times": e.times, "claims": list(e.statements)} for e in found]
    if json:
        answer({"experiments": rows})
        return 0
    for row, experiment in zip(rows, found, strict=True):
        print(f"{row['name']}\n  {row['about']}\n  {row['times']}")
        for id, statement in experiment.statements.items():
            print(f"    {id:<24} {statement}")
    return 0


@app.command
def run(
    name: str,
    *,
    scale: str = "quick",
    seeds: int = 1,
    engine: str = "local",
    device: str = "auto",
    settings: Settings = (),
    json: bool = False,
) -> int:
    """Run an experiment, or your own file (./mine.py).

    Parameters
    ----------
    scale
        smoke (seconds), quick (minutes) or paper (the published sizes).
    seeds
        How many seeds: 0, 1, ….
    engine
        Where runs are computed: local.
    settings
        Fields of the Spec to set otherwise: --set task.K=3 plan.optimiser.lr=0.1
    """
    from engram.records.spec import parse_settings
    from engram.show.tables import print_claims

    if engine != "local":
        raise EngramError(f"--engine {engine!r}: this version has the engine local")
    result = _run_watched(name, scale, range(seeds), parse_settings(settings), device)
    if json:
        answer(result.to_json())
        return 0
    print_claims(console(), result.claims)
    if settings:
        print("\nFields were set otherwise: these numbers are not for the ledger.")
    print("", *(f"record  {near(record.folder)}" for record in result.records), sep="\n")
    print(*(f"figure  {near(path)}" for path in result.figures if path.suffix == ".png"), sep="\n")
    return 0


def _run_watched(name: str, scale: Any, seeds: Any, settings: dict[str, Any], device: str) -> Any:
    """Run an experiment with the terminal view."""
    from engram import api
    from engram.experiments import find
    from engram.show.terminal import View

    specs = api.specs_of(find(name), scale, seeds, settings)
    _announce(name, scale, specs, device)
    with View(specs) as view:
        return api.run(name, scale, seeds, settings, device, view.see)


def _announce(name: str, scale: str, specs: list[Any], device: str) -> None:
    from engram.engines.local import choose_device, cores

    chosen, why = choose_device(device)
    say(f"{name}, {scale} scale, {len(specs)} run{'s' * (len(specs) > 1)} · device {chosen} ({why}) · {cores()} cores")


@app.command
def verify(*names: str, scale: str = "quick", json: bool = False) -> int:
    """Run what is missing and print the ledger. Exit code 1 if a verdict differs from the committed ledger."""
    from engram import experiments
    from engram.ledger import ledger
    from engram.records.files import COMMITTED, home

    chosen = list(experiments.matching(names))
    for experiment in chosen:
        if any(entry.claim is None for entry in ledger([experiment], [home(), COMMITTED])):
            least = experiments.LEAST_SEEDS.get(scale, 1)  # type: ignore[call-overload]
            _run_watched(experiment.name, scale, range(least), {}, "auto")
    entries = _print_ledger(chosen, names, json)
    committed = {entry.id: entry.verdict for entry in ledger(chosen, [COMMITTED])}
    changed = [e.id for e in entries if committed[e.id] != "missing" and committed[e.id] != e.verdict]
    if changed:
        say(f"differs from the committed ledger: {', '.join(changed)}")
    return 1 if changed else 0


@app.command
def ledger(*names: str, json: bool = False, markdown: bool = False) -> int:
    """The ledger from committed and local records; runs nothing.

    Parameters
    ----------
    markdown
        LEDGER.md, from the committed records only.
    """
    from engram import experiments
    from engram.ledger import ledger as decided
    from engram.ledger import markdown as as_markdown
    from engram.records.files import COMMITTED

    chosen = list(experiments.matching(names))
    if markdown:
        print(as_markdown(decided(chosen, [COMMITTED])), end="")
    else:
        _print_ledger(chosen, names, json)
    return 0


def _print_ledger(chosen: list[Any], names: Words, json: bool) -> list[Any]:
    """Claims of the chosen experiments; where claims were named, only these."""
    from engram.ledger import ledger
    from engram.records.files import COMMITTED, home
    from engram.show.tables import print_claims

    entries = ledger(chosen, [home(), COMMITTED])
    wanted = [
        e
        for e in entries
        if not names or any(known.startswith(n) for n in names for known in (e.id, e.experiment.name))
    ]
    claims = [entry.to_json() for entry in wanted]
    if json:
        answer({"claims": claims})
    else:
        print_claims(console(), claims)
    return wanted


@app.command
def report(
    *names: str,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("report.html"),
    json: bool = False,
) -> int:
    """One self-contained HTML file about runs; opens offline."""
    from engram.api import load, write_report

    if not names:
        raise EngramError("report: name at least one run; `engram runs ls` lists them")
    path = write_report(output.resolve(), "Engram report", [load(name) for name in names])
    answer({"report": str(path)}) if json else print(f"report  {near(path)}")
    return 0


@app.command
def doctor(*, json: bool = False) -> int:
    """Versions, threads, device, disk, optional parts."""
    from engram.doctor import findings

    rows = findings()
    if json:
        answer({"doctor": {row["what"]: row["found"] for row in rows}})
    else:
        from engram.show.tables import print_rows

        print_rows(console(), rows)
    return 0


@runs.command
def ls(*, json: bool = False) -> int:
    """All stored runs, the newest last."""
    from engram.records.files import home
    from engram.records.shelf import overview

    return _print_table("runs", overview(home()), json)


@runs.command
def show(run: str, *, json: bool = False) -> int:
    """What a run is and what it came to."""
    from engram.api import load
    from engram.records.compare import facts

    record = load(run)
    if json:
        answer({"id": record.id, "spec": record.spec_json, "env": record.env, "facts": facts(record)})
        return 0
    return _print_table("facts", [{"field": name, "value": value} for name, value in facts(record).items()], json)


@runs.command
def diff(a: str, b: str, *, json: bool = False) -> int:
    """Only what differs between two runs."""
    from engram.api import load
    from engram.records.compare import diff as differences

    return _print_table("differences", differences(load(a), load(b)), json)


@runs.command
def rm(run: str, *, json: bool = False) -> int:
    """Remove a run."""
    from engram.api import load
    from engram.records.shelf import remove

    record = load(run)
    remove(record)
    answer({"removed": record.id}) if json else print(f"removed {record.id}")
    return 0


@runs.command
def resume(run: str, *, json: bool = False) -> int:
    """Go on with a run where it was cut."""
    from engram.api import load
    from engram.engines.local import run_all
    from engram.records.files import home
    from engram.show.terminal import View

    record = load(run)
    with View([record.spec]) as view:
        (record,) = run_all([record.spec], home(), record.env["sittings"][0]["device"], view.see)
    answer({"id": record.id, "rows": len(record.rows)}) if json else print(f"record  {near(record.folder)}")
    return 0


@runs.command
def check(record: str, *, steps: int = 20, json: bool = False) -> int:
    """Verify a record: its digest, and its first steps against a fresh run. Exit code 1 if they differ."""
    from engram.api import load, recheck

    result = recheck(load(record), steps)
    answer(result) if json else print(result["message"])
    return 0 if result["ok"] else 1


@runs.command
def pack(run: str, *, into: Path = Path("packed"), weights: bool = False, json: bool = False) -> int:
    """Copy a finished run, made small: rows gzipped; final weights in float16 with --weights."""
    from engram.api import load
    from engram.records.pack import pack as packed

    target = packed(load(run), into.resolve(), weights)
    answer({"packed": str(target)}) if json else print(f"packed  {near(target)}")
    return 0


def _print_table(name: str, rows: list[dict[str, Any]], json: bool) -> int:
    from engram.show.tables import print_rows

    answer({name: rows}) if json else print_rows(console(), rows)
    return 0


def main(arguments: list[str] | None = None) -> None:
    """Run a command; turn errors into one line and an exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        code = app(
            [w for w in words if w != "--debug"],
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        sys.exit(code if isinstance(code, int) else 0)
    except (EngramError, CycloptsError) as error:
        if debug:
            raise
        say(f"engram: {' '.join(str(error).split())}")
        sys.exit(2)
    except Interrupted as stop:
        say(f"engram: {stop}")
        sys.exit(130)
    except KeyboardInterrupt:
        say("engram: stopped at once; what was saved before is kept and resumed by the same command")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # a reader such as `head` has left
        sys.exit(0)
    except Exception as error:
        if debug:
            raise
        say(f"engram: unexpected {type(error).__name__}: {error}; please report it with the output of --debug")
        sys.exit(2)

"""The command line. Everything heavy is imported inside the command that needs it."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

from cyclopts import App, CycloptsError, Parameter

from engram.cli.ahead import refuse_if_written
from engram.cli.bench import bench
from engram.cli.cite import cite
from engram.cli.completion import completion, share_parameters
from engram.cli.cost import cost
from engram.cli.experiments import fields, list_, show
from engram.cli.facts import fact
from engram.cli.findings import findings
from engram.cli.lab import lab, open_lab, replay
from engram.cli.ledger import ledger, verify
from engram.cli.lesson import lesson
from engram.cli.moving import runs
from engram.cli.output import (
    answer,
    answer_error,
    answered,
    console,
    fail,
    in_a_folder,
    near,
    only_the_answer_on_stdout,
    say,
    tell,
    tell_figures,
    watched,
    whole_page,
)
from engram.cli.predict import predict
from engram.cli.probe import probe
from engram.cli.queue import queue
from engram.cli.register import register
from engram.cli.run import print_claims, run
from engram.cli.sweep import sweep
from engram.cli.text_birth import text_birth
from engram.cli.truncate import truncate
from engram.cli.usage import in_words
from engram.errors import EngramError, Interrupted, explain_crash
from engram.signals import listen, raised_before, report_stop, stop_listening

app = App(
    name="engram",
    help="An open laboratory for transformers as associative memories.",
    default_parameter=Parameter(negative=""),  # of all groups of commands
    exit_on_error=False,
    print_error=False,
    suppress_keyboard_interrupt=False,  # it would end without a word; `main` says what was kept
    help_epilogue="Runs are kept in ./runs, or in $ENGRAM_HOME. --json: print one JSON object (docs/json.md). "
    "--debug: show the traceback of an error. Both go with every command.",
)
for command in (
    run,
    show,
    fields,
    bench,
    cost,
    sweep,
    runs,
    queue,
    predict,
    probe,
    fact,
    truncate,
    lab,
    lesson,
    replay,
):
    app.command(command)
for command in (verify, ledger, cite, findings, register, completion):
    app.command(command)
app.command(list_, name="list")


@app.command
def birth(
    *,
    text: str | None = None,
    fresh: bool = False,
    live: bool = False,
    device: str = "auto",
    path: str = "auto",
    json: bool = False,
) -> None:
    """Watch an induction head being born: terminal view, figures, report, claims.

    Parameters
    ----------
    text
        On real text instead: `code` (sources of a pinned package), or a folder or file of your own; a few minutes.
    fresh
        Take the next seed instead of showing the stored run.
    live
        Watch it on the page of the lab, where it can be stopped and steered.
    device
        auto, cpu, cuda or mps.
    path
        How gradients are computed: auto, fast (compiled) or reference (autograd). Both are exact.
    """
    from engram import api
    from engram.engines.choosing import Where

    if text is not None:
        text_birth(text, fresh, live, device, path, json)
        return
    if live:
        _live_birth(fresh, json)
        return
    refuse_if_written(_written_elsewhere(fresh), "--fresh")
    watch = watched("birth.joint, quick scale", Where(device=device))
    result, report = api.birth(fresh, device, watch, path, whole_page())
    if json:
        answer(result.to_json() | {"report": str(report), "births": _births(result.records[0])})
    else:
        _print_birth(result, report)


def _written_elsewhere(fresh: bool) -> str | None:
    """The run that would be shown, if another process is writing it."""
    from engram.api import birth_specs
    from engram.records.files import home, is_held
    from engram.specs.spec import run_id

    (spec,) = birth_specs(fresh)
    return run_id(spec) if is_held(home() / run_id(spec) / "lock", patience=0.1) else None


def _live_birth(fresh: bool, json: bool) -> None:
    from engram.api import birth_specs
    from engram.lab.backend import spec_order
    from engram.specs.spec import run_id

    (spec,) = birth_specs(fresh)
    open_lab(run_id(spec), None, "127.0.0.1", browser=True, json=json, first=spec_order(spec))


def _births(record: Any) -> dict[str, dict[str, int | None]]:
    from engram.claims.readings import birth
    from engram.probes.columns import memories

    found = memories(record.columns)
    return {m.title: {str(level): birth(record, m.name, level) for level in (0.5, 0.9)} for m in found}


def _print_birth(result: Any, report: Path) -> None:
    from engram.claims.readings import late_mean
    from engram.show.progress import birth_summary

    (record,) = result.records
    tell(*birth_summary(record))
    accuracy = late_mean(record, "accuracy.in_context", record.train.steps)
    tell("", f"in-context accuracy {accuracy:.3f} (mean of the last 30 steps)", "")
    print_claims(result)
    tell("", "`engram show birth.joint` has the numbers over all seeds, and the reasons.")
    tell("")
    tell_figures(result.figures)
    tell(f"report  {near(report)}")


@app.command
def report(
    *names: str,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("report.html"),
    json: bool = False,
) -> None:
    """Write one self-contained HTML file about runs: the page of the lab with their data, figures and claims.

    It opens offline, and is at most about 6 MB large: what there is no room for is named here and in the file.

    Parameters
    ----------
    names
        Runs: their names, parts of them that no others have, or `last`.
    output
        The file to write.
    """
    from concurrent.futures import ThreadPoolExecutor

    from engram.records.files import home
    from engram.records.kept import Kept
    from engram.records.places import named

    if not names:
        raise EngramError("report: name at least one run; `engram runs ls` lists them")
    output = in_a_folder(output)
    found = [Kept(named(name, home())) for name in names]
    with ThreadPoolExecutor(1) as pool:  # long runs are read while torch is loaded
        read = pool.submit(lambda: [kept.table for kept in found])
        from engram.pages import write_report
        from engram.records import Record

        read.result()
    records = [Record.of(kept) for kept in found]
    left_out: list[str] = []
    path = write_report(output, "Engram report", records, page=whole_page(left_out.append))
    say(*left_out)
    answer({"report": str(path), "left_out": left_out}) if json else tell(f"report  {near(path)}")


@app.command
def doctor(*, json: bool = False) -> None:
    """Show versions, threads, device, disk and optional parts."""
    from engram.cli.doctor import findings as found

    rows = found()
    if json:
        answer({"doctor": {row["what"]: row["found"] for row in rows}})
    else:
        from engram.show.tables import print_rows

        print_rows(console(), rows)


share_parameters(app)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; turn errors into one line and an exit code. Without arguments this is the whole process."""
    if arguments is None:
        listen()
        try:
            _run(sys.argv[1:])
        finally:
            stop_listening()
    else:
        _run(arguments)


def _run(words: list[str]) -> None:
    debug = "--debug" in words
    try:
        with only_the_answer_on_stdout(words):
            code = app([w for w in words if w != "--debug"], result_action="return_value")
        sys.exit(code if isinstance(code, int) else 0)
    except CycloptsError as error:
        fail("usage", in_words(error, app), 2, words)
    except (Interrupted, KeyboardInterrupt) as stop:
        _stopped(stop, words)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # a reader such as `head` has left
        sys.exit(0)
    except Exception as error:
        if stop := raised_before():
            _stopped(stop, words)
        if debug:
            raise
        message = explain_crash(error)
        fail("unexpected" if message.startswith("unexpected ") else "input", message, 2, words)


def _stopped(stop: Any, words: list[str]) -> NoReturn:
    """What was kept is said on stderr; with --json an object says that no answer comes."""
    code = report_stop(stop)
    if "--json" in words and not answered:
        answer_error("interrupted", str(stop) or "stopped", code)
    sys.exit(code)

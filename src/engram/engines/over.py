"""Runs that are over are only read; and what is said of those that were stopped."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from engram.engines import OnRow, Outcome
from engram.engines.manner import Manner
from engram.errors import EngramError
from engram.records import Record
from engram.records import state as states
from engram.records.state import State
from engram.runner.execute import execute
from engram.specs import Spec
from engram.specs.spec import run_id


def sorted_out(home: Path, specs: Sequence[Spec]) -> tuple[dict[str, Spec], dict[str, Spec]]:
    """Those with something left to run, and those without, by their ids: one that occurs twice runs once."""
    asked = {run_id(spec): spec for spec in specs}
    over = {id: spec for id, spec in asked.items() if _is_over(Record(home / id))}
    return {id: spec for id, spec in asked.items() if id not in over}, over


def _is_over(record: Record) -> bool:
    """Of a damaged record reading it will say so, and the others go on."""
    try:
        return record.ended is not None
    except EngramError:
        return True


def read_over(over: Mapping[str, Spec], manner: Manner, on_row: OnRow) -> dict[str, Exception]:
    """Tells their rows; one that diverged has failed."""
    failed: dict[str, Exception] = {}
    for id, spec in over.items():
        try:
            execute(spec, manner.home, on_row=lambda row, spec=spec: on_row(spec, row))
        except Exception as error:
            failed[id] = error
            manner.on_failure(id, error)
    return failed


def outcome(specs: Sequence[Spec], home: Path, failed: dict[str, Exception]) -> Outcome:
    ids = dict.fromkeys(map(run_id, specs))
    return Outcome([Record(home / id) for id in ids if id not in failed], failed)


def kept(home: Path, ids: Sequence[str]) -> str:
    """What there is of runs that were stopped at once, and how to go on."""
    if len(ids) > 1:
        over = sum((home / id / "digest.json").exists() for id in ids)
        done = f"{over} of {len(ids)} runs are finished, and of the others what was saved is kept"
        return f"{done}; resume with: the same command"
    (id,) = ids
    if (home / id / "digest.json").exists():
        return f"run {id} is finished and kept; the same command goes on from there"
    if not (home / id / states.NAME).exists():
        return f"nothing of run {id} was saved yet; begin again with: the same command"
    return f"run {id} is kept up to step {State.read(home / id).step}; resume with: engram runs resume {id}"

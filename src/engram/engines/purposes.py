"""Runs are told what they are for as soon as they have a row, so that a list can say it, also of one that is killed."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from engram.claims.experiment import Labelled, Scale
from engram.engines import OnRow
from engram.errors import EngramError
from engram.records.about import About, Purpose, change, label_in_words
from engram.records.files import Row
from engram.specs import Spec
from engram.specs.spec import run_id

Purposes = Mapping[str, Purpose]  # by run id
NO_PURPOSES: Purposes = {}


def purposes_of(experiment: str, scale: Scale, labelled: Labelled, settings: dict[str, Any]) -> dict[str, Purpose]:
    """For each run the first label under which its Spec stands."""
    found: dict[str, Purpose] = {}
    for label, specs in labelled.items():
        purpose = Purpose(experiment=experiment, scale=scale, label=label_in_words(label), settings=settings)
        found = {run_id(spec): purpose for spec in specs} | found
    return found


def telling(on_row: OnRow, home: Path, purposes: Purposes, snapshots: int | None = None) -> OnRow:
    """Like `on_row`; at the first row of a run, what it is made for is written beside its record.

    So is how often weights are to be stored, for whoever resumes it.
    """
    told: set[int] = set()  # by object: the id of a Spec is a hash, and there are many rows

    def see(spec: Spec, row: Row) -> None:
        if id(spec) not in told:
            told.add(id(spec))
            with suppress(EngramError):  # a home that can only be read: nice to have, never a reason to stop
                change(home / run_id(spec), partial(_told, purposes.get(run_id(spec)), snapshots))
        on_row(spec, row)

    return see


def _told(purpose: Purpose | None, snapshots: int | None, about: About) -> About:
    after = about if purpose is None else about.with_purpose(purpose)
    return after if snapshots is None else after.model_copy(update={"snapshots": snapshots})

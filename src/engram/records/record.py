"""Record: what is kept of a Spec that ran. Reading only; a Record never changes a run.

Code that a record carries runs only to build its Spec, and only if this user trusts it (engram.records.trust).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import shorten
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Int

from engram.display import Displayed
from engram.errors import EngramError, refuse_other
from engram.memory.stored import Stored
from engram.models import Model, Weights
from engram.models.memories import memories_of
from engram.records import files, stored_spec
from engram.records.faces import face_of
from engram.records.files import corrupt
from engram.records.forward import computed_weights
from engram.records.frames import frame_of
from engram.records.kept import Kept
from engram.records.sealed import Damaged, load, unseal
from engram.records.trust import refuse_untrusted
from engram.records.weights import initial_weights, model_at
from engram.specs.encode import decode
from engram.specs.spec import Check, Search, Spec, Train, run_id
from engram.tasks import text as text_of
from engram.tasks.corpus import Tables, as_a_record_says
from engram.tasks.counts import Counts, NoTable
from engram.values import Value, class_named

Kind = TypeVar("Kind", Train, Check, Search)
INTERNAL = {"is_plain", "may_run", "of", "place", "sealed", "stale", "store", "tensors", "texts", "trust"}
SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, repr=False)
class Record(Kept, Displayed):
    """What is kept of a Spec that ran: a folder named by `id`, with `spec`, `rows`, `env` and stored weights.

    rows    one dict of numbers for each step of a training, each vote of a Search, or each row of a Check
    env     versions, device and threads of each sitting
    """

    def __repr__(self) -> str:
        try:
            face = face_of(self)
        except EngramError:  # a damaged one still has its name
            return f"<Record {self.id}>"
        final = ", ".join(f"{name} {value:.4g}" for name, value in face.headline.items())
        return f"<Record {self.id}: {shorten(face.words, 60, placeholder='…')}; {face.state}; {final}>"

    def __dir__(self) -> list[str]:
        """What users need; the rest is for Engram itself."""
        return sorted(name for name in super().__dir__() if name not in INTERNAL)

    @classmethod
    def of(cls, kept: Kept) -> "Record":
        """The same run; what was read of it is not read again."""
        record = cls(kept.place)
        vars(record).update(vars(kept))
        return record

    @cached_property
    def spec(self) -> Spec:
        """The Spec, checked against the folder's name."""
        if not self.stale and run_id(self._decoded) != self.id:
            raise corrupt(
                self.place,
                "spec.json was changed; a changed Spec is a new run (engram run … --set FIELD=VALUE)",
            )
        return self._decoded

    @cached_property
    def _decoded(self) -> Spec:
        code = self.code  # read once: what is asked about is what runs
        refuse_untrusted(self.id, code)
        try:
            with as_a_record_says(Tables(self._table)):
                spec = decode(self.spec_json, code)
        except EngramError as error:
            raise EngramError(f"record {self.id}: spec.json: {error}") from None
        except Exception as error:  # whatever odd data may lead to
            raise corrupt(self.place, f"spec.json is no description of a run ({type(error).__name__})") from None
        if not isinstance(spec, Spec):
            raise corrupt(self.place, "spec.json does not hold a Spec")
        return spec

    def _table(self, sha256: str) -> Counts | None:
        """Letters and pairs of a text that the Spec names, if the record carries them; older ones do not."""
        name = f"texts/{sha256}.json"
        if not SHA256.fullmatch(sha256) or not (self.place / name).exists():
            return None
        try:
            return Counts.of_bytes(self.sealed(name))
        except NoTable as error:
            raise corrupt(self.place, f"{name}: {error}") from None

    def sealed(self, name: str) -> bytes:
        """A file of the record; once the run has ended, only if it is what was sealed then."""
        content = files.read(self.place, name)
        if self.ended is not None and self.ended.get(name, files.sha256(content)) != files.sha256(content):
            raise corrupt(self.place, f"{name} does not match the digest: it was changed or truncated")
        return content

    @property
    def train(self) -> Train:
        """The Spec of a training; an error for other records."""
        return self._spec_as(Train)

    @property
    def check(self) -> Check:
        """The Spec of a Check; an error for other records."""
        return self._spec_as(Check)

    @property
    def search(self) -> Search:
        """The Spec of a Search; an error for other records."""
        return self._spec_as(Search)

    def _spec_as(self, kind: type[Kind]) -> Kind:
        if not isinstance(self.spec, kind):
            what = f"a {type(self.spec).__name__}, not a {kind.__name__}"
            raise EngramError(f"record {self.id} is {what}; `engram runs show {self.id}` says what it is")
        return self.spec

    @property
    def store(self) -> Any:
        """The memory whose capacity a Search measures."""
        return self.search.model

    @cached_property
    def stale(self) -> bool:
        """Whether a class of the Spec has been revised since: the same Spec would give other numbers now."""
        ours = [found for found in stored_spec.classes(self.spec_json) if "file" not in found]
        return any(found.get("revision") != self._revision(found["class"]) for found in ours)

    def _revision(self, name: Any) -> int:
        known = class_named(name) if isinstance(name, str) else None
        if known is None:
            raise EngramError(
                f"record {self.id}: class {name!r} is unknown here; `engram doctor` prints the version of Engram"
            )
        return known.revision

    def model(self, step: int | None = None) -> Model:
        """The model at a step (the last stored one by default): call it on tokens to get a Trace.

        The weights of a step that is not stored are computed from the last state before it, as the training did.
        """
        spec, steps = self.train, self.snapshot_steps
        if step is None and not steps:
            last = len(self.table) - 1
            raise EngramError(f"record {self.id} has no weights stored; model({last}) computes those of the last step")
        at = steps[-1] if step is None else step
        weights = self.weights(at)
        model = model_at(spec, at, initial_weights(spec), weights)
        return replace(model, origin=f"step {at} of {self.id}")

    def weights(self, step: int) -> Weights:
        """The trained weights at any step: stored, or computed from the last state before it."""
        refuse_other(int, step, "step: must be a whole number")
        return self.snapshot(step) if step in self.snapshot_steps else computed_weights(self, step)

    def encode(self, text: str) -> Int[np.ndarray, " t"]:
        """A text as token ids of this run's task."""
        return text_of.encode(self.train.task, text, self.train.seed)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """Token ids as text."""
        return text_of.decode(self.train.task, tokens, self.train.seed)

    def frame(self) -> Any:
        """All rows by column: a pandas DataFrame where pandas is installed, else a dict of arrays.

        Columns that were not measured at a step are NaN there.
        """
        columns = {"step": np.arange(len(self.table))} | {
            name: self.column(name) for name in self.columns if name != "step"
        }
        return frame_of(columns)

    def memories(self, step: int | None = None) -> list[Stored]:
        """The memories of the model at a step (the last stored one by default)."""
        spec = self.train
        model = self.model(step)
        found = memories_of(spec.model, model.weights, spec.task, spec.seed)
        return [replace(stored, origin=model.origin) for stored in found]

    def snapshot(self, step: int) -> Weights:
        """The trained weights at a stored step."""
        return self.tensors(f"snapshots/{step:06d}.safetensors")

    def tensors(self, name: str) -> Weights:
        content = self.sealed(name)
        try:
            return unseal(content)[0] if self.ended is None else load(content)
        except Damaged as damage:
            raise corrupt(self.place, f"{name} {damage}") from None


def walk(value: Value, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of a Value with its dotted name; Values in tuples and dicts too: model.layers.0.heads, tests.x.K."""
    for name in type(value).model_fields:
        yield from _walk(getattr(value, name), f"{prefix}{name}")


def _walk(item: Any, name: str) -> Iterator[tuple[str, Any]]:
    """A Value by its class and its fields; a tuple or dict that holds Values item by item; all else as it is."""
    inside = dict(enumerate(item)) if isinstance(item, tuple | list) else item
    if isinstance(item, Value):
        yield name, type(item).__name__
        yield from walk(item, f"{name}.")
    elif isinstance(inside, dict) and any(isinstance(part, Value) for part in inside.values()):
        for key, part in inside.items():
            yield from _walk(part, f"{name}.{key}")
    else:
        yield name, item

"""A stored state: where a training stands, with digests of itself and of the rows before it."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engram.models import Weights
from engram.records import files
from engram.records.files import Place, corrupt
from engram.records.sealed import Damaged, seal, unseal
from engram.specs.encode import digest_of
from engram.specs.spec import Spec, Train

NAME = "state.safetensors"


def digest_of_lines(lines: Sequence[bytes]) -> str:
    return files.sha256(b"".join(line + b"\n" for line in lines))


def digests_before(lines: Sequence[bytes], steps: Iterable[int]) -> dict[int, str]:
    """For each step the digest of the lines before it."""
    total, read, found = hashlib.sha256(), 0, dict[int, str]()
    for step in sorted(steps):
        for line in lines[read:step]:
            total.update(line + b"\n")
        read, found[step] = max(read, step), total.hexdigest()
    return found


def family(spec: Spec) -> str:
    """What a run and its forks have in common."""
    return digest_of(spec.without_events if isinstance(spec, Train) else spec)


def refuse_stranger(folder: Place, name: str, about: dict[str, str], of: str, rows: str) -> None:
    """Whole weights may still be those of another run. What older versions wrote does not say of which."""
    if (about.get("of") or of, about.get("rows") or rows) != (of, rows):
        raise corrupt(folder, f"{name} and rows.jsonl do not belong together: one of them was changed")


@dataclass(frozen=True)
class State:
    """What a run needs to go on before step `step`; `rows` and `timing` are digests of their lines before it."""

    step: int = 0
    events: int = 0  # that have happened: a fork may have one more at this very step
    rows: str = digest_of_lines([])
    timing: str = digest_of_lines([])
    tensors: Weights = field(default_factory=dict)
    of: str = ""  # the family of the run; states of older versions do not say it

    def to_bytes(self) -> bytes:
        numbers = {"step": str(self.step), "events": str(self.events)}
        return seal(self.tensors, numbers | {"rows": self.rows, "timing": self.timing, "of": self.of})

    @classmethod
    def read(cls, folder: Place, name: str = NAME) -> "State":
        try:
            tensors, about = unseal(files.read(folder, name))
            numbers = int(about["step"]), int(about["events"])
            return cls(*numbers, about["rows"], about["timing"], tensors, about.get("of", ""))
        except Damaged as damage:
            raise corrupt(folder, f"{name} {damage}") from None
        except (KeyError, ValueError):
            raise corrupt(folder, f"{name} is not the state of a run") from None

    def refuse_other_rows(self, folder: Place, lines: Sequence[bytes]) -> None:
        """The rows before the state must be those that were there when it was written."""
        before = lines[: self.step]
        if len(before) < self.step:
            raise corrupt(folder, f"rows.jsonl ends at row {len(before)} but the state is of step {self.step}")
        if digest_of_lines(before) != self.rows:
            raise corrupt(folder, "rows.jsonl does not match its state: it was changed")

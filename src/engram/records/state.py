"""A stored state: where a training stands, with digests of itself and of the rows before it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from engram.models import Weights
from engram.records import files
from engram.records.files import Place, corrupt
from engram.records.sealed import Damaged, seal, unseal

NAME = "state.safetensors"


def digest_of_lines(lines: Sequence[bytes]) -> str:
    return files.sha256(b"".join(line + b"\n" for line in lines))


@dataclass(frozen=True)
class State:
    """What a run needs to go on before step `step`; `rows` and `timing` are digests of their lines before it."""

    step: int = 0
    events: int = 0  # that have happened: a fork may have one more at this very step
    rows: str = digest_of_lines([])
    timing: str = digest_of_lines([])
    tensors: Weights = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        numbers = {"step": str(self.step), "events": str(self.events)}
        return seal(self.tensors, numbers | {"rows": self.rows, "timing": self.timing})

    @classmethod
    def read(cls, folder: Place, name: str = NAME) -> "State":
        try:
            tensors, about = unseal(files.read(folder, name))
            return cls(int(about["step"]), int(about["events"]), about["rows"], about["timing"], tensors)
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

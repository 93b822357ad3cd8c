"""What an experiment that was run gives back."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engram.claims.experiment import Experiment, Scale
from engram.display import Displayed
from engram.records import Record


@dataclass(frozen=True, repr=False)
class Result(Displayed):
    """The outcome of an experiment; `claims` are the dicts that --json prints."""

    experiment: Experiment
    scale: Scale
    seconds: float
    claims: list[dict[str, Any]]
    records: list[Record]
    figures: list[Path]
    table: list[dict[str, Any]] = field(default_factory=list)  # numbers to read one by one, if the experiment has any
    notes: list[str] = field(default_factory=list)  # why claims or figure of the experiment do not apply to these runs

    def __repr__(self) -> str:
        verdicts = "".join(f"\n  {claim['id']}: {claim['verdict']}" for claim in self.claims)
        counts = f".records {len(self.records)}, .figures {len(self.figures)}, .claims {len(self.claims)}"
        return f"<Result of {self.experiment.name}, {self.scale} scale: {counts}{verdicts}>"

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment.name,
            "scale": self.scale,
            "seconds": round(self.seconds, 1),
            "claims": self.claims,
            "records": [str(record.folder) for record in self.records],
            "figures": [str(path) for path in self.figures],
        } | {name: value for name, value in (("table", self.table), ("notes", self.notes)) if value}

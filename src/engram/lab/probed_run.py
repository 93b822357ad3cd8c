"""A run of ours under the questions that models of others get: the same probes, at any stored step."""

from pathlib import Path

from engram.lab.probed_model import ProbedModel
from engram.lab.watched_run import WatchedRun
from engram.models import Weights, network_of
from engram.models.network import Provenance
from engram.probing import Subject
from engram.tasks.batch import marks_of


class ProbedRun(ProbedModel):
    """Looks at the folder of a run with eyes of its own: another thread draws its pictures."""

    def __init__(self, folder: Path, computed: dict[int, Weights]):
        super().__init__()
        self.run = WatchedRun(folder, computed)

    def stored_step(self, step: int | None) -> int:
        self.run.look()
        return self.run.stored_step(step)

    def base(self, step: int) -> Subject:
        spec = self.run.spec
        network = network_of(self.run.model(step), Provenance(self.run.id, type(spec.model).__name__))
        marks = marks_of(spec.task, spec.seed)
        return Subject(network, None, lambda ids: [marks[i] for i in ids], None)

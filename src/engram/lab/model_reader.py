"""The model of a lab: a thread of its own works for it, so that neither pages nor runs wait."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from engram.errors import EngramError
from engram.lab.model_messages import AskedOfModel, Edit, Truncate, Undo
from engram.lab.model_questions import timed
from engram.lab.probed_model import ProbedModel
from engram.lab.protocol import Cell
from engram.lab.run_reader import RunReader
from engram.lab.watched_model import WatchedModel


class ModelReader(RunReader):
    """Serves pages that look at the model as a RunReader serves those that look at runs."""

    def __init__(self, model: WatchedModel, worker: ThreadPoolExecutor):
        super().__init__(Path())  # it lists no runs
        self.model = model
        self.worker = worker
        self._begun = False

    def run(self, name: str) -> Any:
        if name != self.model.id:
            raise EngramError("minus_run: a model of others is compared with its own revisions only")
        return self.model

    def seen(self, name: str, since: float | None = None) -> Any:
        """The first look begins the curve over the revisions."""
        if not self._begun:
            self._begun = True
            self._next()
        return self.run(name)

    def _next(self) -> None:
        """One revision a job: questions of pages come in between."""
        if len(self.model.table) < len(self.model.steps):
            with suppress(RuntimeError):  # the lab is closing
                self.worker.submit(self._score)

    def _score(self) -> None:
        step = self.model.steps[len(self.model.table)]
        try:
            self.model.rows.add(step, self.model.scores(step, edited=False))
        except EngramError as error:
            self.model.rows.skip(step, str(error))
        self._next()

    def cell(self, asked: Cell) -> dict[str, Any]:
        raise EngramError("cell: a model of others has no memories whose entries could be asked for")

    def asked(self, question: AskedOfModel) -> dict[str, Any]:
        return answered(self.model, question)


def answered(model: ProbedModel, question: AskedOfModel) -> dict[str, Any]:
    """The answer of a panel, with the time that it took and the edits that are in force."""
    step = model.stored_step(question.step)
    match question:
        case Truncate():
            found = timed(lambda: model.truncate(step, question))
        case Edit():
            found = timed(lambda: model.edit(step, question))
        case Undo():
            found = timed(lambda: model.undo(question.edit))
        case _:
            found = timed(lambda: getattr(model, question.t)(step))
    return {"t": question.t, "id": question.id, "step": step, "edits": model.edits_at(step)} | found

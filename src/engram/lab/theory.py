"""What theory says of a run, beside what was measured: sizes, levels, the first step, stages of a linear head.

Sizes are those of `engram predict`. Where theory says nothing, that is said.
"""

import time
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

from engram.calculator.predict import predict
from engram.errors import EngramError
from engram.lab import first_step
from engram.lab.pictures import levels
from engram.lab.run_reader import RunReader
from engram.lab.theory_messages import Levels, Predict, Theory
from engram.lab.watched_run import Cache, WatchedRun
from engram.learning import SGD
from engram.models.factual import Factual, LinearHead
from engram.models.trace import Weights
from engram.specs import Train
from engram.specs.settings import setting, with_settings
from engram.tasks.facts import Facts, FactTask
from engram.theory.fact_flow import escape_time, relation_rate, subject_rate

MOST_RUNS = 16
Question = dict[str, Any]
NO_TIMES = "Times of stages are known for a linear head on evenly distributed facts under plain SGD, not for this run."
TITLES = {
    "linear": "a trained d×d matrix",
    "hebb": "W = Σ u eᵀ, as it is stored",
    "facts": "a one-layer transformer of this shape",
}
SCOPE = (
    "Capacity laws hold for random embeddings and pairs that are asked for alike. They say what fits, not how long it "
    "takes to learn, and nothing of attention."
)


def sizes_of(spec: Train) -> dict[str, float | None]:
    """What the sliders begin with; None where the run has no such thing."""
    task: Any = spec.task
    return {
        "d": getattr(spec.model, "d", None),
        "store": len(task.book(spec.seed).known) if isinstance(task, FactTask) else task.N,
        "K": getattr(task, "K", None) if setting(spec, "task.K") else None,
        "lr": spec.plan.lr_at(0) or spec.plan.optimiser.lr,
    }


def memories_of(spec: Train, d: int) -> dict[str, Question]:
    """By name what `engram predict` is asked about a model of this width, in the shape of the run's."""
    if isinstance(spec.model, Factual):
        model, grown = spec.model, d / spec.model.d
        shape = {"heads": model.heads, "head_width": max(1, round(model.d_h * grown)), "units": round(model.m * grown)}
        return {"facts": {"memory": "facts", "width": d, **shape}}
    if getattr(spec.model, "d", None) is None or isinstance(spec.task, FactTask):
        return {}
    return {kind: {"memory": kind, "width": d} for kind in ("linear", "hebb")}


def command(question: Question) -> str:
    """The same question on the command line."""
    kind, asked = question["memory"], dict(question)
    del asked["memory"]
    what = "facts" if kind == "facts" else "pairs"
    words = ["engram", "predict", what, *([str(asked.pop(what))] if what in asked else [])]
    words += [] if kind == "facts" else ["--memory", kind]
    return " ".join([*words, *(f"--{name.replace('_', '-')} {value}" for name, value in asked.items())])


def capacity(spec: Train, d: int, store: int) -> list[dict[str, Any]]:
    """For each memory: whether so much fits into width d, what that and twice the width hold, what width it needs."""
    found = []
    for name, question in memories_of(spec, d).items():
        what = "facts" if name == "facts" else "pairs"
        twice = memories_of(spec, 2 * d)[name]
        asked = {
            "fits": question | {what: store},
            "holds": question,
            "twice": twice,
            "needs": {"memory": name, what: store},
        }
        told = {key: predict(**one).to_json() | {"command": command(one)} for key, one in asked.items()}
        found.append({"memory": name, "title": TITLES[name], "stores": what, **told})
    return found


def stages(spec: Train, lr: float) -> list[dict[str, Any]]:
    """Steps at which relations and subjects leave the uniform stage, by the rates λ; nothing where theory has none."""
    task, model = spec.task, spec.model
    if not (isinstance(task, Facts) and isinstance(model, LinearHead) and _is_plain(spec, task)):
        return []
    S, R, D = task.S, task.R, task.D
    rates = {
        "relation": (relation_rate(R, D), sqrt((1 - 1 / R) / D)),
        "subject": (subject_rate(S, R, D), sqrt((1 - 1 / D) / R)),
    }
    return [
        {"part": part, "rate": float(rate), "step": escape_time(rate, share, model.alpha) / lr}
        for part, (rate, share) in rates.items()
        if rate > 0
    ]


def _is_plain(spec: Train, task: Facts) -> bool:
    """Evenly distributed facts, and steps that are gradient flow with time ηs."""
    even = task.facts is None and task.subject_power == task.relation_power == 0 and task.S % task.D == 0
    sgd = spec.plan.optimiser
    plain = isinstance(sgd, SGD) and not (sgd.momentum or sgd.weight_decay or spec.plan.rate or spec.plan.stages)
    return even and task.dictionary == "structured" and plain and not spec.events


class TheoryReader:
    """Answers about the runs of a home: `theory` in the thread of the prober, `predict` in that which draws."""

    def __init__(self, home: Path, computed: Callable[[str], dict[int, Weights]] = lambda run: {}):
        self._reader, self._specs = RunReader(home, computed), RunReader(home)
        self._steps = Cache()

    def answer(self, asked: Theory | Levels) -> dict[str, Any]:
        return self.theory(asked) if isinstance(asked, Theory) else self.levels(asked)

    def theory(self, asked: Theory) -> dict[str, Any]:
        began, run = time.monotonic(), self._reader.seen(asked.run)
        spec = run.spec
        told = {"t": "theory", "id": asked.id, "run": asked.run, "sizes": sizes_of(spec)}
        told |= {"first_step": self._first_step(run), "left": self._left(run), "says_nothing": silence(spec)}
        return told | {"seconds": round(time.monotonic() - began, 3)}

    def _first_step(self, run: WatchedRun) -> dict[str, Any]:
        """Of the weights before step 0 and before step 1, which every run stores."""
        why = first_step.refusal(run.spec)
        if why is None and not {0, 1} <= set(run.stored):
            why = "the weights of steps 0 and 1 are not stored yet"
        if why is not None:
            return {"matrix": first_step.MATRIX, "why": why, "rows": []}
        return self._steps.get_or(run.id, lambda: _first_step_of(run), most=MOST_RUNS)

    def _left(self, run: WatchedRun) -> list[dict[str, Any]]:
        """For each stage that theory has: between which stored steps a logit of this part first exceeded 1."""
        return [one | {"measured": _escaped(run, one["part"])} for one in stages(run.spec, run.spec.plan.optimiser.lr)]

    def predict(self, asked: Predict) -> dict[str, Any]:
        began, spec = time.monotonic(), self._specs.run(asked.run).spec
        own = sizes_of(spec)
        d, store, lr = asked.d or own["d"], asked.store or own["store"], asked.lr or own["lr"]
        told = {"t": "predict", "id": asked.id, "run": asked.run, "own": own, "at": {"d": d, "store": store, "lr": lr}}
        told["capacity"] = [] if d is None or store is None else capacity(spec, int(d), int(store))
        if lr is not None:
            told |= {"stages": stages(spec, lr), "first_step": self._size_of_first_step(asked.run, lr)}
        return told | {"seconds": round(time.monotonic() - began, 3)}

    def _size_of_first_step(self, run: str, lr: float) -> float | None:
        """η‖∇L‖, once the gradient of the run is known (`theory`)."""
        known = self._steps.get(run)
        return None if known is None else lr / known["lr"] * known["rows"][0]["size"]

    def levels(self, asked: Levels) -> dict[str, Any]:
        """Losses of the best predictor with other triggers: seconds, where much has to be drawn."""
        began, spec = time.monotonic(), self._reader.run(asked.run).spec
        told = {"t": "levels", "id": asked.id, "run": asked.run, "K": asked.K}
        told["levels"] = levels(_with_triggers(spec, asked.K))
        return told | {"seconds": round(time.monotonic() - began, 3)}


def _with_triggers(spec: Train, K: int) -> Train:
    if setting(spec, "task.K") is None:
        raise EngramError("K: this run has no triggers")
    return with_settings(spec.without_events, {"task.K": K})


def _first_step_of(run: WatchedRun) -> dict[str, Any]:
    spec, name = run.spec, first_step.MATRIX
    before, after = (run.model(step).weights for step in (0, 1))
    step = (after[name] - before[name]).double()
    found = first_step.gradients(spec, before)
    titles = {"exact": "Lemma 1 on the batch, with the model's own p̂ and attention",
              "uniform": "uniform p̂ and attention, no residual stream"}  # fmt: skip
    rows = [{"name": key, "title": titles[key]} | first_step.compared(spec, g, step) for key, g in found.items()]
    kind, told = type(spec.plan.optimiser).__name__, {"matrix": name, "why": None, "rows": rows}
    sgd = isinstance(spec.plan.optimiser, SGD)
    note = "" if sgd else f"The step was taken by {kind}: its size is not that of a gradient."
    return told | {"taken": float(step.norm()), "lr": spec.plan.lr_at(0), "note": note}


def _escaped(run: WatchedRun, part: str) -> list[int | None] | None:
    """[a, b]: not at the stored step a, and at b the largest w(z) W(a, z) of a token of this kind exceeds 1."""
    task = run.spec.task
    assert isinstance(task, Facts)
    tokens = slice(0, task.S) if part == "subject" else slice(task.S, task.S + task.R)
    before: int | None = None
    for step in run.stored:
        w = run.model(step).weights
        if float((w["w"] * w["W"])[:, tokens].abs().max()) > 1:
            return [before, step]
        before = step
    return None


def silence(spec: Train) -> list[str]:
    """What theory does not say of this run."""
    told = [SCOPE] if memories_of(spec, 64) else ["No capacity law is known for this model."]
    if not stages(spec, 1.0):
        told.append(NO_TIMES)
    if not levels(spec):
        told.append("The losses that a best predictor would reach are not known for this task.")
    return told

"""Controls: for every claim planted alternatives on which it must not agree. One that agrees says nothing: vacuous."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from engram.claims.claim import Claim
from engram.claims.experiment import Experiment, Runs
from engram.claims.planting import Plant, Wrong, as_it_is, exchanged
from engram.errors import EngramError


@dataclass(frozen=True)
class Control:
    """A planted alternative: another world in which the sentence, or a part of it, is false.

    what     the alternative in a few words
    plant    the records of that world, made from those that were measured
    parts    code that is wrong there: the dotted name of a function, and what replaces it
    """

    what: str
    plant: Plant = as_it_is
    parts: Mapping[str, Wrong] = field(default_factory=dict)


Controls = Mapping[str, Sequence[Control]]  # by the id of a claim


@dataclass(frozen=True)
class Tried:
    """A claim on its data and on its planted alternatives."""

    experiment: str
    scale: str
    on_data: Claim
    on_controls: tuple[tuple[Control, Claim], ...]

    @property
    def vacuous(self) -> list[str]:
        """The alternatives on which the claim agrees."""
        return [control.what for control, claim in self.on_controls if claim.verdict == "agrees"]

    @property
    def idle(self) -> list[str]:
        """Measures that agree on the data and on every alternative: whatever is true, they do not decide."""
        worlds = [self.on_data, *(claim for _, claim in self.on_controls)]
        together = zip(*(claim.measures for claim in worlds), strict=True)
        return [same[0].name for same in together if all(measure.verdict == "agrees" for measure in same)]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.on_data.id,
            "experiment": self.experiment,
            "scale": self.scale,
            "verdict": self.on_data.verdict,
            "controls": [_control_json(control, claim) for control, claim in self.on_controls],
            "vacuous": self.vacuous,
            "idle": self.idle,
        }


def _control_json(control: Control, claim: Claim) -> dict[str, Any]:
    measures = [{"name": m.name, "measured": _finite(m.measured), "verdict": m.verdict} for m in claim.measures]
    return {"what": control.what, "verdict": claim.verdict, "measures": measures}


def _finite(value: float) -> float | None:
    """JSON has no NaN: what an alternative leaves without a number is null."""
    return float(value) if isfinite(value) else None


def put_to_the_test(
    experiment: Experiment, runs: Runs, controls: Controls, wanted: tuple[str, ...] = ()
) -> list[Tried]:
    """Claims of an experiment, those that begin with one of the words, or all, beside their controls.

    A claim without a control is an error.
    """
    found = [claim for claim in experiment.claims(runs) if claim.id.startswith(wanted or "")]
    bare = [claim.id for claim in found if not controls.get(claim.id)]
    if bare:
        raise EngramError(f"{experiment.name}: no control for {', '.join(bare)}; name one in CONTROLS of its file")
    return [
        Tried(
            experiment.name,
            runs.scale,
            claim,
            tuple((control, on_control(experiment, claim, runs, control)) for control in controls[claim.id]),
        )
        for claim in found
    ]


def on_control(experiment: Experiment, claim: Claim, runs: Runs, control: Control) -> Claim:
    """The claim in the world of a control."""
    with exchanged(control.parts):
        planted = {other.id: other for other in experiment.claims(control.plant(runs))}[claim.id]
    if len(planted.measures) != len(claim.measures):
        raise EngramError(f"{claim.id}: the control {control.what!r} changes how many measures there are")
    return planted

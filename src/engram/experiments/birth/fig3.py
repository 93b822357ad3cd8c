"""Fig. 3: freezing layers until step 300 shows which memory must be learned before which.

The simplified model without W_F, loss on in-context positions only, K=5 random triggers, uniform outputs, lr 0.2. Four
schedules freeze W_O2, both key matrices, W_K2 or W_K1 until step 300; the fifth trains everything from the start.

    engram run birth.fig3 --seeds 8
"""

from math import nan

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds
from engram.claims.readings import highest, reached, value_at
from engram.experiments.birth import SIZES, in_context, log_ratio, recalled

SOURCE = "Birth of a Transformer, Fig. 3"
CLAIMS = {
    "birth.output-must-come-first": "W_O2 can and must be learned before the key matrices, but does not suffice.",
    "birth.second-layer-before-first": "It is easier to learn W_K2 while W_K1 is frozen than the reverse.",
    "birth.joint-is-faster": "Learning all memories together is faster than any of the four schedules.",
    "birth.joint-from-thaw": "It is also faster than each of them counted from its unfreezing.",
}
WHY = {
    "birth.joint-from-thaw": (
        "When its key matrices are unfrozen, a schedule that has already learned W_O2 has less left to learn than "
        "joint training has at step 0, so counted from the unfreezing it reaches accuracy 0.8 sooner. Joint training "
        "is faster only than the schedule that froze W_O2 and has nothing to start from. Control: readings of the same "
        "runs agree that W_O2 must come first (birth.output-must-come-first)."
    ),
}
SCHEDULES = {
    "joint": (),
    "W_O2 frozen": ("W_O2",),
    "W_K1, W_K2 frozen": ("W_K1", "W_K2"),
    "W_K2 frozen": ("W_K2",),
    "W_K1 frozen": ("W_K1",),
}
SEEDS = {"quick": 8}  # five leave the recall of W_O2, close to one, undecided
STEPS = {"smoke": (12, 6), "quick": (1000, 300), "paper": (1000, 300)}  # all, and frozen until
EARLY = "recall.W_K1.t<64"


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    steps, until = STEPS[scale]
    thaws = {name: dict.fromkeys(frozen, until) for name, frozen in SCHEDULES.items()}
    return {
        name: [in_context(SIZES[scale], seed, 0.2, steps, frozen_until=thaw) for seed in seeds]
        for name, thaw in thaws.items()
    }


def claims(runs: Runs) -> Claimed:
    until = max(runs["W_O2 frozen"][0].train.plan.frozen_until.values(), default=0)

    def at_thaw(name: str, column: str) -> list[float]:
        return [value_at(record, column, until) for record in runs[name]]

    alone = [highest(record, "accuracy.in_context", until) for record in runs["W_K1, W_K2 frozen"]]
    learned = at_thaw("W_K1, W_K2 frozen", "recall.W_O2")
    measures = [
        *(
            recalled(f"W_O2 frozen: {c} at step {until}", runs["joint"], c, at_thaw("W_O2 frozen", c), high=0.1)
            for c in ("recall.W_K2", EARLY)
        ),
        recalled(f"W_K1, W_K2 frozen: recall.W_O2 at step {until}", runs["joint"], "recall.W_O2", learned, low=0.9),
        Measure.over_seeds(f"W_K1, W_K2 frozen: highest in-context accuracy up to step {until}", alone, high=0.5),
    ]
    yield "birth.output-must-come-first", measures
    second, first = at_thaw("W_K1 frozen", "recall.W_K2"), at_thaw("W_K2 frozen", EARLY)
    name = f"recall of W_K2 (W_K1 frozen) minus W_K1 t<64 (W_K2 frozen) at step {until}"
    yield "birth.second-layer-before-first", [Measure.difference(name, second, first)]
    frozen = [name for name in SCHEDULES if name != "joint"]
    yield "birth.joint-is-faster", [_slower(name, runs, 0) for name in frozen]
    yield "birth.joint-from-thaw", [_slower(name, runs, until) for name in frozen]


def _slower(name: str, runs: Runs, since: int) -> Measure:
    """Log of a schedule's steps to accuracy 0.8, counted from a step on, over those of joint training."""
    frozen, joint = ([reached(r, "accuracy.in_context", 0.8) for r in runs[kind]] for kind in (name, "joint"))
    name = f"log of steps to accuracy 0.8: {name}, from step {since}, over joint"
    return log_ratio(name, [step - since if step > since else nan for step in frozen], joint)


def figure(runs: Runs) -> Figure:
    from engram.show.birth import schedules

    return schedules(runs)

"""Fig. 5: the memories behind Fig. 4 left, to see which of them is slow.

The same trainings as birth.fig4-left. The paper's guess: few or rare triggers slow down W_O2, because fewer output
tokens are seen; random triggers are "more related to" slow key matrices, because more triggers must be stored. So for
K=5 the slowdown of the keys is set beside that of W_O2. (A single fixed trigger, the space, is asked far more often
than a random one, which slows down all memories: for K=1 the claim is only that the keys are slower.) That keys are
learned more slowly is asked first by itself, then beside W_O2.

    engram run birth.fig5 --seeds 6
"""

from math import log

from engram.claims import Claimed, Figure, Measure, Runs
from engram.claims.readings import one_step, reached
from engram.experiments.birth import fig4_left, log_ratio

TIMES = "the runs of birth.fig4-left"
SOURCE = "Birth of a Transformer, Fig. 5"
CLAIMS = {
    "birth.slow-output-memory": "With few or rare triggers it is the output memory W_O2 that is learned slowly.",
    "birth.slow-key-memory": "With random triggers it is more the key memories that are learned slowly.",
}
SEEDS, specs = fig4_left.SEEDS, fig4_left.trainings
OUTPUT, KEY = "recall.W_O2", "recall.W_K1.t<64"
LEVEL = 0.2  # of recall: one that every law of data reaches
FEW_OR_RARE = (("K=1 random", "K=5 random"), ("K=5 fixed, ranks 6–10", "K=5 fixed, ranks 1–5"))
RANDOM, RANDOM_ONE = ("K=5 random", "K=5 fixed, ranks 1–5"), ("K=1 random", "K=1 fixed, most frequent")


def claims(runs: Runs) -> Claimed:
    def steps(kind: str, column: str) -> list[float]:
        return [reached(record, column, LEVEL, width=1) for record in runs[kind]]

    def slowed(slow: str, fast: str, column: str) -> list[float]:
        a, b = steps(slow, column), steps(fast, column)
        return [log(x / y) for x, y in zip(a, b, strict=True)]

    def alone(slow: str, fast: str, column: str) -> Measure:
        name = f"log of steps to {column} {LEVEL}: {slow} over {fast}"
        return log_ratio(name, steps(slow, column), steps(fast, column))

    def beside(slow: str, fast: str, column: str, other: str) -> Measure:
        name = f"log of slowdown, {column} minus {other}: {slow} over {fast}"
        least = one_step(*(steps(kind, c) for kind in (slow, fast) for c in (column, other)))
        return Measure.difference(name, slowed(slow, fast, column), slowed(slow, fast, other), resolution=least)

    more = [beside(*pair, OUTPUT, KEY) for pair in FEW_OR_RARE]
    yield "birth.slow-output-memory", [*(alone(*pair, OUTPUT) for pair in FEW_OR_RARE), *more]
    yield "birth.slow-key-memory", [alone(*RANDOM, KEY), beside(*RANDOM, KEY, OUTPUT), alone(*RANDOM_ONE, KEY)]


def figure(runs: Runs) -> Figure:
    from engram.show.birth import memories_by_kind

    return memories_by_kind(runs, "Fig. 5: memories by data")

"""Fig. 4 left: global statistics are learned before the induction head, and the data decide how much later that comes.

The simplified model with W_F, loss on all tokens, uniform outputs, lr 1. To the paper's four data laws a fifth is
added: K=5 fixed to the five most frequent tokens, so that the rarity of triggers is not confounded with their number.
Random triggers are also rarer than the most frequent ones. Of 128 positions, fixed triggers of ranks 6–10 are asked at
22.7 on average, random triggers at 26.4, and ranks 1–5 at 34.6 (16 000 sequences). Two claims of our own compare kinds
that differ in one thing only: random and fixed triggers that are asked about equally often, and one or five of the most
frequent tokens.

    engram run birth.fig4-left --seeds 6
"""

from engram.claims import Claimed, Figure, Labelled, Runs, Scale, Seeds, checks
from engram.claims.readings import fallen
from engram.experiments.birth import SIZES, all_tokens, log_ratio
from engram.tasks import Bigram

SOURCE = "Birth of a Transformer, Fig. 4 (left)"
FIRST, SLOWS = "birth.global-before-in-context", "birth.data-slows"
MATCHED, FEWER = "birth.random-slows-at-equal-rarity", "birth.fewer-fixed-slows"
CLAIMS = {
    FIRST: "Global bigram statistics are learned more quickly than the induction head.",
    SLOWS: "Fewer triggers, rarer fixed triggers and random triggers slow down learning in context.",
    MATCHED: "Random triggers are slower than fixed ones that are asked as often in a sequence.",
    FEWER: "With fixed triggers too, a single one is learned more slowly than five.",
}
WHY = {
    MATCHED: (
        "What looks like an effect of randomness is one of rarity: random triggers are slower than the five most "
        "frequent tokens, but they are also asked less often. W_O2 must see many outputs, and rare fixed triggers "
        "fill it most slowly (birth.slow-output-memory). The match is not exact: random triggers are asked at 26.4 of "
        "128 positions, ranks 6–10 at 22.7; if the steps went inversely with the questions, this would account for "
        "−0.15 of the log ratio, and the whole interval lies below that. Control: the same reading agrees that fewer "
        "random triggers and rarer fixed ones are slower (birth.data-slows)."
    ),
    FEWER: (
        "The single fixed trigger is the space, the most frequent token. It is asked at 18.9 of 128 positions, the "
        "five most frequent tokens together at 34.6, so that it is asked 2.7 times as often as one of the five, and "
        "W_K2 needs one row instead of five. Whether these two are the cause has not been tested separately. Control: "
        "the same reading finds the slowdown where a single trigger is also a rare one, at 7.4 positions (K=1 random "
        "in birth.data-slows)."
    ),
}
SEEDS = {"quick": 6}  # ratios close to one differ from seed to seed
OWN = {MATCHED: ("K=5 random", "K=5 fixed, ranks 6–10"), FEWER: ("K=1 fixed, most frequent", "K=5 fixed, ranks 1–5")}
HALF = "log of steps to half of the first loss in context"
DATA = {
    "K=1 fixed, most frequent": {"K": 1, "triggers": "fixed"},
    "K=5 fixed, ranks 6–10": {"K": 5, "triggers": "fixed", "offset": 5},
    "K=1 random": {"K": 1},
    "K=5 random": {"K": 5},
    "K=5 fixed, ranks 1–5": {"K": 5, "triggers": "fixed"},
}
SLOWER = (  # the slower, what it is slower than, and why
    ("K=1 random", "K=5 random", "smaller K"),
    ("K=5 fixed, ranks 6–10", "K=5 fixed, ranks 1–5", "rarer fixed triggers"),
    ("K=5 random", "K=5 fixed, ranks 1–5", "random triggers"),
    ("K=1 random", "K=1 fixed, most frequent", "random triggers, K=1"),
)


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """The floor, the least global loss of a data law, belongs to the task and not to a seed."""
    sizes = {name: {"T": SIZES[scale][0], "triggers": "random"} | fields for name, fields in DATA.items()}
    floors = {("floor", name): checks("bigram.floor", [0], 1000, **size) for name, size in sizes.items()}
    return {**trainings(scale, seeds), **floors}


def trainings(scale: Scale, seeds: Seeds) -> Labelled:
    tasks = {name: Bigram(**fields, T=SIZES[scale][0]) for name, fields in DATA.items()}  # type: ignore[arg-type]
    return {name: [all_tokens(scale, seed, task) for seed in seeds] for name, task in tasks.items()}


def claims(runs: Runs) -> Claimed:
    floors = floors_of(runs)
    halves = {name: [fallen(r, "loss.in_context", 0.5, 0.0) for r in runs[name]] for name in DATA}
    drops = {name: [fallen(r, "loss.global", 0.8, floors[name]) for r in runs[name]] for name in DATA}
    drop = "over 80 % of the global drop"
    yield FIRST, [log_ratio(f"{name}: {HALF} {drop}", halves[name], drops[name]) for name in DATA]
    yield SLOWS, [log_ratio(f"{why}: {HALF}, {a} over {b}", halves[a], halves[b]) for a, b, why in SLOWER]
    for id, (a, b) in OWN.items():
        yield id, [log_ratio(f"{HALF}, {a} over {b}", halves[a], halves[b])]


def floors_of(runs: Runs) -> dict[str, float]:
    """The floor of the global loss under each data law."""
    return {name: runs["floor", name][0].rows[0]["floor"] for name in DATA}


def figure(runs: Runs) -> Figure:
    from engram.show.birth import losses_by_data

    return losses_by_data({name: runs[name] for name in DATA}, floors_of(runs))

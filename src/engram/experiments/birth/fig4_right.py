"""Fig. 4 right: memories of all layers trained together: W_O2 and W_F compete, and the model chooses between them.

The simplified model with W_F, loss on all tokens, K=3 random triggers, uniform outputs, lr 1: the uniform trainings of
birth.fig4-center. W_F reads what the induction head wrote, so it takes over part of W_O2's work and both leave the
estimates that the probes look for. At the end `attribution` says where right answers come from, and `preference` which
of the two the model follows (engram.probes.attribution). The paper says of the latter: the induction head, unless its
output agrees with one of the top predictions of the global bigram, "in which case it tends to prefer those".

    engram run birth.fig4-right --seeds 6
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds
from engram.claims.readings import mean_between
from engram.experiments.birth import three_triggers

SOURCE = "Birth of a Transformer, Fig. 4 (right) and section 3"
CLAIMS = {
    "birth.competition": "W_O2 and W_F eventually compete: both deviate from the natural estimates late in training.",
    "birth.bigram-memory-kl": "The KL of the bigram memory W_F falls from 2.2 to 1.2 within 500 steps, as published.",
    "birth.preference": "The model prefers the induction head, unless its token is a top one of the bigram.",
}
WHY = {
    "birth.bigram-memory-kl": (
        "Only at quick sizes (T = 128, batch 128), where the KL falls to 0.85 and stays at 0.95. It depends on them: "
        "at the published T = 256 and batch 512 it falls to 1.04 and stays at 1.19 (seed 0), as on the slide. Control: "
        "it starts at 2.32, where the slide has 2.2 and a uniform prediction 2.27."
    ),
    "birth.preference": (
        "The first half of the sentence agrees; the second, read literally, does not. Where the head attends to a "
        "token that is not the bigram's favourite, the model predicts this token in half of the cases, whether it is "
        "likely under the bigram (0.51) or not (0.50). The favourite is predicted a little more often where the "
        "head's token is likely (0.39 against 0.33), but still less often than the head's token. Control: on an "
        "example worked out by hand and on planted weights the probe reports what was planted, and on random weights "
        "it reports chance (tests/test_edges.py)."
    ),
}
SEEDS = {"quick": 6}  # rates differ from seed to seed
PLACES = {"unlikely": "none of the three likeliest under π_b", "likely": "second or third under π_b"}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {"uniform": [three_triggers(scale, seed, "uniform") for seed in seeds]}


def claims(runs: Runs) -> Claimed:
    records = runs["uniform"]
    recall, kl = ([mean_between(r, column, 0.3, 0.5) for r in records] for column in ("recall.W_O2", "kl.W_F"))
    late_recall, late_kl = ([mean_between(r, column, 0.9, 1) for r in records] for column in ("recall.W_O2", "kl.W_F"))
    measures = [
        Measure.difference("recall of W_O2 lost: 30–50 % of the steps minus last 10 %", recall, late_recall),
        Measure.difference("KL of W_F grown (nats): last 10 % of the steps minus 30–50 %", late_kl, kl),
    ]
    yield "birth.competition", measures
    yield "birth.bigram-memory-kl", [*_falls(records)]
    yield "birth.preference", [_believes(records, place) for place in PLACES]


def _falls(records: Records) -> Measures:
    """Where the probe starts, and the lowest that it reaches in the published number of steps."""
    curves = [record.curve("kl.W_F") for record in records]
    yield Measure.over_seeds("KL of W_F at the start (nats)", [float(kl[0]) for _, kl in curves], 2.0, 2.4)
    lowest = [float(kl[steps <= 500].min()) for steps, kl in curves]
    yield Measure.over_seeds("lowest KL of W_F up to step 500 (nats)", lowest, 1.0, 1.4)


def _believes(records: Records, place: str) -> Measure:
    """How much more often the model follows the one that the paper says it follows."""
    head, bigram = ([r.last(f"preference.{place}.{whom}") for r in records] for whom in ("follows", "bigram"))
    whom, more, less = ("the head", head, bigram) if place == "unlikely" else ("the bigram's favourite", bigram, head)
    other = "the favourite" if place == "unlikely" else "the head"
    return Measure.difference(f"head's token {PLACES[place]}: predicts {whom} minus {other}", more, less)


def figure(runs: Runs) -> Figure:
    from engram.show.birth import probes_and_shares

    return probes_and_shares(runs["uniform"])

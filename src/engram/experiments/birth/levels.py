"""What the bigram task allows: entropies of the text, and the floor of the global loss with random triggers.

A model that knows π_b exactly still loses Σ_i ν_i H(π_b(·|i)) / Σ_i ν_i on global positions, where ν_i counts the
visits of token i while it is no trigger. This floor depends on the task: it is not the text's bigram entropy.

    engram run birth.levels --seeds 5
"""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.records import Record
from engram.specs import Check

TIMES = "quick 10 s a seed, paper 20 s a seed on 2 cores"
SOURCE = "the task of Birth of a Transformer, section 3; the levels are computed here"
CLAIMS = {
    "birth.levels": "The text has unigram entropy 3.3128 and bigram entropy 2.4526 nats, and 1403 different bigrams.",
    "birth.floor": "With random triggers the floor of the global loss lies below the text's bigram entropy.",
}
TEXT = Check(law="bigram.text_levels")
LEVELS = {"entropy.unigram": (3.3128, 5e-5), "entropy.bigram": (2.4526, 5e-5), "bigrams": (1403, 0.5)}
SEQUENCES = {"smoke": 8, "quick": 500, "paper": 2000}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check]:
    floors = [(seed, K) for seed in seeds for K in (1, 3, 5)]
    laws = [Check(law="bigram.floor_levels", sizes={"K": K}, draws=SEQUENCES[scale], seed=seed) for seed, K in floors]
    return [TEXT, *laws]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    text, floors = split(records)
    exact = [Measure.exact(f"{name} minus {v}", text[name] - v, error) for name, (v, error) in LEVELS.items()]
    yield Claim("birth.levels", CLAIMS["birth.levels"], SOURCE, tuple(exact))
    measures = []
    for K, rows in floors.items():
        gaps, below = [r["sampled"] - r["floor"] for r in rows], [text["entropy.bigram"] - r["floor"] for r in rows]
        measures.append(Measure.over_seeds(f"K={K}: sampled sequences minus occupancies", gaps, low=-0.03, high=0.03))
        measures.append(Measure.over_seeds(f"K={K}: bigram entropy minus floor", below, low=0))
    yield Claim("birth.floor", CLAIMS["birth.floor"], SOURCE, tuple(measures))


def figure(records: Sequence[Record]) -> Any:
    from engram.show.plots import levels_by_size

    text, floors = split(records)
    series = {name: {K: [row[name] for row in rows] for K, rows in floors.items()} for name in ("floor", "sampled")}
    return levels_by_size(series, {"bigram entropy of the text": text["entropy.bigram"]}, "triggers K", "nats")


def split(records: Sequence[Record]) -> tuple[dict[str, float], dict[int, list[dict[str, float]]]]:
    """The row of the text, and the rows of the floors by K."""
    by_K: dict[int, list[dict[str, float]]] = {}
    for record in records[1:]:
        by_K.setdefault(record.check.sizes["K"], []).append(record.rows[0])
    return records[0].rows[0], by_K

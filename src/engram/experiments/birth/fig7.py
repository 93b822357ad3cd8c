"""Fig. 7: the trained memories, association by association: what is seen more often is stored more strongly.

The uniform trainings of birth.fig4-center at their end. Strength is the score of the right answer, the diagonal of
each map, minus what the first weights gave it by chance.

    engram run birth.fig7 --seeds 6
"""

from engram.claims import Figure, Measure, Measures, Runs
from engram.experiments.birth.fig4_right import SEEDS, specs

__all__ = ["CLAIMS", "SEEDS", "SOURCE", "TIMES", "WHY", "claims", "figure", "specs"]

TIMES = "the runs of birth.fig4-right"
SOURCE = "Birth of a Transformer, Fig. 7"
CLAIMS = {
    "birth.memory-diagonals": "W_K2 is weaker for rare triggers, W_K1 for late positions; W_O2 is roughly uniform."
}
WHY = {
    "birth.memory-diagonals": (
        "W_O2 is not roughly uniform at this scale: the coefficient of variation of its diagonal is about 0.7, "
        "not far below that of the key memories, although outputs are drawn uniformly. The paper shows one "
        "picture and says 'seems'. Control: in the same runs strength in W_K2 follows frequency and strength in "
        "W_K1 falls with position, as the same sentence says."
    ),
}


def claims(runs: Runs) -> Measures:
    def read(name: str) -> list[float]:
        return [record.last(f"diagonal.{name}") for record in runs["uniform"]]

    yield Measure.over_seeds("rank correlation of strength in W_K2 with frequency", read("W_K2.frequency"), low=0)
    yield Measure.over_seeds("rank correlation of strength in W_K1 with position t", read("W_K1.position"), high=0)
    yield Measure.over_seeds("coefficient of variation of strength in W_O2", read("W_O2.variation"), high=0.5)


def figure(runs: Runs) -> Figure:
    from engram.show.memories import strengths_and_maps

    return strengths_and_maps(runs["uniform"])

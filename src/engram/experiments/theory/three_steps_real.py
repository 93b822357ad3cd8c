"""How far three steps carry on the real bigram task: real bigrams, five triggers, random embeddings, finite samples.

One gradient step on W_O2, then on W_K2, then on W_K1 of the simplified model (unit scale, no W_F), each on the same n
sequences and at every in-context position; matrices are zero before their step. Nothing of Theorem 3's ideals is left:
queries, keys, values and logits read the whole residual stream. The paper does not say that it works here; the sentence
is ours. Control: the theorem's own data and architecture, with random embeddings of the same width and as many
sequences.

    engram run theory.three-steps-real --seeds 5
"""

from collections.abc import Mapping

from engram.claims import Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.claims.readings import counted, least_share
from engram.experiments.theory.three_steps_finite import ASKED, N, T
from engram.laws.orders import MEMORIES
from engram.tasks import Bigram

TIMES = "quick 2 min a seed, paper 20 min a seed on 2 cores"

SOURCE = "Birth of a Transformer, Theorem 3 (outside its setting)"
CLAIMS = {
    "theory.three-steps-real": "On the real bigram task, too, three steps write all memories of the induction head.",
}
WHY = {
    "theory.three-steps-real": (
        "The sentence is ours; the theorem does not promise it. In the whole residual stream W_K1 has a gradient at "
        "zero even without W_O2 and W_K2, because what layer 1 writes is also read by the logits and as a value, and "
        "random embeddings interfere: with orthonormal ones the same estimate recalls all of W_O2. A single trigger "
        "instead of five does not help. Control: on the theorem's own data and architecture, with random embeddings "
        "of the same width and as many sequences, all three memories are recalled."
    ),
}
WIDTHS = {"smoke": (16, 32), "quick": (128, 512, 1024), "paper": (128, 512, 1024, 2048)}
SAMPLES = {"smoke": (8, 16), "quick": (256, 2048), "paper": (256, 2048, 16384)}
LENGTH = {"smoke": 24, "quick": 128, "paper": 256}
REAL, CONTROL = "learning.real_steps.three_steps", "learning.steps.from_samples"


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    length, d, n = LENGTH[scale], WIDTHS[scale][-1], SAMPLES[scale][-1]
    sizes = {(d, n): {"d": d, "n": n, "T": length} for d in WIDTHS[scale] for n in SAMPLES[scale]}
    real = sizes | {"one trigger": sizes[d, n] | {"K": 1}}  # one departure less
    return {
        **{label: checks(REAL, seeds, **size) for label, size in real.items()},
        "Theorem 3": checks(CONTROL, seeds, N=N, T=T, d=d, n=n),
    }


def claims(runs: Runs) -> Measures:
    d, n = WIDTHS[runs.scale][-1], SAMPLES[runs.scale][-1]
    best = [record.rows[0] for record in runs[d, n]]
    asked = {"W_O2": Bigram().N, "W_K2": Bigram().N, "W_K1": LENGTH[runs.scale] - 1}
    for name in MEMORIES:
        hits = counted([row[f"recall.{name}"] for row in best], asked[name])
        yield Measure.share(f"d={d}, n={n}: recall of {name}", hits, asked[name], low=0.9)
    accuracies = [name for name in best[0] if name.startswith("accuracy.")]
    sharp = max(accuracies, key=lambda name: int(name.rpartition(".")[2]))
    yield Measure.over_seeds(f"d={d}, n={n}: in-context accuracy, sharp keys", [r[sharp] for r in best], low=0.9)
    yield _least(f"d={d}, n={n}, one trigger: least recall of the three", runs["one trigger"], asked)
    yield _least("control, Theorem 3: least recall of the three", runs["Theorem 3"], ASKED)


def _least(name: str, records: Records, asked: Mapping[str, int]) -> Measure:
    """The smallest recall of memories that are asked so many questions."""
    found = [least_share({one: r.rows[0][f"recall.{one}"] for one in asked}, asked) for r in records]
    return Measure.share(name, *zip(*found, strict=True), low=0.9)


def figure(runs: Runs) -> Figure:
    from engram.show.gradient_steps import recall_by_width

    sizes = [(d, n) for d in WIDTHS[runs.scale] for n in SAMPLES[runs.scale]]
    return recall_by_width({size: [record.rows[0] for record in runs[size]] for size in sizes}, MEMORIES)

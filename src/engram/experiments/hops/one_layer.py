"""One layer or two for the induction task: how wide they must be, against the length of strings.

hop_1 on strings of four letters: what came after the last visit of the current letter. Transformers with layer norms
and ReLU layers, one head, trained by Adam. A width suffices if accuracy on unseen strings is above 0.95; the width
needed is the smallest of the widths tried that does, and twice the largest where none does, which is a lower bound. One
layer must say about n/2 bits at one position (engram.theory.hops.one_layer_width); two layers need O(log n).

    engram run hops.one-layer --seeds 5
"""

from math import inf, log2

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds
from engram.learning import Adam, Plan
from engram.models import Layer, Transformer
from engram.specs import Train
from engram.tasks import Hops
from engram.theory.hops import one_layer_width

SOURCE = (
    "Sanford, Hsu and Telgarsky 2024, One-layer transformers fail to solve the induction heads task; talks, slides on "
    "k-hop reasoning"
)
CLAIMS = {
    "hops.one-layer-width": "The width that one layer needs for the induction task grows with the length, that of two "
    "layers does not.",
}
LENGTHS = {"smoke": (4, 6), "quick": (6, 12, 24), "paper": (6, 12, 24, 48)}
WIDTHS = {"smoke": (4, 8), "quick": (8, 16, 32, 64), "paper": (8, 16, 32, 64, 128, 256)}
STEPS = {"smoke": 4, "quick": 1500, "paper": 6000}
BATCH, RATE, SUFFICES = 32, 3e-3, 0.95
DEPTHS = (1, 2)


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By (depth, length, width)."""
    return {
        (depth, length, d): [training(depth, length, d, STEPS[scale], seed) for seed in seeds]
        for depth in DEPTHS
        for length in LENGTHS[scale]
        for d in WIDTHS[scale]
    }


def training(depth: int, length: int, d: int, steps: int, seed: int) -> Train:
    task = Hops(letters=4, length=length, most=1, hops=(1,))
    model = Transformer(d=d, hidden=4 * d, norm="pre", layers=(Layer(feed_forward="mlp"),) * depth)
    plan = Plan(
        optimiser=Adam(lr=RATE),
        steps=steps,
        batch=BATCH,
        trained=model.names,
        loss="all",
        rate=((0, 0.0), (steps // 15 + 1, 1.0), (steps + 1, 0.0)),
        probe_every=steps,
        attention_every=steps,
    )
    return Train(task=task, model=model, plan=plan, seed=seed, tests={"all": task})


def accuracy(records: Records) -> list[float]:
    return [record.last("test.all.accuracy.hop1") for record in records]


def widths(runs: Runs, depth: int, length: int) -> list[float]:
    """For each seed the smallest width that suffices; twice the largest if none does."""
    tried = WIDTHS[runs.scale]
    by_seed = zip(*(accuracy(runs[depth, length, d]) for d in tried), strict=True)
    return [min((d for d, a in zip(tried, of, strict=True) if a > SUFFICES), default=2 * tried[-1]) for of in by_seed]


def claims(runs: Runs) -> Claimed:
    short, *_, long = LENGTHS[runs.scale]
    ends = [(widths(runs, depth, short), widths(runs, depth, long)) for depth in DEPTHS]
    one, two = ([log2(b / a) for a, b in zip(*pair, strict=True)] for pair in ends)
    name = f"doublings of the width from n = {short} to {long}"
    measures = [
        Measure.over_seeds(f"one layer: {name}", one, low=0, resolution=1),
        Measure.difference(f"{name}: one layer minus two", one, two, resolution=1),
        Measure.over_seeds(f"two layers: {name}", two, high=1.5, resolution=1),
    ]
    yield "hops.one-layer-width", measures


def figure(runs: Runs) -> Figure:
    from engram.show.hop_training import needed

    lengths, names = LENGTHS[runs.scale], {1: "one layer", 2: "two layers"}
    most = WIDTHS[runs.scale][-1]
    found = {
        names[depth]: {n: [width if width <= most else inf for width in widths(runs, depth, n)] for n in lengths}
        for depth in DEPTHS
    }
    return needed(
        found,
        "length n",
        f"smallest width with accuracy above {SUFFICES}",
        f"hop_1 (“never”: not with width {most} either)",
        ("one layer cannot do with less, if its numbers have one bit", {n: one_layer_width(n, 1, 1) for n in lengths}),
    )

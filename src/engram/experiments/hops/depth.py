"""Depth and hops: how many hops transformers of L layers learn.

Strings of four letters without equal neighbours; the first token asks for k hops, equally often for each k. Layer
norms, ReLU layers, four heads, AdamW with warm-up, and a learning rate that falls to zero. Errors are shares of unseen
letters whose hop_k is defined and predicted wrongly. Quick: strings of 32 letters, up to 4 hops, L = 2 and 3, d = 64.
Paper: 98 letters, up to 16 hops, L = 2 … 5, d = 128, batch 32, 100,000 steps at 1e-4, as published but for dropout.

    engram run hops.depth --seeds 5
"""

from collections.abc import Iterator

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds
from engram.experiments.hops import DEPTH
from engram.learning import Adam, Plan
from engram.models import Layer, Transformer
from engram.specs import Train
from engram.tasks import Hops
from engram.theory.hops import most_hops

TIMES = "quick 4 min a seed, paper 12 h a seed on 2 cores"
SOURCE = f"{DEPTH}, section 5 and its figures; talks, slides on k-hop reasoning"
CLAIMS = {
    "hops.depth": "One layer more learns more hops: from 2^(L−1) hops on, L layers err more often than L + 1.",
}
DEPTHS = {"smoke": (1, 2), "quick": (2, 3), "paper": (2, 3, 4, 5)}
TASK = {"smoke": (8, 2), "quick": (32, 4), "paper": (98, 16)}  # length, most hops
SIZES = {"smoke": (8, 2, 4), "quick": (64, 4, 32), "paper": (128, 4, 32)}  # d, heads, batch
STEPS = {"smoke": (6, 2), "quick": (6000, 200), "paper": (100_000, 1000)}  # all, and those of the warm-up
RATE = {"smoke": 1e-3, "quick": 1e-3, "paper": 1e-4}
DECAY = 0.01  # AdamW's own


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {depth: [training(scale, depth, seed) for seed in seeds] for depth in DEPTHS[scale]}


def training(scale: Scale, depth: int, seed: int) -> Train:
    (length, most), (d, heads, batch), (steps, warm) = TASK[scale], SIZES[scale], STEPS[scale]
    task = Hops(letters=4, length=length, most=most)
    model = Transformer(d=d, hidden=4 * d, norm="pre", layers=(Layer(heads=heads, feed_forward="mlp"),) * depth)
    plan = Plan(
        optimiser=Adam(lr=RATE[scale], weight_decay=DECAY),
        steps=steps,
        batch=batch,
        trained=model.names,
        loss="all",
        rate=((0, 0.0), (warm, 1.0), (steps + 1, 0.0)),
        probe_every=steps,
        attention_every=max(1, steps // 60),
        at_end=("hop_alignment", "hop_layers"),
    )
    return Train(task=task, model=model, plan=plan, seed=seed, tests={"all": task})


def errors(records: Records, hops: int) -> list[float]:
    """The share of unseen letters that the trained model answers wrongly."""
    return [1 - record.last(f"without.none.hop{hops}") for record in records]


def claims(runs: Runs) -> Claimed:
    yield "hops.depth", list(deeper(runs))


def deeper(runs: Runs) -> Iterator[Measure]:
    """At the first number of hops beyond what L layers reach by doubling, and at the most."""
    _, most = TASK[runs.scale]
    for depth in DEPTHS[runs.scale][:-1]:
        for hops in dict.fromkeys(min(most, hops) for hops in (most_hops(depth) + 1, most)):
            fewer, more = errors(runs[depth], hops), errors(runs[depth + 1], hops)
            yield Measure.difference(f"k = {hops}: error of L = {depth} minus that of L = {depth + 1}", fewer, more)


def figure(runs: Runs) -> Figure:
    from engram.show.hop_training import error_by_depth

    length, most = TASK[runs.scale]
    found = {depth: {k: errors(records, k) for k in range(1, most + 1)} for depth, records in runs.items()}
    return error_by_depth(found, 3 / 4, f"hop_k, strings of {length} letters")

"""Depth and hops: how many hops transformers of L layers learn.

Strings of four letters without equal neighbours; the first token asks for k hops, equally often for each k. Layer
norms, ReLU layers, four heads, AdamW with warm-up, and a learning rate that falls to zero. Errors are shares of unseen
letters whose hop_k is defined and predicted wrongly. Quick: strings of 32 letters, up to 4 hops, L = 2 and 3, d = 64.
Paper: 98 letters, up to 16 hops, L = 2 … 5, d = 128, batch 32, as published, but without dropout and with 12,000 steps
at 1e-3 where 100,000 at 1e-4 were published.

    engram run hops.depth --seeds 5
"""

from collections.abc import Iterator
from statistics import fmean

from engram.claims import Claimed, Figure, Labelled, Measure, Records, Runs, Scale, Seeds
from engram.experiments.hops import DEPTH
from engram.experiments.hops.published import PUBLISHED
from engram.learning import Adam, Plan
from engram.models import Layer, Transformer
from engram.specs import Train
from engram.tasks import Hops
from engram.theory.hops import most_hops

SOURCE = f"{DEPTH}, section 5 and its figures; talks, slides on k-hop reasoning"
CLAIMS = {
    "hops.depth": "One layer more learns more hops: from 2^(L−1) hops on, L layers err more often than L + 1.",
    "hops.doubling-attention-trained": "Models of ours double their pointers: in layer i the best head looks at "
    "find^(2^(i−2)), and in the layer before none does so as much.",
}
DEPTHS = {"smoke": (1, 2), "quick": (2, 3), "paper": (2, 3, 4, 5)}
TASK = {"smoke": (8, 2), "quick": (32, 4), "paper": (98, 16)}  # length, most hops
SIZES = {"smoke": (8, 2, 4), "quick": (64, 4, 32), "paper": (128, 4, 32)}  # d, heads, batch
STEPS = {"smoke": (6, 2), "quick": (6000, 200), "paper": (12_000, 500)}  # all, and those of the warm-up
RATE = {"smoke": 1e-3, "quick": 1e-3, "paper": 1e-3}
GROUPS_EVERY = {"smoke": 1, "quick": 1, "paper": 20}  # the losses and accuracies of 19 groups at every step are 5 MB
DECAY = 0.01  # AdamW's own
ABOVE_CHANCE = 0.25  # an alignment, as in hops.published


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
        groups_every=GROUPS_EVERY[scale],
        at_end=("hop_alignment", "hop_layers", "hop_patches"),
    )
    return Train(task=task, model=model, plan=plan, seed=seed, tests={"all": task})


def errors(records: Records, hops: int) -> list[float]:
    """The share of unseen letters that the trained model answers wrongly."""
    return [1 - record.last(f"without.none.hop{hops}") for record in records]


def claims(runs: Runs) -> Claimed:
    yield "hops.depth", list(deeper(runs))
    yield "hops.doubling-attention-trained", [one for L, records in runs.items() for one in looks(records, L)]


def deeper(runs: Runs) -> Iterator[Measure]:
    """At the first number of hops beyond what L layers reach by doubling, and at the most."""
    _, most = TASK[runs.scale]
    for depth in DEPTHS[runs.scale][:-1]:
        for hops in dict.fromkeys(min(most, hops) for hops in (most_hops(depth) + 1, most)):
            fewer, more = errors(runs[depth], hops), errors(runs[depth + 1], hops)
            yield Measure.difference(f"k = {hops}: error of L = {depth} minus that of L = {depth + 1}", fewer, more)


def best_head(records: Records, layer: int, j: int) -> list[float]:
    """For each seed the largest alignment that a head of this layer has with find^j."""
    heads = records[0].train.model.layers[layer - 1].heads  # type: ignore[attr-defined]
    return [max(r.last(f"alignment.L{layer}H{h}.find{j}") for h in range(1, heads + 1)) for r in records]


def looks(records: Records, L: int) -> Iterator[Measure]:
    """Layer i on find^(2^(i−2)), beside chance and beside the layer before it."""
    for layer in range(2, L + 1):
        j = 2 ** (layer - 2)
        chance, best = [record.last(f"alignment.chance.find{j}") for record in records], best_head(records, layer, j)
        name = f"L = {L}: layer {layer} on find^{j}, its best head minus chance"
        yield Measure.difference(name, best, chance, low=ABOVE_CHANCE)
        if layer > 2:
            before = best_head(records, layer - 1, j)
            yield Measure.difference(f"L = {L}: on find^{j}, layer {layer} minus layer {layer - 1}", best, before)


def looks_by_layer(records: Records, farthest: int) -> list[list[float]]:
    """A row for each layer: how far its best head is aligned with find^1, find^2, …, in the mean over seeds."""
    layers = range(1, len(records[0].train.model.layers) + 1)  # type: ignore[attr-defined]
    return [[fmean(best_head(records, layer, j)) for j in range(1, farthest + 1)] for layer in layers]


def figure(runs: Runs) -> Figure:
    from engram.show.hop_training import errors_and_looks

    length, most = TASK[runs.scale]
    found = {depth: {k: errors(records, k) for k in range(1, most + 1)} for depth, records in runs.items()}
    looks = {depth: looks_by_layer(records, min(most, 8)) for depth, records in runs.items()}
    found_seeds = {record.spec.seed for record in runs.records}
    about = (
        f"hop_k of strings of {length} letters, {STEPS[runs.scale][0]:,} steps of AdamW without dropout, "
        f"{len(found_seeds)} seed{'s' * (len(found_seeds) > 1)}. Framed: "
        "find^(2^(i−2)), at which layer i looks where pointers are doubled."
    )
    return errors_and_looks(found, PUBLISHED if runs.scale == "paper" else {}, looks, about)

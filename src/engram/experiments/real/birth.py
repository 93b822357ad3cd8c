"""A birth on real text: a previous-token head, then an induction head, in a transformer trained from nothing on code.

Three layers of attention with four heads and nothing else, layer norms, rotary positions, d = 128, windows of 256
tokens (a byte-pair code of 1024 pieces) of the sources of a pinned package. Muon on the matrices of the layers, Adam on
embeddings. Heads are scored on random tokens that come twice; the in-context score is the late loss minus the early one
on text that is held out. Settings were chosen on seeds below 100.

    engram birth --text code            one run, watched
    engram run real.birth --seeds 5
"""

from math import nan
from typing import Literal

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds
from engram.experiments.birth import log_ratio
from engram.learning import Adam, Muon, Plan
from engram.models import Layer, Transformer
from engram.probes.copying import Conflict, Copying, TextHeads
from engram.records import Record
from engram.specs import Train
from engram.tasks.sources import Folder
from engram.tasks.windows import Windows

SOURCE = "own; the order is that of Birth of a Transformer, section 5, on real text"
CLAIMS = {
    "real.birth": "On code a previous-token head and then an induction head are born, after 1 to 6 million tokens.",
    "real.birth-context": "With them the context becomes worth something: late tokens are predicted better than early "
    "ones, and what comes twice better the second time.",
}
LAB = (
    "Birth on real text",
    "Ablate the head of layer 2 that looks back: another takes its place, and births come late.",
)
SIZES = {"smoke": (16, 8, 2, 4), "quick": (256, 128, 4, 16), "paper": (256, 128, 4, 16)}  # T, d, heads, batch
STEPS = {"smoke": 8, "quick": 1500, "paper": 1500}
EVERY = {"smoke": (2, 4), "quick": (10, 50), "paper": (10, 50)}  # steps between looks at heads, and at text
MUON = Muon(lr=0.03, rest=Adam(lr=0.005, betas=(0.9, 0.95)))
BORN = {"previous": 0.5, "induction": 0.25}  # about half of what the best heads of tuning seeds reach
FIRST, LAST, MILLION = 1.0, 6.0, 1e6  # tokens
THREE = "three layers"


def training(
    scale: Scale,
    seed: int,
    *,
    corpus: Literal["code"] | Folder = "code",
    depth: int = 3,
    optimiser: Muon | Adam = MUON,
    positions: Literal["embedded", "rotary"] = "rotary",
    feed_forward: Literal["none", "mlp"] = "none",
) -> Train:
    """A transformer from nothing on windows of a real text: layer norms, small embeddings, everything trained."""
    (T, d, heads, batch), (heads_every, text_every) = SIZES[scale], EVERY[scale]
    layers = (Layer(heads=heads, feed_forward=feed_forward),) * depth
    model = Transformer(
        d=d, hidden=4 * d, layers=layers, norm="pre", scale="small", positions=positions, biases=("Q", "K", "V")
    )
    last = (Conflict(every=text_every),) if feed_forward == "mlp" else ()
    plan = Plan(
        optimiser=optimiser,
        steps=STEPS[scale],
        batch=batch,
        trained=model.names,
        loss="all",
        probe_every=STEPS[scale],
        attention_every=STEPS[scale],
        groups_every=text_every,
        probes=(TextHeads(every=heads_every), Copying(every=text_every), *last),
    )
    return Train(task=Windows(corpus=corpus, T=T), model=model, plan=plan, seed=seed)


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {THREE: [training(scale, seed) for seed in seeds]}


def best(record: Record, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and at each of them the highest score of any head."""
    curves = [record.curve(name) for name in record.columns if name.startswith(f"{kind}.L")]
    return curves[0][0], np.max([values for _, values in curves], axis=0)


def best_head(record: Record, kind: str) -> str:
    """The head with the highest score at the end, such as L2H4."""
    last = {name: record.last(name) for name in record.columns if name.startswith(f"{kind}.L")}
    return max(last, key=lambda name: last[name]).removeprefix(f"{kind}.")


def born(record: Record, kind: str, never: float = nan) -> float:
    """The first step at which a head passes the level of its kind."""
    steps, scores = best(record, kind)
    above = steps[scores > BORN[kind]]
    return float(max(1, above[0])) if len(above) else never


def tokens_of(record: Record, step: float) -> float:
    """Millions of tokens that were trained on before a step."""
    return step * record.train.plan.batch * record.train.task.T / MILLION


def claims(runs: Runs) -> Claimed:
    yield "real.birth", [*_births(runs[THREE])]
    yield "real.birth-context", [*_context(runs[THREE])]


def _births(records: Records) -> Measures:
    previous, induction = ([born(record, kind) for record in records] for kind in ("previous", "induction"))
    tokens = [tokens_of(record, step) for record, step in zip(records, induction, strict=True)]
    as_said = sum(FIRST <= n <= LAST and p < i for n, p, i in zip(tokens, previous, induction, strict=True))
    name = "million tokens until the best induction score is above 0.25"
    yield Measure.over_seeds(name, tokens, low=FIRST, high=LAST)
    yield log_ratio("log of its step over that of a previous-token score above 0.5", induction, previous)
    yield Measure.known("seeds born in this order and time", as_said, low=0.8 * len(records) - 0.5)


def _context(records: Records) -> Measures:
    scores = [record.last("context.score") for record in records]
    yield Measure.over_seeds("in-context score at the end", scores, high=-0.05)
    gains = [record.last("repeat.second") - record.last("repeat.first") for record in records]
    yield Measure.over_seeds("loss of the second copy minus that of the first", gains, high=-1.0)


def figure(runs: Runs) -> Figure:
    from engram.show.text_births import text_births

    return text_births(runs[THREE], best)

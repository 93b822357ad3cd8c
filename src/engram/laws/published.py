r"""A training beside a published one: after the same steps, how far apart they are.

The authors' code (albietz/transformer-birth) logs a step in two halves: loss and accuracy are those of the step's fresh
batch, before the update; recalls are computed behind it. So the recalls that it logs at step t are ours of step t + 1.
"""

import json
from collections.abc import Iterator

import torch

from engram.errors import EngramError
from engram.learning import PATHS, SGD, Plan, choose_path, train
from engram.models import Simplified, Weights
from engram.models.memories import memories_of
from engram.probes.recall import recalls
from engram.reference import read_reference
from engram.tasks import Bigram
from engram.values import Rows, law

OFFICIAL = "birth/official_joint.jsonl"
EVERY = 10  # steps between readings
BEFORE = ("loss", "accuracy.in_context")
BEHIND = ("recall.W_O2", "recall.W_K2", "recall.W_K1.t<64", "recall.W_K1")
COLUMNS = BEFORE + BEHIND
GAP = ".gap"  # what stands behind the name of a column: published minus ours
Reading = dict[str, float]


@law("published.official_joint")
def official_joint(
    draws: int, seed: int, sha256: str, rate: float = 0.2, T: int = 256, d: int = 128, batch: int = 512
) -> Rows:
    """`draws` readings, ten steps apart: every column of our run of this seed `at` a step, and the authors' minus ours.

    sha256    that of the published file
    """
    published = official_readings(read_reference(OFFICIAL, sha256), draws)
    yield from beside(our_readings(draws, seed, rate, T, d, batch), iter(published))


@law("published.stand_in")
def stand_in(
    draws: int, seed: int, other: int, rate: float = 0.2, T: int = 256, d: int = 128, batch: int = 512
) -> Rows:
    """The same with a run of ours in the place of the published one: of the seed `other`, at this learning rate."""
    yield from beside(our_readings(draws, seed, 0.2, T, d, batch), our_readings(draws, other, rate, T, d, batch))


def beside(ours: Iterator[Reading], published: Iterator[Reading]) -> Rows:
    for own, other in zip(ours, published, strict=True):
        yield own | {column + GAP: other[column] - own[column] for column in COLUMNS}


def official_readings(content: bytes, draws: int) -> list[Reading]:
    """The first readings of the published file; its steps and columns must be those that we compare."""
    rows = [json.loads(line) for line in content.splitlines()][:draws]
    if [row.get("step") for row in rows] != [EVERY * i for i in range(draws)]:
        raise EngramError(f"{OFFICIAL}: its first {draws} rows are not those of the steps 0, {EVERY}, {2 * EVERY}, …")
    return [{column: float(row[column]) for column in COLUMNS} for row in rows]


def our_readings(draws: int, seed: int, rate: float, T: int, d: int, batch: int) -> Iterator[Reading]:
    """What the authors' code would log of our training: of a step its batch, and the recalls behind its update."""
    task, model = Bigram(K=5, T=T), Simplified(d=d)
    how = SGD(lr=rate, momentum=0.9, weight_decay=1e-4)
    plan = Plan(optimiser=how, steps=EVERY * (draws - 1) + 1, batch=batch)
    w = model.init(task.N, task.T, seed)
    reading: Reading = {}
    for moment in train(task, model, plan, seed, w, PATHS[choose_path("auto", model, plan, "cpu")]):
        if moment.step % EVERY == 0:
            reading = {"at": moment.step} | {column: moment.metrics[column] for column in BEFORE}
        elif moment.step % EVERY == 1:
            yield reading | _recalls(model, w, task)


@torch.no_grad()
def _recalls(model: Simplified, w: Weights, task: Bigram) -> Reading:
    found = recalls(memories_of(model, w, task))
    return {column: found[column] for column in BEHIND}

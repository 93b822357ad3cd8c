"""A training on the user's own facts: as many heads and units as a book of this size needs, and some to spare."""

from math import ceil, sqrt
from pathlib import Path

from engram.learning import Adam, Plan
from engram.models.factual import Factual
from engram.specs import Train
from engram.tasks.facts import OwnFacts

EVERY = 25  # steps between probes and between stored weights, so that `fact see` can follow a fact


def spec_of_file(path: Path, steps: int = 2000, seed: int = 0) -> Train:
    """The training on a CSV file with the columns subject, relation, answer."""
    task = OwnFacts.read(path, T=16)
    book = task.book(seed)
    d = max(32, 8 * ceil(sqrt(len(book.known)) / 4))
    model = Factual(d=d, heads=8, d_h=d // 4, m=4 * d, answers=max(2, book.answers))
    plan = Plan(
        optimiser=Adam(lr=3e-3),
        steps=steps,
        batch=256,
        trained=model.trainable,
        loss="answer",
        probe_every=EVERY,
        attention_every=EVERY,
        snapshot_every=EVERY,
    )
    return Train(task=task, model=model, plan=plan, seed=seed)

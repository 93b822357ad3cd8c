"""Facts of one's own as jobs: learn them, see one being learned, rewrite one."""

from math import ceil, sqrt
from pathlib import Path
from zlib import crc32

from engram.api import Watch, load, run_specs, save_figures, unwatched
from engram.knowing import Asked, Edit, edited, history
from engram.learning import Adam, Plan
from engram.models.factual import Factual
from engram.probes.facts import Belief
from engram.records import Record, Train
from engram.tasks.facts import OwnFacts


def learn_facts(path: Path, steps: int = 2000, seed: int = 0, watch: Watch = unwatched) -> Record:
    """Train on the facts of a CSV file: as many heads and units as a book of this size needs, and some to spare."""
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
        probe_every=25,
        attention_every=25,
        snapshot_every=25,
    )
    return run_specs([Train(task=task, model=model, plan=plan, seed=seed)], "cpu", watch)[0]


def see_fact(run: str, subject: str, relation: str) -> tuple[Asked, list[tuple[int, Belief]], list[Path]]:
    """What a run believed of a fact at its stored steps, and the figure of it."""
    from engram.show.stages import one_fact

    asked = Asked.of(load(run), subject, relation)
    beliefs = history(asked)
    name = f"{asked.record.id}-{crc32(f'{subject}/{relation}'.encode()):08x}"
    figures = save_figures({name: one_fact(beliefs, f"({subject}, {relation}) → {asked.answer}")})
    return asked, beliefs, [path for path in figures if path.suffix == ".png"]


def edit_fact(run: str, subject: str, relation: str, answer: str) -> tuple[Asked, Edit]:
    """Rewrite one fact of a trained model, and see what else moved; the record stays as it is."""
    asked = Asked.of(load(run), subject, relation)
    return asked, edited(asked, answer)

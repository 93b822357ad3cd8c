"""A training on the user's own facts, in a model of the size that the calculator proposes, or that the user says."""

from pathlib import Path

from engram.calculator.answers import error_of, size_needed
from engram.calculator.kinds import FACTS
from engram.calculator.shapes import Transformer, transformer, transformer_with
from engram.calculator.words import lines_of, transformer_in_words
from engram.learning import Adam, Plan
from engram.models.factual import Factual
from engram.specs import Train
from engram.tasks.facts import OwnFacts

EVERY = 25  # steps between probes and between stored weights, so that `fact see` can follow a fact
SPARE = 8  # capacities are those of trainings with four times as many steps, and batches four times as large


def proposed(facts: int) -> Transformer:
    """A model that holds eight times as many facts, by what was measured, so that a short training suffices."""
    return transformer_with(size_needed(FACTS, SPARE * facts).measured.value)


def spec_of_file(
    path: Path,
    steps: int = 2000,
    seed: int = 0,
    width: int | None = None,
    heads: int | None = None,
    units: int | None = None,
    skip_bad: bool = False,
) -> Train:
    """The training on a CSV file with the columns subject, relation, answer.

    width, heads, units    of the model; what is left out is proposed, and has the measured shape
    skip_bad                leave out lines with mistakes, with a warning
    """
    task = OwnFacts.read(path, skip_bad, T=16)
    book = task.book(seed)
    own = proposed(len(book.known)) if width is None else transformer(width)
    shape = transformer(own.d, own.heads if heads is None else heads, m=own.m if units is None else units)
    model = Factual(d=shape.d, heads=shape.heads, d_h=shape.d_h, m=shape.m, answers=max(2, book.answers))
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


def shape_of(spec: Train) -> dict[str, int]:
    model = spec.model
    assert isinstance(model, Factual)
    return {"d": model.d, "heads": model.heads, "d_h": model.d_h, "m": model.m, "parameters": model.parameters}


def foretold(spec: Train, own: bool) -> list[str]:
    """Before training: what the calculator says of the table, or of a size that the user said, and what is trained."""
    assert isinstance(spec.task, OwnFacts)
    book, shape = spec.task.book(spec.seed), shape_of(spec)
    n = len(book.known)
    counted = {"subject": book.S, "relation": book.R, "answer": book.answers}
    names = ", ".join(f"{number} {kind}{'s' * (number != 1)}" for kind, number in counted.items())
    said = error_of(FACTS, n, shape["parameters"]) if own else size_needed(FACTS, n)
    whose = "as you said" if own else f"proposed for {SPARE} times as many facts, so that a short training suffices"
    model = f"{transformer_in_words(shape)}, {whose}"
    return [f"{n} facts: {names}", *lines_of(said), f"to train  {model}; {spec.steps:,} steps"]

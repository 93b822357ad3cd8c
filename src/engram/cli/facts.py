"""`engram fact`: learn your own facts, see one being learned, rewrite one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cyclopts import App

from engram.cli.output import WholeNumber, answer, near, print_table, say, tell, watched


@contextmanager
def mistakes_by_line() -> Iterator[None]:
    """What is wrong with a table goes to a person line by line; the error says how many there are."""
    from engram.errors import EngramError
    from engram.tasks.table import BadTable, told

    try:
        yield
    except BadTable as bad:
        say(*told(bad.mistakes))
        n = len(bad.mistakes)
        raise EngramError(
            f"{bad.path}: {n} mistake{'s' * (n > 1)}, told above; mend them and run the same command again"
        ) from None


fact = App(name="fact", help="Your own facts: learn them from a CSV file, see one being learned, rewrite one.")


@fact.command
def learn(
    file: Path,
    *,
    steps: WholeNumber = 2000,
    seed: WholeNumber = 0,
    width: WholeNumber | None = None,
    heads: WholeNumber | None = None,
    units: WholeNumber | None = None,
    json: bool = False,
) -> None:
    """Train a one-layer transformer on the facts of a CSV file with the columns subject, relation, answer.

    Parameters
    ----------
    width
        Width d of the model; left out, the calculator proposes one that holds eight times as many facts.
    heads
        Heads of attention, which share the width.
    units
        Units of the MLP; as many as the width unless said, 0 for none.
    """
    from engram.api import learn_facts
    from engram.calculator.words import transformer_in_words

    size = {"width": width, "heads": heads, "units": units}
    with mistakes_by_line():
        record = learn_facts(file, steps, seed, watched(f"facts of {file.name}", "cpu"), **size)
    model: Any = record.train.model
    shape = {"d": model.d, "heads": model.heads, "d_h": model.d_h, "m": model.m, "parameters": model.parameters}
    found = {"run": record.id, "facts": len(record.train.task.facts), "recalled": record.rows[-1]["all.accuracy"]}  # type: ignore[attr-defined]
    if json:
        answer(found | {"model": shape})
        return
    whose = "as you said" if any(part is not None for part in size.values()) else "as `engram predict facts` proposes"
    tell(f"{found['facts']} facts, {found['recalled']:.1%} recalled", f"record  {near(record.folder)}")
    tell(f"model   {transformer_in_words(shape)}, {whose}")
    tell(f"ask     engram fact see {record.id} SUBJECT RELATION")


@fact.command
def see(run: str, subject: str, relation: str, *, json: bool = False) -> None:
    """Show what a run believed about a fact during training: no idea, the right relation, the right answer.

    A stage counts as reached when the probability is more than halfway from chance to certainty, and the likeliest
    answer agrees. Chance of the relation is what a blind guess gives it, chance of the answer is its share of the
    relation's answers.
    """
    from engram.api import see_fact

    asked, beliefs, figures = see_fact(run, subject, relation)
    rows = [
        {
            "step": step,
            "stage": belief.words,
            "guess": asked.names["answer"][belief.guess],
            "right": round(belief.right, 4),
            "same relation": round(belief.relation, 4),
            "other": round(belief.rest, 4),
        }
        for step, belief in beliefs
    ]
    chance = beliefs[0][1].chance
    if json:
        answer({"beliefs": rows, "chance": {"relation": chance.relation, "right": chance.right}})
        return
    print_table("beliefs", rows, json)
    tell("", f"({subject}, {relation}) is {asked.answer}")
    tell(f"chance  {chance.relation:.0%} for all answers of {relation}, guessing blindly")
    tell(f"        {chance.right:.0%} for {asked.answer}, knowing only that {relation} is asked for")
    tell(*(f"figure  {near(p)}" for p in figures))


@fact.command
def edit(run: str, subject: str, relation: str, answer: str, *, json: bool = False) -> None:
    """Rewrite one fact by a rank-one change of a matrix and count the other facts that change; the run is kept."""
    from engram.api import edit_fact
    from engram.cli import output as voice

    asked, found = edit_fact(run, subject, relation, answer)
    rows = [{"other facts with": kind, "changed": n, "of": of} for kind, (n, of) in found.changed.items()]
    if json:
        voice.answer({"matrix": found.matrix, "learned": found.learned, "moved": found.moved, "changed": rows})
        return
    tell(f"({subject}, {relation}): {asked.answer} → {answer}, by a rank-one change of {found.matrix}")
    tell(f"new answer in {found.learned:.0%} of fresh prompts; others moved by {found.moved:.4f} (total variation)")
    print_table("changed", rows, json)

"""`engram fact`: learn your own facts, see one being learned, rewrite one."""

from pathlib import Path

from cyclopts import App

from engram.cli.output import WholeNumber, answer, near, print_table, tell, watched

fact = App(name="fact", help="Your own facts: learn them from a CSV file, see one being learned, rewrite one.")


@fact.command
def learn(file: Path, *, steps: WholeNumber = 2000, seed: WholeNumber = 0, json: bool = False) -> None:
    """Train a one-layer transformer on the facts of a CSV file with the columns subject, relation, answer."""
    from engram.api import learn_facts

    record = learn_facts(file, steps, seed, watched(f"facts of {file.name}", "cpu"))
    found = {"run": record.id, "facts": len(record.train.task.facts), "recalled": record.rows[-1]["all.accuracy"]}  # type: ignore[attr-defined]
    if json:
        answer(found)
        return
    tell(f"{found['facts']} facts, {found['recalled']:.1%} recalled", f"record  {near(record.folder)}")
    tell(f"ask     engram fact see {record.id} SUBJECT RELATION")


@fact.command
def see(run: str, subject: str, relation: str, *, json: bool = False) -> None:
    """Show what a run believed about a fact during training: no idea, the right relation, the right answer."""
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
    print_table("beliefs", rows, json)
    if not json:
        tell("", f"({subject}, {relation}) is {asked.answer}", *(f"figure  {near(p)}" for p in figures))


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

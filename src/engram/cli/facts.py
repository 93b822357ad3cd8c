"""`engram fact`: learn your own facts, see one being learned, rewrite one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from warnings import catch_warnings, simplefilter

from cyclopts import App, Parameter

from engram.cli.output import WholeNumber, answer, near, print_table, say, tell, tell_figures, watched

NAMED = 5  # facts whose answer an edit changed
ROWS = 10  # of `fact see`, besides those at which the stage changes


@contextmanager
def mistakes_by_line() -> Iterator[None]:
    """What is wrong with a table, or guessed, goes to a person line by line; the error says how much is wrong."""
    from engram.errors import EngramError
    from engram.tasks.table import BadTable, told

    try:
        with catch_warnings(record=True) as guessed:
            simplefilter("always")
            yield
        say(*(line for guess in guessed for line in str(guess.message).split("\n")))
    except BadTable as bad:
        say(*filter(None, [bad.guess]), *told(bad.mistakes))
        n = len(bad.mistakes)
        many, them = ("mistakes", "them") if n > 1 else ("mistake", "it")
        lines = any(why.startswith("line ") for why in bad.mistakes)
        skip = ", or leave these lines out with --skip-bad" if lines else ""
        raise EngramError(
            f"{bad.path}: {n} {many}, listed above; fix {them} and run the same command again{skip}"
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
    skip_bad: bool = False,
    json: bool = False,
) -> None:
    """Train a one-layer transformer on the facts of a table with the columns subject, relation, answer.

    What the calculator says of the table (engram predict facts) is shown first.

    Parameters
    ----------
    file
        A table in UTF-8 with commas, semicolons or tabs; other columns are ignored. Three columns may have any names.
    steps
        Steps of training, with 256 prompts each.
    seed
        Of the initial weights and of the prompts.
    width
        Width d of the model; left out, the calculator proposes one that holds eight times as many facts.
    heads
        Heads of attention, which share the width.
    units
        Units of the MLP; by default as many as the width; 0 for none.
    skip_bad
        Leave out lines that have mistakes, and say which they are.
    """
    from engram.asking import ON_CPU, train_on
    from engram.facts.learn import foretold, shape_of, spec_of_file

    with mistakes_by_line():
        spec = spec_of_file(file, steps, seed, width=width, heads=heads, units=units, skip_bad=skip_bad)
    own = any(part is not None for part in (width, heads, units))
    say(*foretold(spec, own))
    watch = watched(f"facts of {file.name}", ON_CPU)
    record = train_on(file, spec, watch, width=width, heads=heads, units=units)
    n, recalled = len(spec.task.book(seed).known), record.rows[-1]["all.accuracy"]  # type: ignore[attr-defined]
    if json:
        answer({"run": record.id, "facts": n, "recalled": recalled, "model": shape_of(spec)})
        return
    tell(f"{n} facts, {recalled:.1%} recalled", f"record  {near(record.folder)}")
    tell(f"ask     engram fact see {record.id} SUBJECT RELATION")


@fact.command
def see(
    run: str,
    subject: str,
    relation: str,
    *,
    everything: Annotated[bool, Parameter(name="--all")] = False,
    json: bool = False,
) -> None:
    """Show what a run believed about a fact during training: no idea, the right relation, the right answer.

    A stage counts as reached when the probability is more than halfway from chance to certainty, and the likeliest
    answer agrees. Chance of the relation is what a blind guess gives it, chance of the answer is its share of the
    relation's answers. Steps at which the stage changes are shown, and some between them.

    Parameters
    ----------
    run
        A run on facts: its name, a part of it that no other has, or `last`, the last one on facts.
    everything
        Show all stored steps.
    """
    from engram.asking import see_fact
    from engram.probes.facts import RULE

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
        answer({"beliefs": rows, "chance": {"relation": chance.relation, "right": chance.right}, "rule": RULE})
        return
    shown = rows if everything else _some(rows)
    print_table("beliefs", shown, json)
    if len(shown) < len(rows):
        tell(f"{len(shown)} of {len(rows)} stored steps; --all shows the others")
    tell("", f"({subject}, {relation}) is {asked.answer} in the table")
    tell(*(f"step {event.step}: {event.sentence}" for event in asked.record.train.events))
    tell(f"chance  {chance.relation:.0%} for all answers of {relation}, guessing blindly")
    tell(f"        {chance.right:.0%} for {asked.answer}, knowing only that {relation} is asked for")
    tell(f"stage   {RULE}")
    tell_figures(figures)


def _some(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where the stage changes, the ends, and about ten rows between them."""
    every = max(1, len(rows) // ROWS)
    last = len(rows) - 1
    return [
        row for i, row in enumerate(rows) if i in (0, last) or i % every == 0 or row["stage"] != rows[i - 1]["stage"]
    ]


@fact.command
def edit(
    *words: str,
    keep: bool = False,
    model: str | None = None,
    layer: WholeNumber | None = None,
    size: str = "0.2",
    how: str = "write",
    was: str | None = None,
    subject: str | None = None,
    others: Path | None = None,
    text: Path | None = None,
    apply: tuple[Path, ...] = (),
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    yes: bool = False,
    json: bool = False,
) -> None:
    """Rewrite one fact by a rank-one change of a matrix and tell what else changes; the run or model stays as it is.

    Of a run: engram fact edit RUN SUBJECT RELATION ANSWER. Of a language model: engram fact edit --model MODEL PROMPT
    ANSWER, which keeps the change as a small file.

    Parameters
    ----------
    words
        RUN SUBJECT RELATION ANSWER, where the answer is one of the table; with --model PROMPT ANSWER.
    keep
        Keep the edited model of a run as a run of its own, which can be seen and edited like any other.
    model
        A language model: a Hugging Face folder, a .gguf file, or smollm2.
    layer
        The layer whose feed-forward matrix is changed; by default the last but one (for rome an early one).
    size
        How far the stream is moved at the last token, as a share of its length; least: the smallest that suffices.
    how
        write: towards the new answer at the last token; rome: a value optimised at the subject, for comparison.
    was
        The answer that is replaced; by default the one that the model gives.
    subject
        For rome: what the prompt is about, as it stands there.
    others
        A table with the columns kind (paraphrase, neighbour, subject) and prompt: does the edit move these?
    text
        A text in UTF-8 for the second moment of keys and the loss; by default prose that comes with Engram.
    apply
        Files of edits that are applied first, in this order.
    output
        The file of the edit; by default edit-….safetensors.
    yes
        Download a known model that is not here.
    """
    if model is not None:
        from engram.cli.model_facts import edit_model, parsed_size

        about = {"layer": layer, "size": parsed_size(size), "how": how, "was": was, "subject": subject}
        edit_model(model, words, apply, yes, json, output=output, others=others, text=text, **about)
        return
    if len(words) != 4:
        from engram.errors import EngramError

        raise EngramError(
            f"fact edit: RUN SUBJECT RELATION ANSWER are needed; got {len(words)} word{'s' * (len(words) != 1)}; "
            "for a language model give --model MODEL PROMPT ANSWER"
        )
    _edit_run(*words, keep=keep, json=json)


def _edit_run(run: str, subject: str, relation: str, answer: str, keep: bool, json: bool) -> None:
    from engram.asking import edit_fact, keep_edit
    from engram.cli import output as voice

    asked, found = edit_fact(run, subject, relation, answer)
    answers = asked.names["answer"]
    kept = keep_edit(asked, found) if keep else None
    rows = [{"other facts with": kind, "changed": n, "of": of} for kind, (n, of) in found.changed.items()]
    others = [
        {"fact": replace(asked, s=one.s, r=one.r).question, "was": answers[one.was], "now": answers[one.now]}
        for one in found.others
    ]
    if json:
        about = {"matrix": found.matrix, "was": found.was, "learned": found.learned, "moved": found.moved}
        voice.answer(about | {"changed": rows, "others": others} | ({"run": kept.id} if kept else {}))
        return
    tell(f"{asked.question}: {found.was} → {answer}, by a rank-one change of {found.matrix}")
    tell(f"new answer in {found.learned:.0%} of fresh prompts; others moved by {found.moved:.4f} (total variation)")
    print_table("changed", rows, json)
    tell(*(f"  {one['fact']}: {one['was']} → {one['now']}" for one in others[:NAMED]))
    tell(*([f"  … and {len(others) - NAMED} more; --json names all"] if len(others) > NAMED else []))
    if kept is None:
        tell("", f"run {asked.record.id} is as before; with --keep the edited model is kept as a run of its own")
        return
    tell("", f"record  {near(kept.folder)}", f"ask     engram fact see {kept.id} SUBJECT RELATION")

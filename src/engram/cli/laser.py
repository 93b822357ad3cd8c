"""`engram probe MODEL laser`: what a language model says with one of its matrices truncated."""

from pathlib import Path
from typing import Any

from engram.cli.output import answer, console, near, say, tell

SHOWN = 8  # cuts in the table for a person


def laser(model: str, prompts: Path | None, matrices: str, text: Path | None, json: bool) -> None:
    """The best cut of a user's prompts, chosen on every fifth and reported on the others; a download was agreed to."""
    from engram.adapters import read_model
    from engram.asking import laser_figure
    from engram.cli.facts import mistakes_by_line
    from engram.errors import EngramError
    from engram.facts.cut import read_prompts, truncate_network
    from engram.probes.words import Speaker

    if prompts is None:
        raise EngramError("laser: name a table with the columns prompt, answer and rival: --prompts FILE.csv")
    read = read_model(model, consent=True)
    speaker = Speaker.of(read.network, read.tokenizer)
    with mistakes_by_line():
        asked = read_prompts(speaker, prompts)
    say(*asked.notes, f"{read.network.provenance} · {len(asked.sequences)} prompts · truncating")
    done = truncate_network(speaker, asked, matrices, text)
    figures = laser_figure(read.network.provenance, prompts.stem, done)
    rows = _rows(done)
    if json:
        about = {"model": str(read.network.provenance), "sha256": read.network.provenance.sha256}
        counts = {"chosen_on": len(done.found.chosen_on), "reported_on": len(done.found.reported_on)}
        told = {"cut": vars(done.found.cut), "full": rows[0], "best": rows[1], "cuts": done.found.table()}
        answer(about | counts | told | {"notes": list(done.notes), "figures": [str(path) for path in figures]})
        return
    _print(done, rows)
    tell(*(f"figure  {near(path)}" for path in figures if path.suffix == ".png"))


def _rows(done: Any) -> list[dict[str, Any]]:
    cut = done.found.cut
    names = "full model", f"{cut.matrix}, {100 * cut.share:g} % of its singular values"
    pairs = zip(names, (done.found.full, done.found.best), done.loss, strict=True)
    return [{"model": name} | numbers | {"text_loss": loss} for name, numbers, loss in pairs]


def _print(done: Any, rows: list[dict[str, Any]]) -> None:
    from engram.show.tables import print_rows

    found = done.found
    best = sorted(found.cuts, key=lambda cut: -found.cuts[cut]["log_p"])[:SHOWN]
    tell(f"best of {len(found.cuts)} cuts on the {len(found.chosen_on)} prompts that choose, by mean log p(answer)")
    print_rows(console(), [vars(cut) | _rounded(found.cuts[cut]) for cut in best])
    tell("", f"on the other {len(found.reported_on)} prompts")
    print_rows(console(), [_rounded(row) for row in rows])
    tell(
        "", "These are interventions: what the model says without the small singular values, not what a matrix writes."
    )


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()}

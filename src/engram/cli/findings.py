"""`engram findings`: what running the papers has shown, from the committed records."""

from pathlib import Path
from typing import Any

from engram.cli.decided import decided
from engram.cli.output import answer, near, say, tell
from engram.errors import EngramError


def findings(*, markdown: bool = False, figures: Path | None = None, json: bool = False) -> int:
    """Print what running the papers has shown, with verdicts of the committed records.

    Exit code 1 if the prose of a finding was written for another verdict.

    Parameters
    ----------
    markdown
        Print it as in docs/findings.md.
    figures
        Draw the figures of all findings into this folder, and print nothing else.
    """
    from engram.claims.findings import declared
    from engram.records.files import COMMITTED
    from engram.show.findings import as_json, changed_verdicts, lines
    from engram.show.findings import markdown as as_markdown

    if sum((markdown, json, figures is not None)) > 1:
        raise EngramError("findings: --markdown, --figures and --json cannot be combined; choose one")
    if figures is not None:
        tell(*(f"figure  {near(path)}" for path in _draw(figures.resolve())))
        return 0
    claims = decided((), [COMMITTED]).claims
    if json:
        answer({"findings": as_json(declared(), claims)})
    else:
        text = as_markdown(declared(), claims).removesuffix("\n").split("\n") if markdown else lines(declared(), claims)
        tell(*text)
    changed = changed_verdicts(declared(), claims)
    say(*(f"{line}; rewrite src/engram/data/findings/{line.split(': ')[1]}.toml" for line in changed))
    return 1 if changed else 0


def _draw(folder: Path) -> list[Path]:
    """One figure for each experiment that a finding shows; others that lie in the folder are left alone."""
    from engram.claims.findings import declared, stamp
    from engram.claims.ledger import Index
    from engram.experiments import find
    from engram.records.files import COMMITTED, replace, writing_to
    from engram.show.save import small_image

    index, drawn = Index.of([COMMITTED]), []
    for name in dict.fromkeys(name for finding in declared() for name in finding.figures):
        runs, path = _runs(find(name), index), folder / f"{name}.webp"
        with writing_to(folder):
            replace(path, small_image(find(name).figure(runs), stamp(runs)))
        drawn.append(path)
    return drawn


def _runs(experiment: Any, index: Any) -> Any:
    from engram.claims.ledger import best_runs

    best = best_runs(experiment, index)
    if best is None:
        raise EngramError(f"findings: {experiment.name} has no records to draw; {experiment.command}, or name another")
    return best[0]

"""`engram findings`: what running the papers has shown, from the committed records."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli.decided import decided
from engram.cli.output import answer, console, near, say, tell
from engram.errors import EngramError, did_you_mean
from engram.text import printable

if TYPE_CHECKING:
    from engram.claims.findings import Finding


def findings(*names: str, markdown: bool = False, figures: Path | None = None, json: bool = False) -> int:
    """Print what running the papers has shown, with verdicts of the committed records; of those that are named, all.

    Exit code 1 if the prose of a finding was written for another verdict.

    Parameters
    ----------
    names
        Findings to print in full: their numbers in the list, or parts of their titles.
    markdown
        Print it as in docs/findings.md.
    figures
        Draw the figures of all findings into this folder, and print nothing else.
    """
    from engram.claims.findings import declared
    from engram.records.files import COMMITTED
    from engram.show.findings import as_json, changed_verdicts, in_full, lines
    from engram.show.findings import markdown as as_markdown

    chosen = _chosen(names, declared())

    if sum((markdown, json, figures is not None)) > 1:
        raise EngramError("findings: --markdown, --figures and --json cannot be combined; choose one")
    if figures is not None:
        tell(*(f"figure  {near(path)}" for path in _draw(figures.resolve(), [*chosen.values()])))
        return 0
    claims = decided((), [COMMITTED]).claims
    if json:
        answer({"findings": as_json([*chosen.values()], claims)})
    else:
        whole = as_markdown(list(chosen.values()), claims).removesuffix("\n").split("\n") if markdown else []
        tell(*(whole or ([] if names else lines(declared(), claims))))
        for number, finding in chosen.items() if names and not markdown else ():
            _print(in_full(number, finding, claims))
    changed = changed_verdicts(list(chosen.values()), claims)
    say(*(f"{line}; rewrite src/engram/data/findings/{line.split(': ')[1]}.toml" for line in changed))
    return 1 if changed else 0


def _chosen(names: tuple[str, ...], every: Sequence["Finding"]) -> "dict[int, Finding]":
    """By their numbers in the list; all unless some are named."""
    listed = dict(enumerate(every, 1))
    hits = [_named(name, listed) for name in names]
    return {number: listed[number] for number in listed if not names or any(number in hit for hit in hits)}


def _named(name: str, listed: "dict[int, Finding]") -> list[int]:
    """The one of this number, or those whose name or title has this part."""
    found = [int(name)] if name.isdecimal() and int(name) in listed else []
    if not name.isdecimal():
        found = [n for n, one in listed.items() if name.lower() in f"{one.name} {one.title}".lower()]
    if not found:
        hint = did_you_mean(name, [word for one in listed.values() for word in one.title.split()])
        raise EngramError(f"findings: none is called {name!r}; {hint}`engram findings` lists 1 to {len(listed)}")
    return found


def _print(paragraphs: Sequence[str]) -> None:
    """Lines end between words in a terminal; a file has its own."""
    from rich.text import Text

    view = console()
    for paragraph in paragraphs:
        view.print(Text(printable(paragraph)), "", sep="\n", soft_wrap=not view.is_terminal)


def _draw(folder: Path, chosen: "Sequence[Finding]") -> list[Path]:
    """One figure for each experiment that a finding shows; others that lie in the folder are left alone."""
    from engram.claims.findings import stamp
    from engram.claims.ledger import Index
    from engram.experiments import find
    from engram.records.files import COMMITTED, replace, writing_to
    from engram.show.save import small_image

    index, drawn = Index.of([COMMITTED]), []
    for name in dict.fromkeys(name for finding in chosen for name in finding.figures):
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

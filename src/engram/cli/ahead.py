"""What a command says before it begins: what is here, what it will compute, and how long that takes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engram.cli.output import confirmed, say

if TYPE_CHECKING:
    from engram.engines.ahead import Ahead

WORTH_A_HINT = 5.0  # seconds of computing


def what_is_ahead(name: str, scale: str, seeds: Sequence[int], settings: dict[str, Any]) -> "Ahead":
    """Of an experiment."""
    from engram.claims.experiment import known_scale
    from engram.engines.ahead import ahead
    from engram.experiments import find
    from engram.records.files import home

    return ahead(find(name), known_scale(scale), seeds, settings, home())


def heading(name: str, scale: str, found: "Ahead", settings: dict[str, Any]) -> str:
    """What is here and what will be computed; and where the committed records tell the same at once."""
    from engram.records.files import COMMITTED

    committed = not settings and scale != "smoke" and any(COMMITTED.glob(f"{name}-*.zip"))
    if committed and (found.seconds or 0.0) > WORTH_A_HINT:
        say(f"`engram show {name}` draws it from the committed records, without training")
    return f"{name}, {scale} scale, {found.sentence}"


def agreed(found: "Ahead", yes: bool) -> bool:
    """Whether to begin: what takes longer than an hour is asked first, and needs --yes where nobody can be asked."""
    if yes or not found.is_long:
        return True
    from engram.engines.ahead import in_words

    if confirmed(
        f"{found.runs} run{'s' * (found.runs != 1)}, {in_words(found.seconds)} on this machine: begin?", "run"
    ):
        return True
    say("nothing was run")
    return False

"""Models of others on the command line: what must be downloaded is asked for first."""

from typing import TYPE_CHECKING

from engram.cli.output import confirmed, say

if TYPE_CHECKING:
    from engram.adapters import Pretrained


def open_model(where: str, command: str, yes: bool = False) -> "Pretrained":
    """The model of a folder, file or name; --yes, or a person at the terminal, agrees to a download."""
    from engram.adapters import read_model
    from engram.adapters.opening import wanted

    what = wanted(where)
    if what is None:
        return read_model(where)
    agreed = yes or confirmed(f"{where} is not on this computer; download it ({what})?", command)
    if agreed:
        say(f"downloading {where} ({what})")
    return read_model(where, consent=agreed)

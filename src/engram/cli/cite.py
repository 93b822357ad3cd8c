"""`engram cite`: one claim as a paper cites it."""

from engram.cli.decided import decided
from engram.cli.output import answer, tell
from engram.errors import EngramError, did_you_mean


def cite(claim: str, *, json: bool = False) -> None:
    """Print how to cite a claim: sentence, number, interval, seeds, the command that repeats it, and BibTeX.

    The numbers are those of the committed records, which this version carries.

    Parameters
    ----------
    claim
        Its id, as `engram ledger` shows it.
    """
    from importlib.metadata import version

    from engram.records.files import COMMITTED
    from engram.runner.execute import commit_of_sources
    from engram.show.citing import about, lines

    claims = {one["id"]: one for one in decided((), [COMMITTED]).claims}
    if claim not in claims:
        near = did_you_mean(claim, claims)
        raise EngramError(f"cite: there is no claim {claim!r:.60}; {near}`engram ledger` has all")
    told = about(claims[claim], version("engram"), commit_of_sources())
    if json:
        answer(told)
    else:
        tell(*lines(told))

"""`engram truncate`: what a trained model says with each of its matrices truncated."""

from typing import Any

from engram.cli.output import WholeNumber, answer, console, tell, tell_figures


def truncate(run: str, *, group: str = "in_context", sequences: WholeNumber = 512, json: bool = False) -> None:
    """Truncate every matrix of a run's final model to shares of its singular values; the run is kept as it is.

    Parameters
    ----------
    group
        The positions that are read, as the task names them.
    sequences
        How many unseen sequences.
    """
    from engram.asking import truncation_map
    from engram.probes.truncation import percent
    from engram.show.tables import print_rows

    record, found, figures = truncation_map(run, group, sequences)
    if json:
        cost = {"positions": found.positions, "passes": round(found.passes, 2), "plain_passes": found.plain_passes}
        told: dict[str, Any] = {"run": record.id, "group": group, "full": found.full, "map": found.table()}
        answer(told | cost | {"figures": [str(path) for path in figures]})
        return
    for metric in found.metrics:
        tell(f"{metric} · full model {found.full[metric]:.4f} · by share of singular values kept")
        kept = {
            name: {percent(share): f"{found.at(name, share)[metric]:.2f}" for share in found.shares}
            for name in found.matrices
        }
        print_rows(console(), [{"matrix": name} | row for name, row in kept.items()])
        tell("")
    tell(f"{found.positions} positions {group} of {sequences} unseen sequences")
    tell(f"passes  {found.passes:.1f}, where one run for each matrix and share takes {found.plain_passes}")
    tell_figures(figures)

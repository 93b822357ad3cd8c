"""Options of every command that computes runs: where, and with how much of a machine."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from engram.cli.output import WholeNumber

if TYPE_CHECKING:
    from engram.engines.choosing import Where


@Parameter(name="*")
@dataclass(frozen=True)
class Computing:
    """Where runs are computed.

    Parameters
    ----------
    engine
        Where the runs are computed: local (this machine), ray (a Ray cluster, or one that is started here) or slurm
        (a job array; the runs lie on a disk that its nodes share).
    address
        HOST:PORT of a Ray cluster, as `ray start --head` prints it. Without it a Ray is started on this machine.
    sbatch
        For Slurm: options of sbatch, as in --sbatch partition=long time=2:00:00.
    workers
        How many runs are computed at a time, at most. By default as many as there is room for.
    threads
        Of each run. By default one where several run side by side, and all for a run that is alone here.
    memory
        What a run may need, such as 2GB: no more runs are begun side by side than there is room for.
    device
        auto, cpu, cuda or mps.
    path
        How gradients are computed: auto, fast (compiled) or reference (autograd). Both are exact.
    """

    engine: Annotated[str, Parameter(name="--engine")] = "local"
    address: Annotated[str | None, Parameter(name="--address", show_default=False)] = None
    sbatch: Annotated[tuple[str, ...], Parameter(name="--sbatch", consume_multiple=1, show_default=False)] = ()
    workers: Annotated[WholeNumber | None, Parameter(name="--workers", show_default=False)] = None
    threads: Annotated[WholeNumber | None, Parameter(name="--threads", show_default=False)] = None
    memory: Annotated[str | None, Parameter(name="--memory", show_default=False)] = None
    device: Annotated[str, Parameter(name="--device")] = "auto"
    path: Annotated[str, Parameter(name="--path")] = "auto"

    def where(self) -> "Where":
        """Refused before anything else is done, if there is no such engine or device."""
        from engram.engines.choosing import Where

        found = Where(**vars(self))
        found.build()
        return found


HERE = Computing()

"""An engine by its name, with what a command line or Python says of it."""

import re
from dataclasses import dataclass, replace
from typing import Any

from engram.engines import Engine
from engram.engines.local import Local, choose_device
from engram.engines.manner import Manner
from engram.engines.ray_cluster import Ray
from engram.engines.slurm import Slurm
from engram.errors import EngramError, did_you_mean
from engram.records.files import home

ENGINES: dict[str, type[Manner]] = {"local": Local, "ray": Ray, "slurm": Slurm}
UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


@dataclass(frozen=True)
class Where:
    """What a person says of where runs are computed.

    engine     a name, or an engine such as engram.Ray(address="node1:6379")
    address    of a Ray cluster
    sbatch     options for Slurm, as NAME=VALUE
    """

    engine: str | Manner = "local"
    device: str = "auto"
    path: str = "auto"
    address: str | None = None
    threads: int | None = None
    memory: str | None = None
    sbatch: tuple[str, ...] = ()
    workers: int | None = None

    def build(self, snapshots: int | None = None) -> Engine:
        """The engine. One that was given as such keeps what it says of itself."""
        if not isinstance(self.engine, str):
            return _given(self.engine, snapshots)
        kind = _known(self.engine)
        device = _device(self.device, kind)
        own = self._own(kind)
        about: dict[str, Any] = {"device": device, "path": self.path, "snapshots": snapshots}
        about |= {"threads": _count("threads", self.threads), "workers": _count("workers", self.workers)}
        return kind(home(), memory=size(self.memory), **about, **own)  # type: ignore[return-value]

    def _own(self, kind: type[Manner]) -> dict[str, Any]:
        """What only one engine has."""
        for option, given, only in (("--address", self.address, Ray), ("--sbatch", self.sbatch, Slurm)):
            if given and kind is not only:
                raise EngramError(f"{option}: this is for --engine {only.__name__.lower()}; got {self.engine}")
        options = {name: value for name, _, value in (word.partition("=") for word in self.sbatch)}
        if "" in options.values():
            raise EngramError(f"--sbatch: write NAME=VALUE, as in partition=long; got {' '.join(self.sbatch)!r:.80}")
        return {Ray: {"address": self.address}, Slurm: {"options": options}}.get(kind, {})

    @property
    def words(self) -> str:
        """device cpu (…) · 2 cores, or what there is instead"""
        if self.engine == "local":
            from engram.engines.local import cores

            chosen, why = choose_device(self.device)
            return f"device {chosen} ({why}) · {cores()} cores"
        name = self.engine if isinstance(self.engine, str) else type(self.engine).__name__.lower()
        return f"engine {name}" + (f" at {self.address}" if self.address else "")


HERE = Where()


def _given(engine: object, snapshots: int | None) -> Engine:
    """One that was made in Python."""
    if snapshots is not None and isinstance(engine, Manner):
        engine = replace(engine, snapshots=snapshots)
    if not isinstance(engine, Engine):
        name, base = type(engine).__name__, "engram.engines.manner.Manner"
        raise EngramError(f"engine: {name} is no engine; subclass {base}, with run(specs, on_row)")
    return engine


def _known(name: str) -> type[Manner]:
    if name not in ENGINES:
        hint = did_you_mean(name, ENGINES)
        raise EngramError(f"--engine: unknown {name!r:.60}; {hint}allowed: {', '.join(ENGINES)}")
    return ENGINES[name]


def _device(wanted: str, kind: type[Manner]) -> str:
    """Elsewhere `auto` is the processor: what other machines have is not known here."""
    if kind is Local:
        return choose_device(wanted)[0]
    if wanted not in ("auto", "cpu", "cuda"):
        raise EngramError(f"--device: a cluster has cpu or cuda; got {wanted!r:.60}")
    return "cuda" if wanted == "cuda" else "cpu"


def _count(name: str, wanted: int | None) -> int | None:
    if wanted is not None and wanted < 1:
        raise EngramError(f"--{name}: at least one is needed; got {wanted}")
    return wanted


def size(text: str | None) -> int | None:
    """Bytes.

    >>> size("1.5GB"), size("800 MB"), size(None)
    (1610612736, 838860800, None)
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMG]B)?", text.strip(), re.IGNORECASE)
    if found is None or not float(found[1]):
        raise EngramError(f"--memory: write a size such as 800MB or 2GB; got {text!r:.60}")
    return int(float(found[1]) * UNITS[(found[2] or "").upper()])

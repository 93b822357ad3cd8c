"""The jobs of Engram as functions; the command line and Python call the same ones."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from engram.engines.local import choose_device, cores, run_all
from engram.errors import EngramError
from engram.execute import environment, law_rows, measured_steps
from engram.experiments import SCALES, Experiment, Scale
from engram.experiments import find as find_experiment
from engram.ledger import entries_of
from engram.records import Record, Spec, Train
from engram.records.compare import first_mismatch
from engram.records.files import Row, home, replace, writing_to
from engram.records.shelf import find, of_spec
from engram.records.spec import run_id, with_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Result:
    """What an experiment came to; `claims` are the dicts that --json prints."""

    experiment: Experiment
    scale: Scale
    seconds: float
    claims: list[dict[str, Any]]
    records: list[Record]
    figures: list[Path]

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment.name,
            "scale": self.scale,
            "seconds": round(self.seconds, 1),
            "claims": self.claims,
            "records": [str(record.folder) for record in self.records],
            "figures": [str(path) for path in self.figures],
        }


def load(name: str) -> Record:
    """A run of the home by its id, a part of it, `last`, or the path of its folder."""
    return Record(Path(name)) if (Path(name) / "spec.json").exists() else find(name, home())


def run(
    name: str,
    scale: Scale = "quick",
    seeds: int | Iterable[int] = 1,
    settings: dict[str, Any] | None = None,
    device: str = "auto",
    on_row: Callable[[Spec, Row], None] = lambda spec, row: None,
) -> Result:
    """Run an experiment (or a user's file): finished records are reused, part-done ones resumed."""
    began = time.monotonic()
    experiment = find_experiment(name)
    specs = specs_of(experiment, scale, seeds, settings or {})
    records = run_all(specs, home(), choose_device(device)[0], on_row)
    claims = [entry.to_json() for entry in entries_of(experiment, records, scale, settings=settings)]
    stem = "-".join([experiment.name, scale, *(f"{field}={value}" for field, value in (settings or {}).items())])
    figures = draw({stem.replace("/", "_"): experiment.figure(records)})
    return Result(experiment, scale, time.monotonic() - began, claims, records, figures)


def specs_of(experiment: Experiment, scale: str, seeds: int | Iterable[int], settings: dict[str, Any]) -> list[Spec]:
    """The Specs of an experiment with some fields set otherwise."""
    if scale not in SCALES:
        raise EngramError(f"--scale {scale!r}: allowed are {', '.join(SCALES)}")
    chosen = range(seeds) if isinstance(seeds, int) else list(seeds)
    if not len(chosen):
        raise EngramError(f"--seeds {seeds}: at least one seed is needed")
    return [with_settings(spec, settings) if settings else spec for spec in experiment.specs(scale, chosen)]


def draw(figures: Mapping[str, "Figure"]) -> list[Path]:
    """Save figures by name into the home."""
    from engram.show.save import save_figure

    return [path for name, figure in figures.items() for path in save_figure(figure, home() / "figures", name)]


def write_report(path: Path, title: str, records: Sequence[Record], claims: Sequence[dict[str, Any]] = ()) -> Path:
    """One self-contained HTML file about records."""
    from engram.show.gallery import gallery

    return _write_report(path, title, [(record, gallery(record)) for record in records], claims)


def _write_report(path: Path, title: str, shown: Any, claims: Sequence[dict[str, Any]]) -> Path:
    from engram.show.report import report

    with writing_to(path):
        replace(path, report(title, shown, claims).encode())
    return path


def birth(fresh: bool, device: str, on_row: Callable[[Spec, Row], None]) -> tuple[Result, Path]:
    """The main job: one run of birth.joint at quick scale with all its pictures, and its report."""
    from engram.show.gallery import gallery

    began, experiment = time.monotonic(), find_experiment("birth.joint")
    specs = specs_of(experiment, "quick", [birth_seed(fresh)], {})
    (record,) = run_all(specs, home(), choose_device(device)[0], on_row)
    claims = [entry.to_json() for entry in entries_of(experiment, [record], "quick")]
    pictures = gallery(record)
    report = _write_report(
        home() / "reports" / "birth.html", "The birth of an induction head", [(record, pictures)], claims
    )
    figures = draw({f"birth-{picture.name}": picture.figure for picture in pictures})
    return Result(experiment, "quick", time.monotonic() - began, claims, [record], figures), report


def birth_seed(fresh: bool) -> int:
    """The seed that `engram birth` shows: the newest one begun, or with fresh the first one not finished."""
    experiment, seed = find_experiment("birth.joint"), 0
    while of_spec(experiment.specs("quick", [seed])[0], [home()]):
        seed += 1
    begun = (home() / run_id(experiment.specs("quick", [seed])[0]) / "spec.json").exists()
    return seed if fresh or begun or seed == 0 else seed - 1


def recheck(record: Record, steps: int = 20) -> dict[str, Any]:
    """A record against its digest and against a fresh run of its first steps.

    To the byte where versions, machine and threads are those of the record; else to 0.1 %.
    """
    if steps < 1:
        raise EngramError(f"--steps {steps}: at least one step must be compared")
    spec, sealed = (
        record.spec,
        record.ended is not None,
    )  # reading `ended` and `spec` verifies the digest and the name
    then = record.env["sittings"][0]
    torch.set_num_threads(min(then["threads"], cores()))
    same = _what_rounds(environment("cpu")) == _what_rounds(then)
    fresh = (row for _, row in measured_steps(spec)) if isinstance(spec, Train) else law_rows(spec)
    compared = min(steps, len(record.rows))
    mismatch = first_mismatch(record, islice(fresh, compared), to_the_byte=same)
    how = "to the byte" if same else "to 0.1 % (other versions, machine or threads than the record's)"
    seal = "digest holds" if sealed else "not finished, so without digest"
    if mismatch:
        told = f"step {mismatch.step}, {mismatch.column}: stored {mismatch.stored}, now {mismatch.again}"
        return {
            "ok": False,
            "record": record.id,
            "compared": compared,
            "message": f"{record.id}: differs at {told}",
        }
    message = f"{record.id}: {seal}; {compared} rows computed again agree {how}"
    return {"ok": True, "record": record.id, "compared": compared, "message": message}


def _what_rounds(env: dict[str, Any]) -> dict[str, Any]:
    return {name: env.get(name) for name in ("torch", "numpy", "machine", "system", "device", "threads", "path")}

"""Small runs to be damaged, what they are when nobody disturbs them, and how a disturbed one is judged."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

import torch

from engram.engines.local import Local, cores
from engram.errors import EngramError, Interrupted
from engram.experiments import find
from engram.learning import Moment
from engram.records import Record
from engram.records.audit import refuse_damaged
from engram.records.bundle import bundle
from engram.records.index import overview
from engram.records.writer import Writer, note
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.settings import with_settings
from engram.specs.spec import run_id

SMALL = {"task.T": 16, "task.K": 2, "model.d": 8, "plan.batch": 2}  # the lab can set these, too
SHORT, LONG = 12, 250  # steps of runs that are damaged when they lie there, and of those that are hit in flight


class Failed(Exception):
    """A fault that was neither survived nor named."""


@dataclass(frozen=True)
class Verdict:
    """`what` was done, and how it ended: survived or named; `said` is the line that named it."""

    what: str
    how: str
    said: str = ""


def small(seed: int = 0, steps: int = SHORT) -> Train:
    (spec,) = find("birth.joint").specs("smoke", [seed])
    return with_settings(spec, SMALL | {"plan.steps": steps})  # type: ignore[return-value]


def words(steps: int = LONG) -> list[str]:
    """The command that runs what `small` makes."""
    settings = [f"{name}={value}" for name, value in (SMALL | {"plan.steps": steps}).items()]
    return ["run", "birth.joint", "--scale", "smoke", "--set", *settings]


def as_in_the_lab(writer: Writer, moment: Moment) -> None:
    if moment.step % 3 == 0:
        writer.snapshot(moment.step, moment.weights, durable=False)
        writer.checkpoint(moment.step, moment.state)
        writer.show(moment.step, moment.weights)


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class Workshop:
    """A folder for everything; runs are prepared once and copied for each fault."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._numbers = count()
        self._truths: dict[tuple[str, int], dict[str, bytes]] = {}

    def fresh(self) -> Path:
        """An empty home."""
        home = self.folder / f"home{next(self._numbers)}"
        home.mkdir(parents=True)
        return home

    def truth(self, spec: Train, threads: int | None = None) -> dict[str, bytes]:
        """Rows and snapshots of an undisturbed run, with all threads or so many."""
        key = (run_id(spec), threads or 0)
        if key not in self._truths:
            home = self.fresh()
            if threads is None:
                go_on(spec, home)
            else:
                torch.set_num_threads(threads)
                execute(spec, home)
            found = contents(home / run_id(spec))
            self._truths[key] = {name: found[name] for name in found if name.startswith(("rows", "snapshots"))}
        return self._truths[key]

    @cached_property
    def finished(self) -> dict[int, Path]:
        """Finished runs as the lab keeps them, by seed."""
        return {seed: self._prepared(seed, SHORT + 1) for seed in (0, 1)}

    @cached_property
    def part_done(self) -> dict[int, Path]:
        """The same, stopped on the way, with what they show to those who watch."""
        return {seed: self._prepared(seed, 8) for seed in (0, 1)}

    def _prepared(self, seed: int, rows: int) -> Path:
        steps, home = iter(range(1000)), self.fresh()
        torch.set_num_threads(cores())
        with suppress(Interrupted):
            execute(small(seed), home, stop=lambda: next(steps) == rows, on_moment=as_in_the_lab)
        folder = home / run_id(small(seed))
        note(folder, 3, {"op": "limit", "value": 2.0})
        return folder

    @cached_property
    def bundles(self) -> dict[int, Path]:
        home = self.fresh()
        return {seed: bundle([Record(folder)], home / f"{seed}.zip") for seed, folder in self.finished.items()}

    def copy(self, folder: Path) -> Path:
        """In a home of its own."""
        return Path(shutil.copytree(folder, self.fresh() / folder.name))

    def clear(self) -> None:
        """What the last fault needed and the next one does not."""
        kept = {path.parent for paths in (self.finished, self.part_done, self.bundles) for path in paths.values()}
        for home in set(self.folder.glob("home*")) - kept:
            shutil.rmtree(home, ignore_errors=True)


def go_on(spec: Train, home: Path, on_row: Callable[[object, object], None] = lambda spec, row: None) -> Record:
    """What the same command does, in this process."""
    (record,) = Local(home).run([spec], on_row).all_records()
    return record


def refusal(act: Callable[[], object]) -> str | None:
    """The one line with which something was refused; None if it was done. Any other exception is a failure."""
    try:
        act()
    except EngramError as error:
        if "\n" in str(error) or "unexpected" in str(error):
            raise Failed(f"not one clear line: {error}") from error
        return str(error)
    except Exception as error:
        raise Failed(f"{type(error).__name__}: {error}") from error
    return None


def judged(
    shop: Workshop, spec: Train, home: Path, what: str, threads: int | None = None, known: bool = False
) -> Verdict:
    """A run goes on to the true result, or is refused and loses nothing; `known`: its damage was named before."""
    overview(home)
    folder = home / run_id(spec)
    before = contents(folder)
    said = refusal(lambda: go_on(spec, home))
    if said is None:
        refuse_other_result(shop, spec, home, threads, known)
        return Verdict(what, "survived")
    lost = lost_of(before, contents(folder))
    if lost:
        raise Failed(f"{what}: refused ({said}), but {lost} changed")
    return Verdict(what, "named", said)


def lost_of(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """What is gone or was changed; a run that went on before it was refused has more lines, and a later state."""
    grown = {name for name in ("rows.jsonl", "events.jsonl") if after.get(name, b"").startswith(before.get(name, b""))}
    replaced = {"env.json", "state.safetensors", "timing.jsonl"}
    changed = {name for name, content in before.items() if after.get(name) != content}
    changed.discard("live.safetensors")  # shown to those who watch and promised to nobody: whoever opens a run drops it
    return sorted(changed - grown - (replaced if after.get("rows.jsonl") != before.get("rows.jsonl") else set()))


def refuse_other_result(
    shop: Workshop, spec: Train, home: Path, threads: int | None = None, known: bool = False
) -> None:
    """A finished run has the rows and weights of an undisturbed one; and it is whole, unless its damage is known."""
    record = Record(home / run_id(spec))
    if not record.finished:
        raise Failed(f"{record.id} is not finished")
    truth = shop.truth(spec, threads)
    found = contents(record.folder)
    names = ["rows.jsonl"] if known else list(truth)
    other = [name for name in names if found.get(name) != truth[name]]
    if other:
        raise Failed(f"{record.id} has other {other[0]} than an undisturbed run")
    said = refusal(lambda: refuse_damaged(record))
    if said is not None and not known:
        raise Failed(f"{record.id} is finished, but {said}")

"""The terminal view: memories rising as bars, or plain lines where there is no terminal. All of it on stderr."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from engram.probes.columns import memories
from engram.records.files import Row
from engram.show.progress import Progress, clock
from engram.specs import Spec, Train
from engram.specs.spec import run_id
from engram.text import printable

SECONDS_BETWEEN_LINES = 10.0
BAR = 32
MOST_COLUMNS = 5  # that are told of a run under way
FEW = 10  # runs; of more than these nobody reads every birth


class View:
    """Shows runs as their rows come in: `with View(specs) as on_row: engine.run(specs, on_row)`.

    names   what tells runs apart besides their seed, by run id
    """

    def __init__(self, specs: Sequence[Spec], console: Console | None = None, names: Mapping[str, str] | None = None):
        self.console = console or Console(stderr=True)
        self.runs = {run_id(spec): Progress(spec) for spec in specs}
        self._names = names if names and len(set(names.values())) > 1 else {}
        self._live = (
            Live(console=self.console, auto_refresh=False, transient=True) if self.console.is_terminal else None
        )
        self._spoke = 0.0

    def __enter__(self) -> Callable[[Spec, Row], None]:
        if self._live:
            self._live.start()
        return self.see

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            if self._live:
                self._live.stop()

    def see(self, spec: Spec, row: Row) -> None:
        """A run goes on, and is saved, when the terminal that it is shown in is closed."""
        with suppress(OSError):
            self._show(spec, row)

    def _show(self, spec: Spec, row: Row) -> None:
        run = self.runs[run_id(spec)]
        prefix = f"{self._called(spec)}: " if len(self.runs) > 1 else ""
        news = run.see(row)
        if not isinstance(spec, Train):
            return  # a Check is over before a person could read a line about it
        for sentence in news if len(self.runs) <= FEW else ():
            self.console.print(Text.assemble("  ", ("●", "bold green"), f" {prefix}{printable(sentence)}"))
        last = run.step == spec.steps
        now = time.monotonic()
        if self._live and (last or now - self._spoke > 0.1):
            self._live.update(self._picture(), refresh=True)
            self._spoke = now
        elif not self._live and (last or now - self._spoke > SECONDS_BETWEEN_LINES):
            print(f"{prefix}{line(run)}", file=sys.stderr, flush=True)
            self._spoke = now

    def _called(self, spec: Spec) -> str:
        """frozen · K=3, seed 0"""
        return printable(", ".join(filter(None, [self._names.get(run_id(spec), ""), f"seed {spec.seed}"])))

    def _picture(self) -> RenderableType:
        """A single run as bars; of many how many are over, and a line for each that is under way."""
        if len(self.runs) > 1:
            runs = [run for run in self.runs.values() if isinstance(run.spec, Train)]
            over = sum(run.step == run.spec.steps for run in runs)
            under_way = [run for run in runs if run.latest and run.step < run.spec.steps]
            told = [f"{self._called(run.spec)}  {line(run)}" for run in under_way]
            return Group(*map(Text, [f"{over} of {len(runs)} trainings over", *told]))
        (run,) = self.runs.values()
        return Group(_bars(run), Text(f"  {line(run)}", style="dim"))


def line(run: Progress) -> str:
    """step 120/400 · accuracy 0.71 · loss 1.32 · 0.11 M tokens/s · 1 min 12 s left"""
    parts = [f"step {run.step}/{run.spec.steps}"]
    told = [name for name in run.latest if name == "loss" or name.startswith("accuracy.")][:MOST_COLUMNS]
    parts += [f"{name.replace('.', ' ').replace('_', '-')} {run.latest[name]:.3f}" for name in told]
    if run.tokens_per_second:
        parts.append(f"{_short(run.tokens_per_second)} tokens/s")
    if run.step < run.spec.steps and run.seconds_left is not None:
        parts.append(f"{clock(run.seconds_left)} left")
    return printable(" · ".join(parts))


def _short(number: float) -> str:
    return f"{number / 1e6:.2f} M" if number >= 10_000 else f"{number:,.0f}"


def _bars(run: Progress) -> Table:
    """Progress, accuracy and the recall of each memory."""
    table = Table.grid(padding=(0, 1))
    rows = [("steps", run.step / max(1, run.spec.steps), "white")]
    if "accuracy.in_context" in run.latest:
        rows.append(("in-context accuracy", run.latest["accuracy.in_context"], "cyan"))
    rows += [(memory.title, run.latest[memory.name], "green") for memory in memories(run.latest)]
    for name, value, colour in rows:
        bar = ProgressBar(total=1.0, completed=value, width=BAR, complete_style=colour, finished_style=colour)
        table.add_row(Text(f"  {printable(name)}"), bar, f"{value:.2f}")
    return table

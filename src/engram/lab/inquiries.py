"""Questions about a run that take a moment: its circuit, its spectra, and what an intervention would do.

In a thread of their own, with eyes of their own: neither pictures nor the trainer wait. A page has one of each kind in
flight and asks the latest only.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engram.lab.circuits import circuit
from engram.lab.effects import effect, steered_model
from engram.lab.protocol import AskedOfRun, Circuit, Cut, Effect, Spectra, Spectrum
from engram.lab.run_reader import RunReader
from engram.lab.sources import weights_of
from engram.lab.spectra import cut, history, spectrum
from engram.lab.watched_run import Cache, WatchedRun
from engram.models import Weights

MOST_KEPT = 128  # answers
MOST_HISTORIES = 8  # runs


class Inquiries:
    """Of one home; `computed` are weights of steps that are not stored, by run."""

    def __init__(self, home: Path, computed: Callable[[str], dict[int, Weights]]):
        self._reader, self._weights_of = RunReader(home, computed), weights_of(home)
        self._made, self._histories = Cache(), Cache()

    def answer(self, asked: AskedOfRun) -> dict[str, Any]:
        began = time.monotonic()
        run = self._reader.seen(asked.run)
        step = run.stored_step(asked.step)
        told = {"t": asked.t, "id": asked.id, "run": run.id, "step": step} | self._found(asked, run, step)
        return told | {"seconds": round(time.monotonic() - began, 3)}

    def _found(self, asked: AskedOfRun, run: WatchedRun, step: int) -> dict[str, Any]:
        match asked:
            case Spectra():
                kept = self._histories.get_or(run.id, Cache, most=MOST_HISTORIES)
                return history(run, asked.matrix, kept)
            case Effect():
                return self._effect(asked, run, step)
            case Circuit():
                return self._kept(asked, run, step, lambda: circuit(run.spec, run.model(step)))
            case Spectrum():
                return self._kept(asked, run, step, lambda: spectrum(run.spec, run.model(step)))
            case Cut():
                return self._kept(asked, run, step, lambda: cut(run.spec, run.model(step), asked.matrix, asked.shares))

    def _kept(
        self, asked: AskedOfRun, run: WatchedRun, step: int, make: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        key = (run.id, step, asked.model_copy(update={"id": 0, "step": None}).model_dump_json())
        return self._made.get_or(key, make, most=MOST_KEPT)

    def _effect(self, asked: Effect, run: WatchedRun, step: int) -> dict[str, Any]:
        before = steered_model(run, step, asked.kind, dict(asked.fields), self._weights_of)
        return effect(before, run.spec, None if asked.tokens is None else np.array(asked.tokens), asked.position)

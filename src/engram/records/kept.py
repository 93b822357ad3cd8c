"""Kept: a run as it lies on disk or in a bundle, JSON and rows. Loads no torch and runs no code of the record."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from engram.errors import EngramError, did_you_mean
from engram.probes.columns import memories
from engram.records import about, files, stored_spec, trust
from engram.records.about import About
from engram.records.files import Place, Row, corrupt
from engram.records.table import Table, lines_in, naming_damage, texts_in


@dataclass(frozen=True)
class Kept:
    """What can be said about a run from plain JSON."""

    place: Place

    @property
    def id(self) -> str:
        return self.place.name

    @property
    def folder(self) -> Path:
        """Where the record lies on disk; one in a bundle can only be read."""
        if not isinstance(self.place, Path):
            raise EngramError(f"record {self.id} lies in a bundle ({self.place}) and can only be read")
        return self.place

    @cached_property
    def spec_json(self) -> dict[str, Any]:
        return files.read_json(self.place, "spec.json")

    @property
    def kind(self) -> str:
        """Train, Check or Search."""
        try:
            return stored_spec.kind_of(self.spec_json)
        except EngramError as error:
            raise corrupt(self.place, str(error)) from None

    @cached_property
    def code(self) -> dict[str, bytes]:
        """The user's files whose classes the Spec names, as they are when first asked for; none is run by reading."""
        named = stored_spec.own_files(self.spec_json)
        there = {file.name for file in files.inside(self.place / "code")}
        return {name: files.read(self.place / "code", name) for name in sorted(there.intersection(named))}

    @property
    def is_plain(self) -> bool:
        """Whether only classes of Engram itself occur in the Spec."""
        return not stored_spec.own_files(self.spec_json)

    @property
    def may_run(self) -> bool:
        """Whether the Spec can be built here: it needs no code but that of Engram and what this user trusts."""
        code = self.code
        return set(stored_spec.own_files(self.spec_json)) <= set(code) and not trust.untrusted(code)

    def trust(self) -> None:
        """From now on the code of this record may run on this machine."""
        trust.trust(self.code.values())

    @cached_property
    def ended(self) -> dict[str, Any] | None:
        """The digest, once the run has ended, checked against Spec and rows; None before."""
        if not (self.place / "digest.json").exists():
            return None
        digest = files.read_json(self.place, "digest.json", "end")
        for name in ("spec.json", "rows.jsonl"):
            if digest.get(name) != self._sha256(name):
                raise corrupt(self.place, f"{name} does not match the digest: it was changed or truncated")
        return digest

    def _sha256(self, name: str) -> str:
        total = hashlib.sha256()
        for piece in files.pieces(self.place, name):
            total.update(piece)
        return total.hexdigest()

    @property
    def finished(self) -> bool:
        """Whether the run reached its end; one that diverged has ended, but not finished."""
        return self.ended is not None and self.ended["end"] == "finished"

    @cached_property
    def env(self) -> dict[str, Any]:
        env = files.read_json(self.place, "env.json", "sittings")
        sittings = env["sittings"] if isinstance(env["sittings"], list) else []
        if not sittings or not all(isinstance(sitting, dict) and "threads" in sitting for sitting in sittings):
            raise corrupt(self.place, "env.json is unreadable")
        if env.get("digest", files.digest_of(env)) != files.digest_of(env):
            raise corrupt(self.place, "env.json does not match its own digest: it was changed")
        return env

    @property
    def about(self) -> About:
        """What it was made for, tags and a note, as they are now."""
        return about.read(self.place)

    @cached_property
    def rows(self) -> list[Row]:
        """All rows as they were written; of long runs, columns are read faster and take less memory."""
        return list(self._parsed())

    def head(self, n: int) -> list[Row]:
        """The first rows."""
        return list(islice(self._parsed(), n))

    @cached_property
    def table(self) -> Table:
        """The rows by column."""
        table = Table()
        with naming_damage(self.place):
            for text in texts_in(self._content()):
                table.add_text(text)
        return table

    def _parsed(self) -> Iterator[Row]:
        table = Table()
        with naming_damage(self.place):
            for lines in lines_in(self._content()):
                yield from table.add(lines)

    def _content(self) -> Iterator[bytes]:
        if self.ended is not None or (self.place / "rows.jsonl").exists():
            yield from files.pieces(self.place, "rows.jsonl")

    def column(self, name: str) -> np.ndarray:
        """One value for each row; NaN where it was not measured."""
        self._refuse_unknown(name)
        return self.table.dense(name)

    def curve(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The steps at which a column was measured, and its values there."""
        self._refuse_unknown(name)
        column = self.table.columns[name]
        return column.steps.astype(float), column.values.copy()

    def last(self, name: str) -> float:
        """The value in the last row, or NaN if that row has none; an error for a column that was never measured."""
        return float(self.column(name)[-1])

    def birth(self, column: str, level: float = 0.5) -> int | None:
        """The first step at which a column, such as the recall of a memory, is above the level; None if it never is."""
        steps, values = self.curve(column)
        above = steps[values > level]
        return int(above[0]) if len(above) else None

    def births(self, level: float = 0.5) -> dict[str, int | None]:
        """For each memory whose recall was measured the step of its birth, or None."""
        return {m.name.removeprefix("recall."): self.birth(m.name, level) for m in memories(self.columns)}

    @property
    def last_step(self) -> int:
        """The step of the last row; 0 if there is none."""
        return int(self.table.last_row().get("step", 0)) if len(self.table) else 0

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order in which they first occur."""
        return list(self.table.columns)

    def _refuse_unknown(self, name: str) -> None:
        if name not in self.table.columns:
            hint = did_you_mean(name, self.columns)
            raise EngramError(f"record {self.id} has no column {name!r}; {hint}it has: {', '.join(self.columns)}")

    @property
    def texts(self) -> list[str]:
        """The files of texts that the record carries."""
        return sorted(f"texts/{file.name}" for file in files.inside(self.place / "texts") if file.suffix == ".json")

    @property
    def snapshot_steps(self) -> list[int]:
        """The steps whose weights are stored."""
        return list(files.numbered(self.place / "snapshots"))

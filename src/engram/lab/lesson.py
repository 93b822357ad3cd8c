"""A lesson: text beside a run. Its head names the runs that it needs, as presets with settings (docs/lessons.md)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.errors import EngramError, did_you_mean
from engram.lab.all_fields import written
from engram.lab.lesson_blocks import Block, Line, blocks
from engram.lab.lesson_words import Wrong, each
from engram.lab.presets import chosen, presets, seconds_of
from engram.plain import read_plain
from engram.specs import Train
from engram.specs.settings import parse_settings
from engram.specs.spec import run_id

LARGEST = 2**18  # bytes of a lesson
RULE = "---"
OF_LESSON, OF_RUN = ("title", "about"), ("preset", "seed", "set")
MOST_RUNS = 8


@dataclass(frozen=True)
class LessonRun:
    """A run that a lesson needs; `line` is where it is asked for."""

    name: str
    preset: str
    seed: int
    settings: dict[str, Any]
    line: int

    @property
    def spec(self) -> Train:
        try:
            return chosen(self.preset, self.seed, self.settings)
        except EngramError as error:
            raise Wrong(self.line, str(error)) from None

    def to_json(self) -> dict[str, Any]:
        spec = self.spec
        about = {
            "name": self.name,
            "run": run_id(spec),
            "steps": spec.steps,
            "seconds": seconds_of(presets()[self.preset]),
        }
        settings = {name: v if isinstance(v, bool | int | float) else written(v) for name, v in self.settings.items()}
        return about | {"preset": self.preset, "seed": self.seed, "settings": settings}


@dataclass(frozen=True)
class Lesson:
    """`name` is that of its file."""

    name: str
    title: str
    about: str
    runs: tuple[LessonRun, ...]
    blocks: list[Block]

    def listed(self) -> dict[str, str]:
        return {"name": self.name, "title": self.title, "about": self.about}

    def to_json(self) -> dict[str, Any]:
        return self.listed() | {"runs": [run.to_json() for run in self.runs], "blocks": self.blocks}

    def checked(self) -> "Lesson":
        """Every run can be made, and has the steps to which the lesson leads."""
        specs = {run.name: run.spec for run in self.runs}
        for place in each(self.blocks, lambda part: part.get("go") or part.get("value") or part.get("measured")):
            if isinstance(place, dict):
                _refuse_steps(place, specs, self.runs[0].name)
        return self


def _refuse_steps(place: dict[str, Any], specs: dict[str, Train], first: str) -> None:
    name = place.get("run") or first
    if name not in specs:
        known = ", ".join(specs)
        raise Wrong(place["line"], f"run={name}: no such run; {did_you_mean(name, specs)}this lesson has: {known}")
    for key in ("step", "minus"):
        if isinstance(step := place.get(key), int) and step > specs[name].steps:
            raise Wrong(place["line"], f"{key}={step}: run {name} ends at step {specs[name].steps}")


def read_lesson(path: Path) -> Lesson:
    """A lesson from a file that the user named, or that comes with Engram."""
    try:
        text = read_plain(path, LARGEST, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EngramError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise EngramError(f"{path}: cannot be read ({error.strerror}); give a lesson, a file with .md") from None
    try:
        return lesson(path.stem, text).checked()
    except Wrong as wrong:
        raise EngramError(f"{path}: {wrong}") from None


def lesson(name: str, text: str) -> Lesson:
    """What a text says; what is wrong with it is told with its line."""
    lines = [(number, line.rstrip()) for number, line in enumerate(text.splitlines(), 1)]
    head, body = _split(lines)
    told, runs = _told(head), tuple(_runs(head))
    if "title" not in told:
        raise Wrong(1, "title: is missing; write title: and the title of the lesson")
    if not runs:
        raise Wrong(1, "run: is missing; write run: and a name, and below it preset: and a preset of `engram lab`")
    if twice := {run.name for run in runs if sum(run.name == other.name for other in runs) > 1}:
        raise Wrong(1, f"run: two runs are called {twice.pop()}; every run has a name of its own")
    return Lesson(name, told["title"], told.get("about", ""), runs, blocks(body))


def _split(lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    rules = [i for i, (_, line) in enumerate(lines) if line == RULE][:2]
    if len(rules) < 2 or rules[0] != 0:
        raise Wrong(1, f"a lesson begins with its head, between two lines {RULE}: title, run, preset, seed, set")
    return list(lines[1 : rules[1]]), list(lines[rules[1] + 1 :])


def _pairs(head: Sequence[Line]) -> Iterator[tuple[int, str, str]]:
    allowed = (*OF_LESSON, "run", *OF_RUN)
    for line, text in head:
        key, colon, value = (part.strip() for part in text.partition(":"))
        if text.strip() and (not colon or key not in allowed):
            raise Wrong(line, f"{key}: no such line here; {did_you_mean(key, allowed)}allowed: {', '.join(allowed)}")
        if text.strip() and not value:
            raise Wrong(line, f"{key}: is empty; say what it is, or leave the line out")
        if text.strip():
            yield line, key, value


def _told(head: Sequence[Line]) -> dict[str, str]:
    found = dict[str, str]()
    for line, key, value in _pairs(head):
        if key in found:
            raise Wrong(line, f"{key}: is there twice; say it once")
        if key in OF_LESSON:
            found[key] = value
    return found


def _runs(head: Sequence[Line]) -> Iterator[LessonRun]:
    """Each begins with its name; the lines below it say how it is made."""
    parts = list[tuple[int, str, dict[str, list[str]]]]()
    for line, key, value in _pairs(head):
        if key == "run":
            parts.append((line, value, {}))
        elif key in OF_RUN and not parts:
            raise Wrong(line, f"{key}: of which run? write run: and a name above it")
        elif key in OF_RUN:
            parts[-1][2].setdefault(key, []).append(value)
    if len(parts) > MOST_RUNS:
        raise Wrong(parts[MOST_RUNS][0], f"run: at most {MOST_RUNS}; this is one more")
    for line, name, said in parts:
        yield _run(line, name, said)


def _run(line: int, name: str, said: dict[str, list[str]]) -> LessonRun:
    if not re.fullmatch(r"[a-z][\w-]{0,31}", name, re.ASCII):
        raise Wrong(line, f"run: {name!r} is no name; use small letters, digits and -, a letter first")
    if len(said.get("preset", [])) != 1 or len(said.get("seed", [])) > 1:
        raise Wrong(line, f"run {name}: has one line preset: and at most one line seed:")
    seed = said.get("seed", ["0"])[0]
    if not re.fullmatch(r"\d{1,15}", seed, re.ASCII):
        raise Wrong(line, f"seed: must be a whole number from 0; got {seed!r}")
    try:
        settings = parse_settings(tuple(said.get("set", [])))
    except EngramError as error:
        raise Wrong(line, str(error).replace("--set", "set:")) from None
    return LessonRun(name, said["preset"][0], int(seed), settings, line)

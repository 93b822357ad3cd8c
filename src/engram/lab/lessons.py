"""The lessons that come with Engram, and one of the user's own; for the command line and the page."""

from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from engram.errors import EngramError, did_you_mean
from engram.lab.lesson import Lesson, read_lesson
from engram.lab.lesson_messages import AskedOfLessons, LessonAsked

FOLDER = files("engram") / "data/lessons"
SHIPPED = ("memory", "birth", "facts")  # in the order in which they are read


def shipped(name: str) -> Lesson:
    with as_file(FOLDER / f"{name}.md") as path:
        return read_lesson(path)


def find(name: str) -> Lesson:
    """By its name, or from a file of the user's own."""
    if name in SHIPPED:
        return shipped(name)
    if Path(name).suffix != ".md":
        known = ", ".join(SHIPPED)
        raise EngramError(
            f"lesson: no {name!r}; {did_you_mean(name, SHIPPED)}there are: {known}; or give your own file, with .md"
        )
    return read_lesson(Path(name))


class Shelf:
    """What a page can read: the lessons that come with Engram, after those of the user's own."""

    def __init__(self, own: Sequence[Lesson] = ()):
        self._own = {lesson.name: lesson for lesson in own}

    def _all(self) -> list[Lesson]:
        return [*self._own.values(), *(shipped(name) for name in SHIPPED if name not in self._own)]

    def answer(self, asked: AskedOfLessons) -> dict[str, Any]:
        if not isinstance(asked, LessonAsked):
            return {"t": "lessons", "id": asked.id, "lessons": [lesson.listed() for lesson in self._all()]}
        found = self._own.get(asked.name) or (shipped(asked.name) if asked.name in SHIPPED else None)
        if found is None:
            raise EngramError(f"lesson: no {asked.name!r} here; a file of your own is opened by `engram lesson FILE`")
        return {"t": "lesson", "id": asked.id} | found.to_json()

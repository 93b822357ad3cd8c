"""What a page asks about lessons (engram.lab.protocol)."""

from typing import Literal

from engram.lab.message import Id, Message, Name


class Lessons(Message):
    """Which lessons there are."""

    t: Literal["lessons"]
    id: Id


class LessonAsked(Message):
    """The text of one, and the runs that it needs."""

    t: Literal["lesson"]
    id: Id
    name: Name


AskedOfLessons = Lessons | LessonAsked

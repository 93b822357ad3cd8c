"""What a page sends with a file of the user's own (engram.lab.protocol)."""

from typing import Annotated, Literal

from pydantic import Field

from engram.lab.message import Id, Message, Name, Typed

MOST_UPLOAD = 2**20  # bytes of a file


class Upload(Message):
    """Start a training on a file: a text of letters for the task of a preset, or a CSV of facts.

    kind        text: it becomes task.corpus of the preset; facts: as `engram fact learn` reads it, without a preset
    name        what the file is called; only shown
    settings    of the preset; of facts: steps, width
    """

    t: Literal["upload"]
    id: Id
    kind: Literal["text", "facts"]
    name: Name
    content: Annotated[str, Field(min_length=1, max_length=MOST_UPLOAD)]
    preset: Name | None = None
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    settings: Annotated[dict[Name, bool | int | float | Typed], Field(max_length=64)] = {}

"""What a page asks about a model of others, or about a run as one (engram.lab.protocol)."""

from typing import Annotated, Literal

from pydantic import Field

from engram.lab.message import Id, Name, OfModel, Text


class Heads(OfModel):
    """Both scores of every head, and the losses of what comes twice."""

    t: Literal["heads"]


class Compose(OfModel):
    """Which earlier head feeds the keys of the strongest induction heads."""

    t: Literal["compose"]


class Copying(OfModel):
    """Whether heads write the token that they look at."""

    t: Literal["copying"]


class Truncate(OfModel):
    """What the model says, and its loss on text, with one matrix truncated to a share of its singular values.

    matrix   its letter: Q, K, V, O, G (gate), I (up), F (down)
    """

    t: Literal["truncate"]
    layer: Annotated[int, Field(ge=1, le=10**4)]
    matrix: Literal["Q", "K", "V", "O", "G", "I", "F"]
    share: Annotated[float, Field(ge=0, le=1)]
    prompt: Text
    answer: Name
    rival: Name = ""


class Edit(OfModel):
    """Write another answer to a prompt into the model, on top of the edits in force."""

    t: Literal["edit"]
    prompt: Text
    answer: Name


class Undo(OfModel):
    """Take an edit away; `edit` is its number in the list of `state`."""

    t: Literal["undo"]
    edit: Id


AskedOfModel = Heads | Compose | Copying | Truncate | Edit | Undo

"""What a page asks about the facts of a run (engram.lab.protocol)."""

from typing import Annotated, Literal

from pydantic import Field

from engram.lab.message import Id, Message, Name, OfModel, Step


class FactTable(OfModel):
    """All facts of a run about facts, as its model believes them.

    look_back    seconds that the answer may take to look at further stored steps, for when each fact was learned
    """

    t: Literal["facts"]
    look_back: Annotated[float, Field(ge=0, le=1)] = 0


class FactEdits(OfModel):
    """What rewriting a fact at a step would do; nothing is written."""

    t: Literal["fact_edit"]
    subject: Name
    relation: Name
    answer: Name


class FactWrite(OfModel):
    """Rewrite a fact as an intervention: the run is forked at the step of these weights."""

    t: Literal["fact_write"]
    subject: Name
    relation: Name
    answer: Name


class AddFacts(Message):
    """Facts join the data at a step, or now, as an intervention: those that are named, or so many that are drawn."""

    t: Literal["add_facts"]
    id: Id
    run: Name
    at: Step | None = None
    facts: Annotated[tuple[tuple[Name, Name, Name], ...], Field(max_length=256)] = ()
    draw: Annotated[int, Field(ge=0, le=1000)] = 0


AskedOfFacts = FactTable | FactEdits | FactWrite | AddFacts

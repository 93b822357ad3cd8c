"""What every message of a page has: checked by pydantic, unknown fields refused (engram.lab.protocol)."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(max_length=200)]
Typed = Annotated[str, Field(max_length=1000)]  # into a field
Step = Annotated[int, Field(ge=0, le=10**9)]
Id = Annotated[int, Field(ge=0, le=2**31)]
Text = Annotated[str, Field(max_length=4096)]
Token = Annotated[int, Field(ge=0, le=2**20)]


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class OfModel(Message):
    """A question about a model at a revision of it (None: the last)."""

    id: Id
    run: Name
    step: Step | None = None

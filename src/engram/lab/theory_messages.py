"""What a page asks of theory (engram.lab.protocol)."""

from typing import Annotated, Literal

from pydantic import Field

from engram.lab.message import Id, Message, Name, OfModel


class Theory(OfModel):
    """What theory says of a run, beside what was measured."""

    t: Literal["theory"]


class Predict(Message):
    """What theory says of other sizes: width d, how many pairs or facts, the step size. None: those of the run."""

    t: Literal["predict"]
    id: Id
    run: Name
    d: Annotated[int, Field(ge=1, le=10**6)] | None = None
    store: Annotated[int, Field(ge=1, le=10**9)] | None = None
    lr: Annotated[float, Field(gt=0, le=10**6)] | None = None


class Levels(Message):
    """The losses and accuracies of the best predictor, were there K triggers."""

    t: Literal["levels"]
    id: Id
    run: Name
    K: Annotated[int, Field(ge=1, le=1000)]


AskedOfTheory = Theory | Predict | Levels

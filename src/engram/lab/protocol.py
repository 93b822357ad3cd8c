"""What the page and the server say to each other (docs/lab-protocol.md is written from here).

The page sends JSON: what it wants to see (`view`, the latest wins), questions, and commands. The server sends JSON
(`"t"` names the kind) and binary frames:

    u32 length of the header | header, JSON, padded to 4 bytes | values, row by row, little-endian

A frame of dtype u8 holds q = 0 … 255 for the value lo + q (hi − lo) / 255; f4 holds the values themselves.
"""

import json
import struct
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from engram.errors import EngramError
from engram.lab.fact_messages import AskedOfFacts
from engram.lab.lesson_messages import AskedOfLessons
from engram.lab.message import Id, Message, Name, Step, Token, Typed
from engram.lab.model_messages import AskedOfModel
from engram.lab.theory_messages import AskedOfTheory
from engram.lab.upload_messages import MOST_UPLOAD, Upload

VERSION = 7
LARGEST = 2**16  # bytes of a message
LARGEST_MESSAGE = 2 * MOST_UPLOAD + LARGEST  # of one that brings a file, in which signs are escaped


class View(Message):
    """What a page shows: of this run, at this step (None: the newest), these pictures.

    pictures   memory:W_O2 (in its association basis) · raw:W_O2 (entries) · attention:2.1 (layer.head, on `tokens`)
    minus      a step whose picture is subtracted
    minus_run  of this run, B; None: of the same run. Attention of both is on one sequence, that of `run`
    shows      "other": pictures and predictions of B at `minus`, in place of what is left when it is subtracted
    tokens     the sequence of attention pictures; None: one of the task's own
    ablate     heads, as [layer, head], that write nothing in attention pictures and predictions
    reads      whether it shows what the model predicts on the sequence
    rows_from  rows before this step are not sent again
    serial     comes back in the tick that ends what was made for this view
    """

    t: Literal["view"]
    run: Name
    step: Step | None = None
    pictures: Annotated[tuple[Name, ...], Field(max_length=256)] = ()
    minus: Step | None = None
    minus_run: Name | None = None
    shows: Literal["run", "other"] = "run"
    tokens: Annotated[tuple[Token, ...], Field(min_length=1, max_length=4096)] | None = None
    ablate: Annotated[tuple[tuple[Id, Id], ...], Field(max_length=64)] = ()
    dtype: Literal["u8", "f4"] = "u8"
    hz: Annotated[float, Field(ge=0.1, le=30)] = 2.0
    reads: bool = False
    also: Annotated[tuple[Name, ...], Field(max_length=48)] = ()
    rows_from: Annotated[dict[Name, Step], Field(max_length=64)] = {}
    serial: Id = 0


class Cell(Message):
    """One entry of a memory: key, value, score, rank, margin."""

    t: Literal["cell"]
    id: Id
    run: Name
    step: Step | None = None
    picture: Name
    row: Step
    column: Step
    minus: Step | None = None
    minus_run: Name | None = None


class Array(Message):
    """A picture at full precision, as numbers to take away: the answer is a frame of dtype f4 with this id."""

    t: Literal["array"]
    id: Id
    run: Name
    step: Step | None = None
    picture: Name
    minus: Step | None = None
    minus_run: Name | None = None
    tokens: Annotated[tuple[Token, ...], Field(min_length=1, max_length=4096)] | None = None
    ablate: Annotated[tuple[tuple[Id, Id], ...], Field(max_length=64)] = ()


class Sequence(Message):
    """A sequence of the user's own (text, or token ids): predictions and where they come from."""

    t: Literal["sequence"]
    id: Id
    run: Name
    step: Step | None = None
    text: Annotated[str, Field(max_length=4096)] | None = None
    tokens: Annotated[tuple[Token, ...], Field(max_length=4096)] | None = None
    ablate: Annotated[tuple[tuple[Id, Id], ...], Field(max_length=64)] = ()


class Tokens(Message):
    """Which tokens a text is in a run."""

    t: Literal["tokens"]
    id: Id
    run: Name
    text: Annotated[str, Field(max_length=4096)]


class Runs(Message):
    """All runs, and the presets from which a run can be started."""

    t: Literal["runs"]


class Start(Message):
    """Start a preset with some fields set otherwise (lists and null as JSON, in a text), or go on with a run."""

    t: Literal["start"]
    id: Id
    preset: Name | None = None
    run: Name | None = None
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 0
    settings: Annotated[dict[Name, bool | int | float | Typed], Field(max_length=64)] = {}


class Fields(Message):
    """All fields of a preset that `start` can set."""

    t: Literal["fields"]
    id: Id
    preset: Name


class Control(Message):
    """To the trainer: pause; resume; take some steps; at most so many steps a second (0: as fast as it can)."""

    t: Literal["control"]
    id: Id
    op: Literal["pause", "resume", "step", "limit"]
    value: Annotated[float, Field(ge=0, le=10**9)] = 0


class Intervene(Message):
    """An event (engram.specs.events; `about` names the kinds and their fields) at a step, or now: the run is forked
    there and the fork goes on."""

    t: Literal["intervene"]
    id: Id
    run: Name
    kind: Name
    at: Step | None = None
    fields: Annotated[dict[Name, bool | int | float | Name], Field(max_length=8)] = {}


class Weights(Message):
    """The weights of any step of a run at rest: stored, or computed again. What a page asked for before is given up."""

    t: Literal["weights"]
    id: Id
    run: Name
    step: Step


class OfRun(Message):
    """A question about a run at a step (None: the newest), answered in a thread of its own."""

    id: Id
    run: Name
    step: Step | None = None


class Circuit(OfRun):
    """What each part adds to the right answer, who reads whom, and the roles that probes confirm."""

    t: Literal["circuit"]


class Effect(OfRun):
    """What an intervention (`kind` and `fields` as in `intervene`) would do at this step: nothing is changed.

    tokens      the sequence; None: one of the task's own
    position    where it is looked at, from 0; None: the last position at which something is asked
    """

    t: Literal["effect"]
    kind: Name
    fields: Annotated[dict[Name, bool | int | float | Name], Field(max_length=8)] = {}
    tokens: Annotated[tuple[Token, ...], Field(min_length=1, max_length=4096)] | None = None
    position: Step | None = None


class Spectrum(OfRun):
    """The singular values of every matrix."""

    t: Literal["spectrum"]


class Spectra(OfRun):
    """The leading singular values of a matrix at all stored steps, as far as they are computed in a moment."""

    t: Literal["spectra"]
    matrix: Name


class Cut(OfRun):
    """What is said on unseen sequences with a matrix truncated to shares of its singular values."""

    t: Literal["cut"]
    matrix: Name
    shares: Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=1, max_length=21)]


AskedOfRun = Circuit | Effect | Spectrum | Spectra | Cut
AskedOfPanels = AskedOfFacts | AskedOfTheory
Said = (
    View
    | Cell
    | Array
    | Sequence
    | Tokens
    | Runs
    | Start
    | Fields
    | Upload
    | Control
    | Intervene
    | Weights
    | AskedOfModel
    | AskedOfRun
    | AskedOfPanels
    | AskedOfLessons
)
_SAID: TypeAdapter[Said] = TypeAdapter(Annotated[Said, Field(discriminator="t")])


def parse(text: str | bytes) -> Said:
    """A message of the page, or EngramError with what is wrong with it."""
    if len(text) > LARGEST_MESSAGE:
        raise EngramError(f"message refused: {len(text)} bytes, at most {LARGEST_MESSAGE} are taken")
    try:
        said = _SAID.validate_json(text, strict=False)
    except (ValidationError, UnicodeDecodeError, RecursionError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        place = ".".join(str(part) for part in first["loc"])
        raise EngramError(f"message refused: {place + ': ' if place else ''}{first['msg']}") from None
    if len(text) > LARGEST and not isinstance(said, Upload):
        raise EngramError(f"message refused: {len(text)} bytes, at most {LARGEST} are taken")
    return said


def schema() -> dict[str, Any]:
    """The JSON Schema of what the page may say."""
    return _SAID.json_schema()


def frame(header: dict[str, Any], values: np.ndarray, dtype: str = "u8") -> bytes:
    """A picture as bytes; an entry that is no number is shown as the least one."""
    values = np.ascontiguousarray(values, dtype="<f4")
    about = header | {"v": VERSION, "shape": values.shape, "dtype": dtype}
    if dtype == "u8":
        finite = np.isfinite(values)
        lo, hi = _ends(values[finite])
        scaled = (np.where(finite, values, lo) - lo) * (255 / (hi - lo) if hi > lo else 0)
        about |= {"lo": lo, "hi": hi}
        values = np.rint(scaled).astype(np.uint8)
    text = json.dumps(about, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<I", len(text)) + text + values.tobytes()


def _ends(values: np.ndarray) -> tuple[float, float]:
    """What 0 and 255 stand for. A zero between them is met exactly: nothing must not look like something."""
    if not values.size:
        return 0.0, 0.0
    lo, hi = float(values.min()), float(values.max())
    if not lo < 0 < hi:
        return lo, hi
    zero = min(254, max(1, round(-lo * 255 / (hi - lo))))
    unit = max(-lo / zero, hi / (255 - zero))
    return -zero * unit, (255 - zero) * unit

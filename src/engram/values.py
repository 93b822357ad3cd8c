"""What every room shares: frozen values, and random streams that depend on nothing but their key."""

from typing import ClassVar
from zlib import crc32

import numpy as np
from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen description (task, model, plan, Spec) whose non-default fields and `revision` are its identity.

    Bump `revision` when the same fields come to mean other numbers: older records turn stale.
    Fields named in `unhashed` say where something lies, not what it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    revision: ClassVar[int] = 1
    unhashed: ClassVar[frozenset[str]] = frozenset()


def generator(seed: int, purpose: str, step: int = 0) -> np.random.Generator:
    """The stream of (seed, purpose, step): no other draw, worker or restart can shift it."""
    key, counter = [seed, crc32(purpose.encode())], [0, 0, step, 0]
    return np.random.Generator(np.random.Philox(key=key, counter=counter))

r"""Windows of a real text: T tokens of it at a time, from places that are drawn anew in every batch.

    group    early: t in T/8 + 1 … T/4      late: the last quarter      rest: everywhere else

The in-context score is the late loss minus the early one: what a longer context is worth. Steps from `UNSEEN` on sample
from the part of the text that is held out.
"""

from typing import Annotated

import numpy as np
from jaxtyping import Int
from pydantic import Field

from engram.tasks.batch import UNSEEN, Batch
from engram.tasks.corpus import VISIBLE, visible
from engram.tasks.sources import Encoded, Source, encoded, vocabulary_of
from engram.values import Value, generator

LONG_RUN = 4  # more spaces than that are counted


class Windows(Value, name="tasks.windows.Windows"):
    """T tokens in a row of a real text that was cut into pieces of bytes.

    corpus    code: the sources of a pinned package; or the path of a folder or file of one's own
    T         length of a window
    """

    corpus: Source = "code"
    T: Annotated[int, Field(ge=8, le=2048)] = 256

    @property
    def N(self) -> int:
        """How many pieces there are."""
        return len(vocabulary_of(self.corpus).pieces)

    @property
    def groups(self) -> tuple[str, ...]:
        return ("early", "late", "rest")

    @property
    def text(self) -> Encoded:
        """The whole text as tokens, in its two parts."""
        return encoded(self.corpus)

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        """Windows that begin anywhere, all places equally likely."""
        ids = self.text.train if step < UNSEEN else self.text.held_out
        begin = generator(seed, "windows", step).integers(0, len(ids) - self.T, batch)
        z = ids[begin[:, None] + np.arange(self.T + 1)]
        return Batch(z[:, :-1], z[:, 1:], self._groups(batch))

    def _groups(self, batch: int) -> dict[str, np.ndarray]:
        t = np.arange(self.T)
        early, late = (t >= self.T // 8) & (t < self.T // 4), t >= self.T - self.T // 4
        masks = {"early": early, "late": late, "rest": ~(early | late)}
        return {name: np.broadcast_to(mask, (batch, self.T)) for name, mask in masks.items()}

    def marks(self, seed: int) -> list[str]:
        """Every piece as it can be seen; bytes that are no text by their number."""
        return [mark(piece) for piece in vocabulary_of(self.corpus).pieces]

    def spell(self, text: str) -> Int[np.ndarray, " t"]:
        """What a person typed, in pieces."""
        return vocabulary_of(self.corpus).encode([text.encode()]).astype(np.int64)

    def unspell(self, tokens: Int[np.ndarray, " t"]) -> str:
        """The text of some pieces."""
        pieces = vocabulary_of(self.corpus).pieces
        return b"".join(pieces[int(z)] for z in tokens).decode(errors="replace")


def mark(piece: bytes) -> str:
    """␣self, ⏎␣×8 (a line that begins with eight spaces), xe2 (a byte that is no text)."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return f"x{piece.hex()}"
    if not all(letter in VISIBLE or letter.isprintable() for letter in text):
        return f"x{piece.hex()}"
    bare = text.rstrip(" ")
    spaces = len(text) - len(bare)
    run = f"␣×{spaces}" if spaces > LONG_RUN else "␣" * spaces
    return "".join(map(visible, bare)) + run

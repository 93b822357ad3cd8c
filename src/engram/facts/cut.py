"""A language model with one matrix truncated, asked the prompts of a user's table: `laser` in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from engram.errors import EngramError, did_you_mean
from engram.facts.rewrite import HELD
from engram.probes.laser import LETTERS, SHARES, Laser, laser, with_cut
from engram.probes.prompts import Prompts, entering, text_loss
from engram.probes.words import Speaker
from engram.tasks.prose import prose_of
from engram.tasks.table import BadTable, read_columns

MOST = 1 << 22  # bytes
TOLD = 3  # answers of several tokens that are shown


@dataclass(frozen=True)
class Asked:
    """Prompts with their answers and perhaps rivals, as tokens; notes say what was made of them."""

    sequences: list[list[int]]
    wanted: torch.Tensor
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Truncated:
    """The best cut, and the loss of text that nobody cut, of the whole model and with it."""

    found: Laser
    loss: tuple[float, float]
    notes: tuple[str, ...]


def read_prompts(speaker: Speaker, path: Path) -> Asked:
    """The columns prompt, answer and perhaps rival; of an answer of several tokens the first counts, which is told."""
    rows = read_columns(path, MOST, ("prompt", "answer"), ("rival",))
    half = [line for line, row in rows if not row["rival"]]
    if half and len(half) < len(rows):
        raise BadTable(path, [f"line {line}: the rival is missing, which other lines have" for line in half])
    words = ("answer",) if half else ("answer", "rival")
    wanted = torch.tensor([[speaker.pieces(row[name])[0] for name in words] for _, row in rows])
    sequences = [_tokens(speaker, path, line, row["prompt"]) for line, row in rows]
    return Asked(sequences, wanted, tuple(_several(speaker, [row[name] for _, row in rows for name in words])))


def _tokens(speaker: Speaker, path: Path, line: int, prompt: str) -> list[int]:
    try:
        return speaker.tokens(prompt)
    except EngramError as error:
        raise EngramError(f"{path}, line {line}: {error}") from None


def _several(speaker: Speaker, answers: Sequence[str]) -> list[str]:
    long = [a for a in dict.fromkeys(answers) if len(speaker.pieces(a)) > 1]
    shown = ", ".join(f"{a} ({speaker.words.decode(speaker.pieces(a)[:1])!r})" for a in long[:TOLD])
    more = f", and {len(long) - TOLD} more" if len(long) > TOLD else ""
    return [f"Of answers of several tokens the first token counts: {shown}{more}."] if long else []


@torch.no_grad()
def truncate_network(
    speaker: Speaker,
    asked: Asked,
    matrices: str = "mlp",
    text: Path | None = None,
    shares: Sequence[float] = SHARES,
) -> Truncated:
    """The best cut of the matrices of feed-forward parts (mlp), of attention, or of all."""
    if matrices not in LETTERS:
        hint = did_you_mean(matrices, LETTERS)
        raise EngramError(f"matrices: unknown {matrices!r:.60}; {hint}allowed: {', '.join(LETTERS)}")
    rows = speaker.rows(prose_of(text), 1 << 20)[-HELD:]
    found = laser(speaker.network, asked.sequences, asked.wanted, LETTERS[matrices], shares)
    here = entering(speaker.network, Prompts(rows, rows[:, 0]), found.cut.layer)
    cut = with_cut(speaker.network, found.cut)
    loss = text_loss(speaker.network, rows, here), text_loss(cut, rows, here)
    return Truncated(found, loss, asked.notes)

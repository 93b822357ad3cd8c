"""A fact of a language model rewritten, in words: `edit`, and what else that moves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from engram.errors import EngramError
from engram.facts.others import Other, moved, others_of_file, others_of_templates
from engram.models import Network
from engram.probes.edits import Edit, Edits, fingerprint
from engram.probes.moments import moment_of, text_entering
from engram.probes.prompts import Entering, Prompts, entering, log_p, text_loss
from engram.probes.rome import rome
from engram.probes.words import Speaker, Words
from engram.probes.write import SIZE, write
from engram.tasks.prose import digest, prose_of

ROWS, HELD = 80, 8  # rows of text for the second moment of keys, and others on which the loss is measured
HOW = ("write", "rome")


@dataclass(frozen=True)
class Belief:
    """The likeliest answer to a prompt, and the probabilities of the old and the new one."""

    top: str
    p_old: float
    p_new: float


@dataclass(frozen=True)
class Rewritten:
    """An edit and what it does.

    changed    by kind of prompt: how many there are, and how many do what they should: paraphrases prefer the new
               answer to the old one, the likeliest token of others stays
    loss       of text that nobody edited, in nats, before and after
    notes      what a person should know besides
    """

    edit: Edit
    edits: Edits
    before: Belief
    after: Belief
    changed: dict[str, tuple[int, int]]
    loss: tuple[float, float]
    notes: tuple[str, ...]


def edit(network: Network, words: Words | None, prompt: str, answer: str, **how: object) -> Edit:
    """The edit after which a network answers a prompt otherwise; `rewrite` says the options and what else moves."""
    return rewrite(Edits(network), words, prompt, answer, **how).edit  # type: ignore[arg-type]


def rewrite(
    edits: Edits,
    words: Words | None,
    prompt: str,
    answer: str,
    *,
    layer: int | None = None,
    size: float | None = SIZE,
    how: str = "write",
    was: str | None = None,
    subject: str | None = None,
    others: Path | None = None,
    text: Path | None = None,
) -> Rewritten:
    """Rewrite one fact on top of the edits that there are.

    layer      of the feed-forward matrix; the last but one for write, an early one for rome
    size       β in units of ‖x‖ (engram.probes.write); None: the smallest that flips
    was        the answer that it takes the place of; the likeliest unless said
    subject    for rome: what the prompt is about, as it stands there
    others     a table of prompts of which it is told whether they move; from templates unless said
    text       for the second moment of keys, and for the loss; prose that is installed unless said
    """
    speaker = Speaker.of(edits.network, words)
    at = _layer(edits.base, layer, how)
    tokens, new = speaker.tokens(prompt), speaker.token(answer)
    if len(tokens) < 2:
        raise EngramError("prompt: its last token is at position 0, where attention rests (a sink); write a longer one")
    prose = prose_of(text)
    rows = speaker.rows(prose, 1 << 20)
    C = moment_of(edits.base, rows[:-HELD][:ROWS] if len(rows) > 2 * HELD else rows, at)
    here = entering(speaker.network, Prompts.of([tokens]), at)
    old, notes = _old(speaker, here, was)
    if how == "rome":
        end = speaker.end_of(_subject(subject, prompt), prompt)
        made = rome(speaker.network, tokens, new, at, C, end, here)
    else:
        made = write(speaker.network, tokens, new, at, C, size, old, here)
    named = {"name": edits.base.provenance.name, "text": digest(prose)}
    about = {"prompt": prompt, "was": speaker.said(old), "answer": answer.strip(), "note": named}
    made = replace(made, model=fingerprint(edits.base), **about)
    told = others_of_file(others) if others else others_of_templates(speaker, prompt)
    return _compared(speaker, edits, made, here, (old, new), told, rows[-HELD:], notes)


def _layer(network: Network, layer: int | None, how: str) -> int:
    L = network.sizes.L
    if how not in HOW:
        raise EngramError(f"how: unknown {how!r:.60}; allowed: {', '.join(HOW)}")
    if layer is not None and not 1 <= layer <= L:
        raise EngramError(f"layer: layers count from 1 to {L}; got {layer}")
    usual = max(1, L - 1) if how == "write" else max(1, round(4 * L / 30))
    return usual if layer is None else layer


def _subject(subject: str | None, prompt: str) -> str:
    if not subject:
        raise EngramError(f"subject: rome writes at what the prompt {prompt!r:.80} is about; say it with --subject")
    return subject


def _old(speaker: Speaker, here: Entering, was: str | None) -> tuple[int, tuple[str, ...]]:
    """The old answer; where the user's is not the likeliest, the model does not know the fact, which is told."""
    p = here.logits(speaker.network)[0].softmax(0)
    likeliest = int(p.argmax())
    if was is None or speaker.token(was) == likeliest:
        return likeliest, ()
    old = speaker.token(was)
    said = (
        f"it answers {speaker.said(likeliest)!r} ({float(p[likeliest]):.0%}); {was.strip()!r} has {float(p[old]):.0%}"
    )
    return old, (f"The model does not know this fact: {said}. An edit of it says little.",)


@torch.no_grad()
def _compared(
    speaker: Speaker,
    edits: Edits,
    made: Edit,
    here: Entering,
    tokens: tuple[int, int],
    told: Sequence[Other],
    rows: Int[Tensor, "n T"],
    notes: tuple[str, ...],
) -> Rewritten:
    more = edits.plus(made)
    networks = speaker.network, more.network
    before, after = (belief(speaker, one, here, tokens) for one in networks)
    changed = moved(speaker, more.network, made.layer, told, tokens)
    below = any(one.layer < made.layer for one in edits.stack)
    text = (
        entering(networks[0], Prompts(rows, rows[:, 0]), made.layer)
        if below
        else text_entering(edits.base, rows, made.layer)
    )
    loss = text_loss(networks[0], rows, text), text_loss(networks[1], rows, text)
    notes = notes if told else (*notes, "What else moves is told of prompts in a table (--others: kind, prompt).")
    return Rewritten(made, more, before, after, changed, loss, notes)


def belief(speaker: Speaker, network: Network, here: Entering, tokens: tuple[int, int]) -> Belief:
    logits = here.logits(network)
    old, new = log_p(logits, torch.tensor([tokens]))[0].exp().tolist()
    return Belief(speaker.said(int(logits[0].argmax())), old, new)

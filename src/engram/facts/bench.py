"""All facts of a table at once, as a model believes them: what `engram fact see` tells of one, and what lies behind it.

    margin         ln p(right) − ln p(rival), p the mean over prompts, rival the likeliest other answer: > 0 where right
    key k_i        what the last matrix before the readout reads in prompts about fact i, their mean
    ΔW ≈ Σ_j v_j k_jᵀ    what this matrix has learned, taken apart over the keys of the table by ridge regression
    own            c · v_i ‖k_i‖²,           c = u_right − u_rival
    interference   c · Σ_{j≠i} v_j (k_j · k_i): what other facts add to the lead of the right answer, or take from it

Gradients are sums of outer products with keys (Lemma 1 of Birth of a Transformer), so ΔW lies in the span of the keys
that were seen; those of the table stand for them. Without the ridge, λ = RIDGE · mean ‖k‖², own + interference is
c · ΔW k_i exactly, but keys that are nearly alike have huge parts that cancel.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.facts.ask import ASKED_STEP
from engram.facts.edit import Editable
from engram.models.trace import Architecture, Weights
from engram.probes.facts import AT_ONCE, CROWDS, Belief, log_probabilities, shared_out
from engram.tasks.book import Book

MOST = 5000  # facts of which all is measured
RIDGE = 0.01  # of the mean ‖k‖²


@dataclass(frozen=True)
class Measured:
    """One fact as a model believes it; `own` and `interference` are None where the model names no last store."""

    s: int
    r: int
    belief: Belief
    rival: int
    margin: float
    own: float | None
    interference: float | None


@dataclass(frozen=True)
class Bench:
    """The facts of a book, and prompts about them."""

    model: Architecture
    book: Book
    seed: int

    def __post_init__(self) -> None:
        if len(self.book.known) > MOST:
            raise EngramError(
                f"facts: the table has {len(self.book.known)} facts, and at most {MOST} can be measured at once; "
                "`engram fact see` asks about one"
            )

    def beliefs(self, w: Weights) -> Iterator[tuple[Belief, Float[Tensor, " A"]]]:
        """What is believed of each known fact, in their order, with the probabilities of all answers."""
        for facts, tokens in self._prompts():
            p = log_probabilities(self.model, w, tokens).exp().unflatten(0, (-1, CROWDS)).mean(1)
            for (s, r, _), one in zip(facts.tolist(), p, strict=True):
                yield shared_out(one, self.book, s, r), one

    def right(self, w: Weights) -> np.ndarray:
        """Of each fact whether it is at the stage “right”."""
        return np.array([belief.words == "right" for belief, _ in self.beliefs(w)])

    def measured(self, w: Weights, first: Weights) -> list[Measured]:
        """Everything, for weights that began as `first`."""
        known, found = self.book.known, list(self.beliefs(w))
        rivals = [_rival(p, int(a)) for (_, p), a in zip(found, known[:, 2], strict=True)]
        parts = self._interference(w, first, [rival for rival, _ in rivals])
        return [
            Measured(int(s), int(r), belief, rival, margin, *part)
            for (s, r, _), (belief, _), (rival, margin), part in zip(known, found, rivals, parts, strict=True)
        ]

    def _interference(
        self, w: Weights, first: Weights, rivals: list[int]
    ) -> list[tuple[float, float]] | list[tuple[None, None]]:
        if not isinstance(self.model, Editable):
            return [(None, None)] * len(rivals)
        name, keys = self._keys(self.model, w)
        U = w["U"].double() if "U" in w else torch.eye(len(w[name]), dtype=torch.float64)
        c = U[torch.from_numpy(self.book.known[:, 2].copy())] - U[torch.tensor(rivals)]
        own, others = interference((w[name] - first[name]).double(), keys, c)
        return list(zip(own.tolist(), others.tolist(), strict=True))

    @torch.no_grad()
    def _keys(self, model: Editable, w: Weights) -> tuple[str, Float[Tensor, "n m"]]:
        name, found = "", []
        for _, tokens in self._prompts():
            name, keys = model.last_store(w, torch.from_numpy(tokens))
            found.append(keys.double().unflatten(0, (-1, CROWDS)).mean(1))
        return name, torch.cat(found)

    def _prompts(self) -> Iterator[tuple[Int[np.ndarray, "n 3"], Int[np.ndarray, "B T"]]]:
        """Some facts at a time, with the prompts of `engram fact see`."""
        some = AT_ONCE // CROWDS
        for facts in np.array_split(self.book.known, range(some, len(self.book.known), some)):
            yield facts, self.book.about_each(facts, self.seed, ASKED_STEP, CROWDS).reshape(-1, self.book.T)


def _rival(p: Float[Tensor, " A"], right: int) -> tuple[int, float]:
    """The likeliest other answer, and the margin."""
    others = p.clone()
    others[right] = -1
    rival = int(others.argmax())
    tiny = torch.finfo(p.dtype).tiny
    return rival, float(p[right].clamp(tiny).log() - p[rival].clamp(tiny).log())


def interference(
    W: Float[Tensor, "o m"], keys: Float[Tensor, "n m"], c: Float[Tensor, "n o"], ridge: float = RIDGE
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """c_i · v_i ‖k_i‖² and c_i · Σ_{j≠i} v_j (k_j · k_i); V = K (KᵀK + λ)⁻¹ Wᵀ is (KKᵀ + λ)⁻¹ K Wᵀ."""
    sizes = keys.square().sum(1)
    whole = keys.mT @ keys + ridge * sizes.mean().clamp(min=1e-30) * torch.eye(keys.shape[1], dtype=keys.dtype)
    V = keys @ torch.linalg.solve(whole, W.mT)
    own = (c * V).sum(1) * sizes
    return own, (c * (keys @ (keys.mT @ V))).sum(1) - own

r"""Gradient flow of one linear attention head on facts (Nichani, Lee and Bietti 2025, Theorems 5 and 6).

    logit_a = Σ_t w(z_t) W(a, z_t)              one-hot embeddings; w(z) = φ(z)ᵀ W_KQ φ(EOS), W = W_OV
    Ẇ(a, z) = w(z) g(a, z),   ẇ(z) = Σ_a W(a, z) g(a, z),   g(a, z) = E[n_z (1{a = a*} − p̂(a))]

Conserved: w(z)² − Σ_a W(a, z)². All expectations are exact: noise tokens that begin alike stay alike, so that only
their number in a prompt matters, and they are one column; if they begin apart, all bags of noise are enumerated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, factorial, prod

import numpy as np
from jaxtyping import Float, Int

from engram.errors import EngramError
from engram.tasks.book import Book
from engram.tasks.facts import Facts
from engram.values import Rows, generator, law

MOST_BAGS = 20_000
RTOL, ATOL = 1e-11, 1e-16


@dataclass(frozen=True)
class PromptLaw:
    """A finite law of bags: columns are subjects, relations, noise, EOS.

    A column may stand for `copies` tokens that are alike: then its count is that of all of them together.
    """

    counts: Float[np.ndarray, "n V"]
    answers: Int[np.ndarray, " n"]
    p: Float[np.ndarray, " n"]
    copies: Float[np.ndarray, " V"]
    A: int

    @cached_property
    def onehot(self) -> Float[np.ndarray, "n A"]:
        return np.eye(self.A)[self.answers]


def alike(book: Book) -> PromptLaw:
    """Every prompt of a book when all noise tokens are alike: one prompt a fact."""
    s, r, answers = book.known.T
    S, R, n = book.S, book.R, len(answers)
    counts, rows = np.zeros((n, S + R + 2)), np.arange(n)
    counts[rows, s] = counts[rows, S + r] = counts[:, S + R + 1] = 1
    counts[:, S + R] = book.T - 3
    copies = np.ones(S + R + 2)
    copies[S + R] = book.noise
    return PromptLaw(counts, answers, book.p[s, r], copies, book.answers)


def apart(book: Book) -> PromptLaw:
    """Every prompt of a book with every bag of noise."""
    length, S, R = book.T - 3, book.S, book.R
    if comb(book.noise + length - 1, length) * len(book.known) > MOST_BAGS:
        raise EngramError("noise: there are too many bags to enumerate; use fewer noise tokens, or shorter prompts")
    every = combinations_with_replacement(range(book.noise), length)
    bags = np.array([np.bincount(bag, minlength=book.noise) for bag in every])
    ways = np.array([factorial(length) / prod(factorial(int(n)) for n in bag) for bag in bags]) / book.noise**length
    s, r, answers = (np.repeat(part, len(bags)) for part in book.known.T)
    counts, rows = np.zeros((len(s), book.N)), np.arange(len(s))
    counts[rows, s] = counts[rows, S + r] = counts[:, -1] = 1
    counts[:, S + R : -1] = np.tile(bags, (len(book.known), 1))
    return PromptLaw(counts, answers, book.p[s, r] * np.tile(ways, len(book.known)), np.ones(book.N), book.answers)


@dataclass(frozen=True)
class Head:
    """w(z) and W(a, z); a column that stands for several tokens has the values of each."""

    w: Float[np.ndarray, " V"]
    W: Float[np.ndarray, "A V"]

    @classmethod
    def small(cls, prompts: PromptLaw, alpha: float, equal: bool = False) -> "Head":
        """W = α and w = α √(|A| + 1): the conserved quantity is α² for every token, so w never vanishes.

        With `equal` w = α too, as in the published run.
        """
        V = len(prompts.copies)
        return cls(np.full(V, alpha * (1 if equal else np.sqrt(prompts.A + 1))), np.full((prompts.A, V), alpha))

    def log_probabilities(self, prompts: PromptLaw) -> Float[np.ndarray, "n A"]:
        """log p̂(a) in every prompt, from logit_a = Σ_z n_z w(z) W(a, z)."""
        logits = prompts.counts @ (self.w * self.W).T
        logits -= logits.max(1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(1, keepdims=True))

    @property
    def conserved(self) -> Float[np.ndarray, " V"]:
        """w(z)² − Σ_a W(a, z)² of every token z."""
        return self.w**2 - (self.W**2).sum(0)


def token_surprise(head: Head, prompts: PromptLaw) -> Float[np.ndarray, "A V"]:
    """g(a, z) = E[n_z (1{a = a*} − p̂(a))]."""
    left = prompts.p[:, None] * (prompts.onehot - np.exp(head.log_probabilities(prompts)))
    return left.T @ prompts.counts / prompts.copies


def velocity(head: Head, prompts: PromptLaw) -> Head:
    """(ẇ, Ẇ) = −∇L, with Ẇ(a, z) = w(z) g(a, z) and ẇ(z) = Σ_a W(a, z) g(a, z)."""
    g = token_surprise(head, prompts)
    return Head((head.W * g).sum(0), head.w * g)


def flow(first: Head, prompts: PromptLaw, times: Float[np.ndarray, " t"]) -> Iterator[Head]:
    """The head at these times, by an adaptive Runge–Kutta method of order 8."""
    from scipy.integrate import solve_ivp  # slow to import, and needed only here

    V = len(first.w)

    def unpacked(y: np.ndarray) -> Head:
        return Head(y[:V], y[V:].reshape(-1, V))

    def move(_: float, y: np.ndarray) -> np.ndarray:
        v = velocity(unpacked(y), prompts)
        return np.concatenate([v.w, v.W.ravel()])

    begin = np.concatenate([first.w, first.W.ravel()])
    found = solve_ivp(move, (0, times[-1]), begin, "DOP853", times, rtol=RTOL, atol=ATOL)
    if not found.success:
        raise EngramError(f"the flow could not be integrated: {found.message}")
    return (unpacked(y) for y in found.y.T)


def rates(head: Head, prompts: PromptLaw) -> Float[np.ndarray, " V"]:
    """λ(z) = ‖g(·, z)‖, the rate at which a token grows while its part of the logits is small: ẅ = ‖g‖² w."""
    return np.sqrt((token_surprise(head, prompts) ** 2).sum(0))


def relation_rate(R: int, D: int) -> float:
    """λ_r = √((1 − 1/R)/D)/R from uniform predictions, for uniform p and answers that are equally frequent."""
    return np.sqrt((1 - 1 / R) / D) / R


def subject_rate(S: int, R: int, D: int) -> float:
    """λ_s = √((1 − 1/D)/R)/S from uniform predictions; the same when p̂ = p(a|r)."""
    return np.sqrt((1 - 1 / D) / R) / S


def escape_time(rate: float, share: float, first: float) -> float:
    """t at which the largest logit of a token reaches 1, if w = first · cosh λt and W = first · sinh λt · g/‖g‖.

    `share` is the largest entry of g/‖g‖: √((1 − 1/R)/D) for a relation, √((1 − 1/D)/R) for a subject.
    """
    return float(np.arcsinh(2 / (share * first**2))) / (2 * rate)


@dataclass(frozen=True)
class Guesses:
    """The best predictions from only a part of the prompt: the relation, or the subject."""

    of_relation: Float[np.ndarray, "n A"]  # p(a | r)
    of_subject: Float[np.ndarray, "n A"]  # p(a | s)

    @classmethod
    def of(cls, book: Book) -> "Guesses":
        s, r, _ = book.known.T
        return cls(book.said[book.S + r], book.said[s])


def losses(log_p: Float[np.ndarray, "n A"], prompts: PromptLaw, guesses: Guesses) -> dict[str, float]:
    """The loss; that of the relation alone, −log p̂(A_r), and of the subject alone, −log p̂(A_s); ½‖p̂ − p(a | part)‖₁."""
    p_hat = np.exp(log_p)
    right = log_p[np.arange(len(log_p)), prompts.answers]
    found = {"loss": float(-prompts.p @ right)}
    for name, guess in (("relation", guesses.of_relation), ("subject", guesses.of_subject)):
        found[f"loss.{name}"] = float(-prompts.p @ np.log((p_hat * (guess > 0)).sum(1)))
        found[f"distance.{name}"] = float(prompts.p @ np.abs(p_hat - guess).sum(1)) / 2
    found["accuracy"] = float(prompts.p @ (log_p.argmax(1) == prompts.answers))
    found["mass.right"] = float(prompts.p @ np.exp(right))
    found["mass.relation"] = float(prompts.p @ (p_hat * (guesses.of_relation > 0)).sum(1)) - found["mass.right"]
    return found


@law("fact_flow.stages")
def stages(
    draws: int,
    seed: int,
    S: int,
    R: int,
    D: int,
    T: int,
    noise: int,
    until: int,
    alpha: float = 1e-5,
    equal: bool = False,
) -> Rows:
    """Rows over time 0 … `until`: losses, the largest w of each kind of token, and the drift of conserved quantities.

    The dictionary is structured, initial values are those of Head.small, nothing is drawn; `draws` evenly spaced times.
    """
    book = Facts(S=S, R=R, D=D, T=T, noise=noise, dictionary="structured").book(seed)
    prompts, guesses = alike(book), Guesses.of(book)
    first, times = Head.small(prompts, alpha, equal), np.linspace(0, until, draws)
    kinds = {"subject": slice(0, S), "relation": slice(S, S + R), "noise": slice(S + R, None)}
    for time, head in zip(times, flow(first, prompts, times), strict=True):
        row = {"time": float(time)} | losses(head.log_probabilities(prompts), prompts, guesses)
        row |= {f"w.{name}": float(head.w[part].max()) for name, part in kinds.items()}
        row |= {f"logit.{name}": float(np.abs(head.w * head.W)[:, part].max()) for name, part in kinds.items()}
        yield row | {"drift": float(np.abs(head.conserved - first.conserved).max() / (head.w**2).max())}


@law("fact_flow.conserved")
def conserved(draws: int, seed: int, S: int, R: int, D: int, T: int, noise: int, until: int) -> Rows:
    """Rows over time from random initial values of order 1, all bags of noise enumerated: loss and drift."""
    book = Facts(S=S, R=R, D=D, T=T, noise=noise).book(seed)
    prompts, rng, times = apart(book), generator(seed, "fact-flow"), np.linspace(0, until, draws)
    first = Head(rng.normal(size=book.N), rng.normal(size=(book.answers, book.N)))
    for time, head in zip(times, flow(first, prompts, times), strict=True):
        loss = -prompts.p @ head.log_probabilities(prompts)[np.arange(len(prompts.p)), prompts.answers]
        drift = np.abs(head.conserved - first.conserved).max() / (head.w**2).max()
        yield {"time": float(time), "loss": float(loss), "drift": float(drift)}

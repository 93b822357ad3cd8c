"""What weights written by hand answer: the ceiling that training is compared with.

The induction head of Eq. 7 on the bigram task; the constructions of Theorems 3 and 4 on every fact, with fresh noise.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.learning.fast import applies
from engram.learning.paths import PATHS
from engram.models import Simplified
from engram.models.construct import Construction, construct_attention_only, construct_with_mlp, plant
from engram.tasks import Bigram
from engram.tasks.book import Book
from engram.tasks.facts import Facts
from engram.values import Rows, law

AT_ONCE = 32  # sequences
BINS = np.linspace(-1, 3, 81)


def fact_logits(built: Construction, book: Book, seed: int) -> Float[Tensor, "n A"]:
    """Logits of all answers for every known fact, each in one prompt."""
    tokens = torch.from_numpy(book.every(seed, 0))
    return built.model.forward(built.weights, tokens).logits[:, -1]


def _outcome(built: Construction, book: Book, seed: int) -> dict[str, float]:
    logits, answers = fact_logits(built, book, seed), torch.from_numpy(book.known[:, 2])
    right = logits.argmax(1) == answers
    per_fact = built.model.parameters / len(answers)
    return {"accuracy": float(right.double().mean()), "parameters_per_fact": per_fact}


@law("learning.fact_construction.of_attention")
def of_attention(draws: int, seed: int, S: int, R: int, D: int, d: int, d_h: int, members: int) -> Rows:
    """One row per draw: accuracy over all facts; mean and spread of the scores by the number of sets an answer lies in;
    and how often a filter score lies on the wrong side of ¼ or ¾."""
    for own in (seed + (draw << 32) for draw in range(draws)):
        book = Facts(S=S, R=R, D=D).book(own)
        built = construct_attention_only(book, d, d_h, members, own)
        row = _outcome(built, book, own)
        logits, lies_in = fact_logits(built, book, own), _sets_around(book)
        for count in (2, 1, 0):
            values = logits[lies_in == count]
            row |= {f"score.{count}": float(values.mean()), f"spread.{count}": float(values.std())}
        yield row | {"filter.wrong": _wrong_filters(built, book)}


@law("learning.fact_construction.histogram")
def histogram(draws: int, seed: int, S: int, R: int, D: int, d: int, d_h: int, members: int) -> Rows:
    """Rows by score: the share of answers of each kind that have it (one construction; `draws` changes nothing)."""
    book = Facts(S=S, R=R, D=D).book(seed)
    logits, lies_in = fact_logits(construct_attention_only(book, d, d_h, members, seed), book, seed), _sets_around(book)
    shares = {n: np.histogram(logits[lies_in == n], BINS)[0] / int((lies_in == n).sum()) for n in (2, 1, 0)}
    for i, low in enumerate(BINS[:-1]):
        yield {"score": float(low)} | {f"share.{n}": float(share[i]) for n, share in shares.items()}


@law("learning.fact_construction.of_mlp")
def of_mlp(draws: int, seed: int, S: int, R: int, D: int, d: int, d_h: int, members: int, m: int) -> Rows:
    """One row per draw: accuracy over all facts, and parameters per fact."""
    for own in (seed + (draw << 32) for draw in range(draws)):
        book = Facts(S=S, R=R, D=D).book(own)
        yield _outcome(construct_with_mlp(book, d, d_h, members, m, own), book, own)


def _sets_around(book: Book) -> Float[np.ndarray, "n A"]:
    """For every fact and answer, in how many of A_s and A_r it lies."""
    s, r, a = book.known.T
    of_subject, of_relation = np.zeros((book.S, book.answers)), np.zeros((book.R, book.answers))
    of_subject[s, a] = of_relation[r, a] = 1
    return of_subject[s] + of_relation[r]


def _wrong_filters(built: Construction, book: Book) -> float:
    """Share of (token, head) whose overlap with Σ e_z of the members is below ¾ for a member, above ¼ for another."""
    E = built.weights["E"][: book.EOS]  # noise must be rejected too
    overlap = E @ torch.stack([E[owned].sum(0) for owned in built.sets]).T
    inside = torch.zeros_like(overlap, dtype=torch.bool)
    for h, owned in enumerate(built.sets):
        inside[owned, h] = True
    return float(torch.where(inside, overlap < 0.75, overlap > 0.25).double().mean())


@law("learning.construction.accuracies")
def accuracies(draws: int, seed: int, d: int, sharpness: float, K: int = 5, T: int = 128) -> Rows:
    """In-context accuracy and loss of the planted induction head at unit scale, one row for each of `draws` batches."""
    task, model = Bigram(K=K, T=T), Simplified(d=d, scale="unit")
    w = plant(model, task.N, T, seed, sharpness)
    path = PATHS["fast" if applies(model, (), "cpu") else "reference"]
    for step in range(draws):
        metrics = path(model, w, task.sample(seed, step, AT_ONCE), "in_context", ()).metrics
        yield {"accuracy": metrics["accuracy.in_context"], "loss": metrics["loss"]}

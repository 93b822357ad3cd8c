r"""Three population steps: W_O2, then W_K2, then W_K1 (Theorem 3), computed exactly from a finite law of sequences.

The architecture is that of Appendix B.3; what a step does not learn keeps its initial value: attention is uniform.

    step 1   x = (1/T) Σ_t W_V2 (x_t0 + x_t1)                             the label reads U W_O2 x
    step 2   values and query x_t0 = e_{z_t} + p_t, keys x_t1 = (1/t) Σ_{s≤t} Φ1 x_s0            Lemma 4
    step 3   layer 1 attends by positions and writes tokens; the second softmax is linear        Lemma 5

With orthonormal embeddings a population gradient does not change under relabelling, so patterns of sequences suffice:
`relabelled` averages over all ways to name their tokens. Other embeddings need samples.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from engram.embeddings import directions
from engram.tasks.second_visit import Law, SecondVisit
from engram.theory.lemmas import first_layer, lemma4_gradient, lemma5_gradient, second_layer, surprise
from engram.values import Rows, law

Matrix = Float[Tensor, "d d"]
AT_ONCE = 2**24  # numbers in a part of the data


@dataclass(frozen=True)
class Embedded:
    """Embeddings and remappings, as they stay in all three steps; `tokens` are the axes that relabelling permutes."""

    E: Float[Tensor, "N d"]
    P: Float[Tensor, "T d"]
    U: Float[Tensor, "N d"]
    Phi1: Matrix
    W_V2: Matrix
    tokens: tuple[slice, ...] = ()

    @classmethod
    def orthonormal(cls, N: int, T: int) -> "Embedded":
        """e_z, p_t, Φ1 e_z and Φ1 p_t are the axes of R^{2(N+T)}; u_k is the axis of e_k, and W_V2 = I."""
        axes = torch.eye(2 * (N + T), dtype=torch.float64)
        Phi1 = torch.zeros_like(axes)
        Phi1[N + T :, : N + T] = axes[: N + T, : N + T]
        return cls(axes[:N], axes[N : N + T], axes[:N], Phi1, axes, (slice(0, N), slice(N + T, 2 * N + T)))

    def unnamed(self) -> "Embedded":
        """The same, but gradients are not averaged over relabellings."""
        return replace(self, tokens=())

    @classmethod
    def random(cls, N: int, T: int, d: int, seed: int) -> "Embedded":
        """All entries N(0, 1/d)."""

        def draw(name: str, rows: int) -> Tensor:
            return directions("gaussian/d", rows, d, seed, f"steps.{name}", torch.float64)

        return cls(draw("E", N), draw("P", T), draw("U", N), draw("Phi1", d), draw("W_V2", d))


@dataclass(frozen=True)
class Steps:
    """What the three steps wrote; W_K1 and W_K2 have the key on the left, as in Appendix B."""

    W_O2: Matrix
    W_K2: Matrix
    W_K1: Matrix


def take_three_steps(embedded: Embedded, law: Law, rate: float = 1.0) -> Steps:
    """One step on each matrix from zero, in the order of Theorem 3; `rate` is that of the first step.

    The first rate decides how far p̂ is from 1/N in steps 2 and 3; the others only scale what is written.
    """
    W_O2 = rate * step_output(embedded, law)
    W_K2 = step_trigger(embedded, law, W_O2)
    return Steps(W_O2, W_K2, step_previous(embedded, law, W_O2, W_K2))


def step_output(embedded: Embedded, law: Law) -> Matrix:
    """−∇ at W_O2 = 0 (Eq. 15)."""

    def part(tokens: Int[Tensor, "A T"], p_joint: Float[Tensor, "A N"]) -> Matrix:
        x0, x1 = _inputs(embedded, tokens)
        x = (x0 + x1).mean(1) @ embedded.W_V2.T
        return embedded.U.T @ surprise(torch.zeros_like(p_joint), p_joint).T @ x

    return relabelled(_summed(embedded, law, part), embedded.tokens[:1], embedded.tokens)


def step_trigger(embedded: Embedded, law: Law, W_O2: Matrix) -> Matrix:
    """−∇ at W_K2 = 0 (Eq. 17, with the keys and values of Eq. 21)."""
    Phi2 = W_O2 @ embedded.W_V2

    def part(tokens: Int[Tensor, "A T"], p_joint: Float[Tensor, "A N"]) -> Matrix:
        return -lemma4_gradient(*_inputs(embedded, tokens), embedded.U, Phi2, p_joint)

    return relabelled(_summed(embedded, law, part), embedded.tokens[1:], embedded.tokens[:1])


def step_previous(embedded: Embedded, law: Law, W_O2: Matrix, W_K2: Matrix) -> Matrix:
    """−∇ at W_K1 = 0 (section B.3.3)."""
    Phi2 = W_O2 @ embedded.W_V2

    def part(tokens: Int[Tensor, "A T"], p_joint: Float[Tensor, "A N"]) -> Matrix:
        X = embedded.E[tokens]
        return -lemma5_gradient(X, embedded.P, embedded.U, embedded.Phi1, Phi2, W_K2, p_joint)

    return _summed(embedded, law, part)  # positions have no labels to change


def _inputs(embedded: Embedded, tokens: Int[Tensor, "A T"]) -> tuple[Float[Tensor, "A T d"], Float[Tensor, "A T d"]]:
    """x_t0 = e_{z_t} + p_t, and what uniform attention writes: x_t1 = (1/t) Σ_{s≤t} Φ1 x_s0."""
    E, P, Phi1 = embedded.E, embedded.P, embedded.Phi1
    written = (E @ Phi1.T)[tokens] + P @ Phi1.T
    return E[tokens] + P, written.cumsum(1) / torch.arange(1, len(P) + 1, dtype=P.dtype)[:, None]


def _summed(embedded: Embedded, law: Law, part: Callable[[Tensor, Tensor], Matrix]) -> Matrix:
    """A gradient over the whole law, a few sequences at a time."""
    N, (A, T) = len(embedded.E), law.tokens.shape
    total = torch.zeros_like(embedded.Phi1)
    for rows in np.array_split(np.arange(A), -(-A * T * embedded.E.shape[1] // AT_ONCE)):
        p_joint = torch.zeros(len(rows), N, dtype=torch.float64)
        p_joint[torch.arange(len(rows)), torch.from_numpy(law.labels[rows])] = torch.from_numpy(law.p[rows])
        total += part(torch.from_numpy(law.tokens[rows]), p_joint)
    return total


def relabelled(M: Matrix, rows: tuple[slice, ...], columns: tuple[slice, ...]) -> Matrix:
    """The mean of M over all relabellings, which permute the axes of each slice alike. Without slices M itself."""
    found = M.clone()
    for axes in rows:
        found[axes] = found[axes].mean(0)
    for axes in columns:
        found[:, axes] = found[:, axes].mean(1, keepdim=True)
    for i in rows:
        for j in columns:
            found[i, j] = _two_numbers(M[i, j])
    return found


def _two_numbers(block: Float[Tensor, "N N"]) -> Float[Tensor, "N N"]:
    """The mean of the diagonal on the diagonal, that of the rest elsewhere."""
    N, diagonal = len(block), block.trace() / len(block)
    off = (block.sum() - block.trace()) / max(1, N * (N - 1))
    return off + (diagonal - off) * torch.eye(N, dtype=block.dtype)


def scores(embedded: Embedded, steps: Steps) -> dict[str, Float[Tensor, "n m"]]:
    """Row by row what competes: u_k for each e_j, Φ1 e_i for each query e_j, p_s for each p_t."""
    E, P, U = embedded.E, embedded.P, embedded.U
    return {
        "W_O2": E @ embedded.W_V2.T @ steps.W_O2.T @ U.T,
        "W_K2": (E @ embedded.Phi1.T @ steps.W_K2 @ E.T).T,
        "W_K1": (P @ steps.W_K1 @ P.T).T,
    }


def table_recalls(found: dict[str, Float[Tensor, "n m"]]) -> dict[str, float]:
    """Share of right answers of each memory; W_K1 must answer t−1 for t = 2 … T.

    The data of Theorem 3 never ask for the position before T, so t < T is reported separately.
    """
    previous = found["W_K1"][1:, :-1].argmax(1) == torch.arange(len(found["W_K1"]) - 1)  # T is nobody's previous
    right = {name: found[name].argmax(1) == torch.arange(len(found[name])) for name in ("W_O2", "W_K2")}
    right |= {"W_K1": previous, "W_K1.t<T": previous[:-1]}
    return {name: float(hits.double().mean()) for name, hits in right.items()}


def accuracy(embedded: Embedded, steps: Steps, law: Law, sharpness: float) -> float:
    """Probability that the label has the largest logit."""
    right = 0.0
    sharp = sharpened(embedded, steps, sharpness)
    for rows in np.array_split(np.arange(len(law.p)), 1 + law.tokens.size * embedded.E.shape[1] // AT_ONCE):
        answers = logits(embedded, sharp, law.tokens[rows]).argmax(1).numpy()
        right += float(law.p[rows] @ (answers == law.labels[rows]))
    return right


def sharpened(embedded: Embedded, steps: Steps, sharpness: float) -> Steps:
    """Both key matrices scaled so that the best key scores `sharpness` above the mean key."""
    tables = scores(embedded, steps)
    W_K1, W_K2 = (getattr(steps, name) * sharpness / spread(tables[name]) for name in ("W_K1", "W_K2"))
    return Steps(steps.W_O2, W_K2, W_K1)


def logits(embedded: Embedded, steps: Steps, tokens: Int[np.ndarray, "A T"]) -> Float[Tensor, "A N"]:
    """What the model says, with both softmaxes, when layer 1 attends by positions and writes tokens."""
    X = embedded.E[torch.from_numpy(tokens)]
    Z = first_layer(steps.W_K1, X, embedded.P, embedded.Phi1)
    return second_layer(steps.W_K2, X, Z, embedded.U, steps.W_O2 @ embedded.W_V2)


def spread(table: Float[Tensor, "n m"]) -> float:
    """How far the best answer of a row lies above the mean of the row, in the mean over rows."""
    return float((table.amax(1) - table.mean(1)).mean())


def sampled(task: SecondVisit, seed: int, step: int, n: int) -> Law:
    """n fresh sequences as a finite law."""
    batch = task.sample(seed, step, n)
    return Law(batch.tokens, batch.targets[:, -1], np.full(n, 1 / n))


SHARP = 100.0


def _task(N: int, T: int, pairs: str) -> SecondVisit:
    return SecondVisit.model_validate({"N": N, "T": T, "pairs": pairs})


@law("learning.steps.population")
def population(draws: int, seed: int, N: int, T: int, pairs: str = "distinct", rate: float = 1.0) -> Rows:
    """One row: what the exact steps with orthonormal embeddings wrote. Draws and seed change nothing."""
    task = _task(N, T, pairs)
    embedded, law = Embedded.orthonormal(N, T), task.patterns()
    steps = take_three_steps(embedded, law, rate)
    through = embedded.E @ embedded.Phi1.T @ embedded.W_V2.T @ steps.W_O2.T @ embedded.U.T
    tables = scores(embedded, steps)
    row = {f"recall.{name}": value for name, value in table_recalls(tables).items()}
    for name, table in {"W_O2": tables["W_O2"], "W_O2.Phi1": through, "W_K2": tables["W_K2"]}.items():
        row |= {f"{name}.diagonal": float(table[0, 0]), f"{name}.off": float(table[0, 1])}
    row |= {f"W_K1.t={t}": float(tables["W_K1"][t - 1, t - 2]) for t in range(2, T + 1)}
    later = law.where(law.tokens[:, 0] != law.tokens[:, -1])
    row["accuracy"] = accuracy(embedded, steps, law, SHARP)
    row["accuracy.later"] = accuracy(embedded, steps, later, SHARP)  # given that the trigger does not stand first
    yield row


@law("learning.steps.from_samples")
def from_samples(draws: int, seed: int, N: int, T: int, d: int, n: int, pairs: str = "distinct") -> Rows:
    """Recalls and accuracy (on 1000 fresh sequences) after three steps on n sequences, the same for each step.

    Embeddings are random in d dimensions; each of `draws` rows has data of its own. `positive.W_K2` is the share of
    triggers whose entry on the diagonal has the right sign.
    """
    return _from_samples(Embedded.random(N, T, d, seed), _task(N, T, pairs), draws, seed, n)


@law("learning.steps.from_samples_orthonormal")
def from_samples_orthonormal(draws: int, seed: int, N: int, T: int, n: int, pairs: str = "distinct") -> Rows:
    """The same with orthonormal embeddings."""
    return _from_samples(Embedded.orthonormal(N, T).unnamed(), _task(N, T, pairs), draws, seed, n)


def _from_samples(embedded: Embedded, task: SecondVisit, draws: int, seed: int, n: int) -> Rows:
    for draw in range(draws):
        steps = take_three_steps(embedded, sampled(task, seed, draw, n))
        fresh = sampled(task, seed, draws + draw, 1000)
        tables = scores(embedded, steps)
        row = {f"recall.{name}": value for name, value in table_recalls(tables).items()}
        row["positive.W_K2"] = float((tables["W_K2"].diagonal() > 0).double().mean())
        yield row | {"accuracy": accuracy(embedded, steps, fresh, SHARP)}

r"""The error of a storage scheme at finite N, M and d, from the Gaussian law of its scores; and the least one.

Given e_z, the sums S_y = Σ_{f(z')=y} q(z') e_z' have overlaps with it that are independent over y:

    S_y · e_z · √(d/r) = q(z) √(d r) 1{y=f(z)} + √Q_y g_y,      r = ‖e_z‖² ~ χ²_d/d,  g_y ~ N(0, 1),

where Q_y = Σ q(z')² over the other tokens with the answer y: tokens that share an answer add up to noise along it.
Scores are these numbers times the Gram matrix of the answers. This is exact for Gaussian keys. The integral over g, r
and the Gram matrix is over few numbers, whatever N and d; r is integrated in closed form, the rest over the points of a
Sobol sequence.
"""

from functools import lru_cache
from math import inf, sqrt

import numpy as np
from jaxtyping import Float
from scipy.special import gammaincc, ndtr, ndtri
from scipy.stats import chi2, qmc

from engram.memory.check import check_whole_number
from engram.tasks.zipf import Zipf
from engram.theory.zipf import Law, Scheme, by_answer

Gram = Float[np.ndarray, "points M M"]
Edge = Float[np.ndarray, " points"]
POINTS = 4096
VALUES = 64  # of q for which the integral is computed; between them it is interpolated
WIDE = 2000  # from here on √χ²_d is N(√(d−½), ½) to 1e-4


def expected_error(task: Zipf, q: Scheme, d: int, d_max: int | None = None, points: int = POINTS) -> float:
    """The error of W = Σ q(z) u_{f(z)} e_zᵀ, in expectation over embeddings of width d.

    Keys are Gaussian; answers are uniform on the sphere of R^{d_max} (d unless given), cut to their first d entries.
    """
    check_whole_number("d", d, 1)
    check_whole_number("d_max", d if d_max is None else d_max, d)
    if not q.any():  # equal scores: everything is answered by 0
        return float(task.probabilities[task.answers != 0].sum())
    G, g = _answers(task.M, d, d if d_max is None else d_max, points)
    Q = (by_answer(task, q) ** 2).sum(1)
    found = 0.0
    for y in range(task.M):
        mine = task.answers == y
        right = _right(q[mine], np.roll(Q, -y), G, g, d)
        found += float(task.probabilities[mine] @ (1 - right))
    return found


@lru_cache(maxsize=64)
def _answers(M: int, d: int, d_max: int, points: int) -> tuple[Gram, Float[np.ndarray, "points M"]]:
    """Gram matrices of M answers, and the noise g_y along them, at the points of one Sobol sequence."""
    inner = min(d, M)  # a Gram matrix of width d > M has a factor of width M
    uniform = qmc.Sobol(M + M * inner + M, rng=0).random(points)
    uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
    g, F, rest = ndtri(uniform[:, :M]), ndtri(uniform[:, M:-M]).reshape(points, M, inner), uniform[:, -M:]
    if d >= M:  # Bartlett: a lower triangle with √χ² on its diagonal
        diagonal = uniform[:, M:-M].reshape(points, M, M)[:, range(M), range(M)]
        F = np.tril(F, -1)
        F[:, range(M), range(M)] = np.stack([_length(diagonal[:, i], d - i) for i in range(M)], axis=1)
    squares = (F**2).sum(2) + (_length(rest, d_max - d) ** 2 if d_max > d else 0.0)
    F = F / np.sqrt(squares)[:, :, None]
    return F @ F.swapaxes(1, 2), g


def _length(u: Float[np.ndarray, "..."], d: int) -> Float[np.ndarray, "..."]:
    """√χ²_d at the quantiles u."""
    return sqrt(d - 0.5) + ndtri(u) / sqrt(2) if d > WIDE else np.sqrt(chi2.ppf(u, d))


def _right(
    q: Scheme, Q: Float[np.ndarray, " M"], G: Gram, g: Float[np.ndarray, "points M"], d: int
) -> Float[np.ndarray, " n"]:
    """For tokens whose answer stands first in Q: the probability that its score is the largest.

    x = q √(d r) + √(Q_0 − q²) g_0 must lie between two edges, which the other answers set.
    """
    low, high = _edges(Q, G, g)
    values = _few(np.unique(q))
    found = []
    for q_z in values:
        shift = sqrt(max(0.0, Q[0] - q_z**2)) * g[:, 0]
        if q_z == 0:
            right = (low < shift) & (shift < high)
        else:
            right = _longer((low - shift) / q_z, d) - _longer((high - shift) / q_z, d)
        found.append(right.mean())
    return np.interp(q, values, found)


def _few(values: Float[np.ndarray, " k"]) -> Float[np.ndarray, " few"]:
    """All values, or the largest ones and some of the others, ever farther apart."""
    if len(values) <= VALUES:
        return values
    ranks = np.geomspace(VALUES // 2, len(values), VALUES // 2 + 1).astype(int)[1:] - 1
    return values[::-1][np.concatenate([np.arange(VALUES // 2), np.unique(ranks)])][::-1]


def _edges(Q: Float[np.ndarray, " M"], G: Gram, g: Float[np.ndarray, "points M"]) -> tuple[Edge, Edge]:
    """The scores are ordered rightly if x c_k + B_k > 0 for all k ≥ 1, c_k = G_00 − G_k0."""
    c = G[:, :1, 0] - G[:, 1:, 0]
    B = ((G[:, :1, 1:] - G[:, 1:, 1:]) * (np.sqrt(Q) * g)[:, None, 1:]).sum(2)
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = -B / c
    low = np.where(c > 0, edge, -inf).max(1, initial=-inf)
    high = np.where(c < 0, edge, inf).min(1, initial=inf)
    return low, np.maximum(low, high)


def _longer(x: Edge, d: int) -> Edge:
    """P(√χ²_d > x)."""
    if d > WIDE:
        return np.where(x > 0, ndtr(sqrt(2) * (sqrt(d - 0.5) - x)), 1.0)
    return gammaincc(d / 2, np.maximum(x, 0) ** 2 / 2)


def wrong(s: Float[np.ndarray, " n"], d: int, M: int) -> Float[np.ndarray, " n"]:
    """1 − E_g Φ(√s + √(1 − s/d) g)^{M−1}, s = d q²/Q: the error of a token when all answers have the same Q.

    It is that of orthonormal answers and keys of length 1; chance, 1 − 1/M, at s = 0.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    x = np.sqrt(s)[:, None] + np.sqrt(np.maximum(0, 1 - s / d))[:, None] * nodes
    return 1 - ndtr(x) ** (M - 1) @ weights / weights.sum()


def best_scheme(p: Law, d: int, M: int) -> tuple[float, Scheme]:
    """The least error that any q can have where all answers have the same Q, and this q.

    s(z) = d q(z)²/Q adds up to Md over all tokens. So the least of Σ p(z) wrong(s(z)) is found by one price λ for s:
    each token takes the s with the least p(z) wrong(s) + λ s. For every λ, what this leaves is a lower bound.
    """
    check_whole_number("d", d, 1)
    check_whole_number("M", M, 2)
    s = np.concatenate([[0.0], np.geomspace(1e-4 * min(1.0, d), d, 1500)])
    error = wrong(s, d, M)
    hull = _hull(s, error)
    s, error = s[hull], error[hull]
    price = _price(p, s, error, M * d)
    at = _cheapest(p, s, error, price)
    return float((p * error[at] + price * s[at]).sum() - price * M * d), np.sqrt(s[at])


def _price(p: Law, s: Float[np.ndarray, " k"], error: Float[np.ndarray, " k"], budget: int) -> float:
    """The λ at which all tokens together take no more than the budget."""
    cheap, dear = 1e-15, 1.0
    for _ in range(60):
        price = sqrt(cheap * dear)
        too_much = s[_cheapest(p, s, error, price)].sum() > budget
        cheap, dear = (price, dear) if too_much else (cheap, price)
    return dear


def _cheapest(p: Law, s: Float[np.ndarray, " k"], error: Float[np.ndarray, " k"], price: float) -> np.ndarray:
    """For each token where p · error + price · s is least: slopes of a convex hull are sorted, so this is a search."""
    slopes = -np.diff(error) / np.diff(s)  # decreasing
    return np.searchsorted(-slopes, -price / p)


def _hull(s: Float[np.ndarray, " k"], error: Float[np.ndarray, " k"]) -> np.ndarray:
    """The points of the lower convex hull of error over s."""
    hull: list[int] = []
    for i in range(len(s)):
        while len(hull) > 1 and _above(s, error, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    return np.array(hull)


def _above(s: np.ndarray, error: np.ndarray, a: int, b: int, c: int) -> bool:
    """Whether the point b lies on or above the line from a to c."""
    return bool((error[b] - error[a]) * (s[c] - s[a]) >= (error[c] - error[a]) * (s[b] - s[a]))

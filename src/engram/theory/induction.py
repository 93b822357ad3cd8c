r"""Theorem 3 in closed form: what three population steps write, by the law of t_q alone (Appendix B.3).

Data are those of `engram.tasks.second_visit`, embeddings orthonormal, predictions p̂ = 1/N, all step sizes 1. Given t_q
the free tokens are uniform on all tokens but q, so every expectation is a sum over t_q. Two facts make it short:

    Σ_t (x_t1 − x̄_1) = 0      so p̂ = 1/N drops out of step 2: only 1{z_t = y} is left
    Σ_i x_t1[i] = 1           so each column of step 2 sums to 0: off-diagonal = −diagonal/(N−1), exactly

Positions count from 1 in formulas and from 0 in arrays. x_t1 = (1/t) Σ_{s≤t} Φ1 e_{z_s} is what layer 1 writes at t.

`terms` takes every quantity of Appendix B.3 from its definition, by patterns of sequences, beside the paper's
expression. A term of step 2 is given by its part along Φ1 e_q (the trigger; shares sum to 1, so each other Φ1 e_i has
minus that, over N−1); a term of step 3 by its part along p_{t−1}, with both visits of q. The paper averages over labels
k with weight 1/N; here they have the weights they have given q, which differ by O(1/N) if o ≠ q.

Two expressions of the paper are off by more than O(1/N). C keeps t_q = t−1 only, but how often the label occurs does
not depend on t_q, so that every t_q ≤ t stays: "C, all t_q". And with natural pairs o = q is not rare: Δ^q stays, and A
at the last two positions differs.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from engram.tasks.second_visit import Law, SecondVisit
from engram.values import Rows, law

Table = Float[np.ndarray, "places T"]


@dataclass(frozen=True)
class Given:
    """Expectations given t_q, one row for each place of the trigger.

    is_output    P(z_t = y)
    is_trigger   1{z_t = q}
    share        x_t1[q]: the share of the trigger in what layer 1 writes
    """

    is_output: Table
    is_trigger: Table
    share: Table

    @classmethod
    def of(cls, task: SecondVisit) -> "Given":
        places, T = np.arange(task.places), task.T
        is_trigger, is_output = np.zeros((len(places), T)), np.full((len(places), T), 1 / (task.N - 1))
        is_trigger[places, places] = is_trigger[:, -1] = 1
        is_output[is_trigger == 1] = 0
        is_output[places, places + 1] = 1
        if task.pairs == "natural":  # the last place: o = q, and no free token is either
            is_output[-1] = is_trigger[-1]
        return cls(is_output, is_trigger, is_trigger.cumsum(1) / np.arange(1, T + 1))


def tau(task: SecondVisit) -> float:
    """τ = E[Σ_{t≥t_o} 1/t] of Eq. 16: how long the output stays in what layer 1 writes."""
    inverse = 1 / np.arange(1, task.T + 1)
    t_o = np.arange(task.places) + 1
    return float(np.mean([inverse[t:].sum() for t in t_o]))


def gamma(T: int) -> float:
    """γ_T = E[1/t_o − (1/T) Σ_{t≥t_o−1} 1/t − 1/T²] for o ≠ q: the signal of step 2."""
    inverse = 1 / np.arange(1, T + 1)
    return float(np.mean([inverse[t_q + 1] - inverse[t_q:].sum() / T - 1 / T**2 for t_q in range(T - 2)]))


def centred(values: Table) -> Table:
    """values − their mean over t."""
    return values - values.mean(1, keepdims=True)


@dataclass(frozen=True)
class Scores:
    """A table of scores that is invariant under relabelling: one number on its diagonal, one off it."""

    diagonal: float
    off: float

    @property
    def gap(self) -> float:
        return self.diagonal - self.off


def output_memory(task: SecondVisit) -> tuple[Scores, Scores]:
    """Step 1, exactly: u_kᵀ W_O2 W_V2 e_j, and the same with Φ1 e_j for e_j.

    u_kᵀ W_O2 W_V2 e_j = E[(1{y=k} − 1/N) n_j]/T with n_j the visits of j; Φ1 e_j weighs a visit at s by Σ_{t≥s} 1/t.
    """
    given = Given.of(task)
    weight = (1 / np.arange(1, task.T + 1))[::-1].cumsum()[::-1]
    return _of_visits(task, given.is_output.sum(1).mean()), _of_visits(task, (given.is_output @ weight).mean())


def _of_visits(task: SecondVisit, of_output: float) -> Scores:
    """The scores when a sequence has weight T in all, `of_output` of it on the output."""
    diagonal = (of_output - task.T / task.N) / (task.N * task.T)
    return Scores(float(diagonal), float(-diagonal / (task.N - 1)))


def trigger_memory(task: SecondVisit) -> Scores:
    """Step 2, exactly: (Φ1 e_i)ᵀ W_K2 e_j = (1/NT) · gap of step 1 · E[Σ_t 1{z_t=y} (x_t1 − x̄_1)[i] | q=j]."""
    given, (first, _) = Given.of(task), output_memory(task)
    signal = (given.is_output * centred(given.share)).sum(1).mean()
    diagonal = first.gap * signal / (task.N * task.T)
    return Scores(float(diagonal), float(-diagonal / (task.N - 1)))


def least_tokens(T: int) -> float:
    """2 + Q/γ_T: for o ≠ q the diagonal of step 2 is positive if and only if N is larger; infinite if γ_T ≤ 0.

    Its signal is γ_T − (γ_T + Q)/(N−1) with Q = E[(x_{t_q}1 + x_T1 − 2x̄_1)[q]]: free tokens are the output by chance.
    """
    given = Given.of(SecondVisit(N=2, T=T))
    Q = (given.is_trigger * centred(given.share)).sum(1).mean()
    return float(2 + Q / gamma(T)) if gamma(T) > 0 else float("inf")


def previous_memory(task: SecondVisit) -> Float[np.ndarray, "T T"]:
    """Step 3, exactly: [s, t] is p_sᵀ W_K1 p_t, where layer 1 attends by positions and writes tokens.

    (1/Tt) · gaps of steps 1 and 2 · E[(1{z_t=y} − mean over t) (1{z_s=q} − mean over s ≤ t)] for s ≤ t, else 0.
    """
    given, (first, _), second = Given.of(task), output_memory(task), trigger_memory(task)
    t = np.arange(1, task.T + 1)
    until = np.triu(np.ones((task.T, task.T)))  # [s, t]: s ≤ t
    seen = given.is_trigger[:, :, None] - given.is_trigger.cumsum(1)[:, None, :] / t
    both = (centred(given.is_output)[:, None, :] * seen * until).mean(0)
    return first.gap * second.gap * both / (task.T * t)


@dataclass(frozen=True)
class Patterns:
    """Patterns of sequences, and in each the share of the trigger in what layer 1 writes, less its mean."""

    law: Law
    is_output: Float[np.ndarray, "A T"]  # 1{z_t = y}
    is_trigger: Bool[np.ndarray, "A T"]
    t_q: Float[np.ndarray, " A"]  # counted from 1
    above: Float[np.ndarray, "A T"]  # (x_t1 − x̄_1)[q]

    @classmethod
    def of(cls, task: SecondVisit) -> "Patterns":
        law = task.patterns()
        is_trigger = law.tokens == law.tokens[:, -1:]
        share = is_trigger.cumsum(1) / np.arange(1, task.T + 1)
        is_output = (law.tokens == law.labels[:, None]).astype(float)
        return cls(law, is_output, is_trigger, is_trigger.argmax(1) + 1.0, share - share.mean(1, keepdims=True))

    def mean(self, values: Float[np.ndarray, " A"], given: Bool[np.ndarray, " A"] | None = None) -> float:
        """E[values], or E[values | given]."""
        p = self.law.p if given is None else self.law.p * given
        return float(p @ values / p.sum()) if p.any() else float("nan")


def paper_and_found(task: SecondVisit) -> dict[str, tuple[float, float]]:
    """By name the paper's expression and what comes out; where the paper has O(1/N) only, its leading order 0."""
    patterns = Patterns.of(task)
    return _step_1(task) | _step_2(task, patterns) | _step_3(task, patterns)


def _step_1(task: SecondVisit) -> dict[str, tuple[float, float]]:
    """τ by its definition, and as what W_O2 wrote on Φ1 e_k over what it wrote on e_k."""
    first, through = output_memory(task)
    return {"τ": (tau(task), through.diagonal / first.diagonal)}


def _step_2(task: SecondVisit, patterns: Patterns) -> dict[str, tuple[float, float]]:
    N, T, law = task.N, task.T, patterns.law
    rows, t_o = np.arange(len(law.p)), patterns.t_q.astype(int)
    same = law.labels == law.tokens[:, -1]
    at_output = patterns.above[rows, t_o]
    weight = patterns.is_output - 1 / N
    sets = {"o": np.zeros_like(patterns.is_trigger), "q": patterns.is_trigger.copy()}
    sets["o"][rows, t_o] = True
    sets["q"] &= ~sets["o"]  # with o = q the second visit is the output
    sets["r"] = ~(sets["o"] | sets["q"])
    found = {"γ_T = a_kjj, j ≠ k": (gamma(T), patterns.mean(at_output, ~same))}
    if same.any():
        found["a_jjj, o = q"] = (2 / T - 1 / (T * (T - 1)) - 2 / T**2, patterns.mean(at_output, same))
    signal = {"o": (1 - 1 / N) * patterns.mean(at_output), "q": 0.0, "r": 0.0}
    for name, chosen in sets.items():
        part = patterns.mean((weight * patterns.above * chosen).sum(1))
        found[f"Δ^{name} along Φ1e_q"] = (signal[name], part)
    return found


def _step_3(task: SecondVisit, patterns: Patterns) -> dict[str, tuple[float, float]]:
    """A, B, C, D of Eq. 26–29 along p_{t−1}, the sum over k of each divided by N as in W_K1 p_t."""
    T, found = task.T, {}
    mean_output = patterns.is_output.mean(1)
    for t in range(2, T + 1):
        seen = patterns.is_trigger[:, t - 2] - patterns.is_trigger[:, :t].sum(1) / t  # along p_{t−1}, of p_{t_q} − p̄
        here = patterns.mean((patterns.t_q == t - 1).astype(float)) * (1 - 1 / t)
        C = patterns.mean(mean_output * seen)
        found |= {
            f"A, t={t}": (here, patterns.mean(patterns.is_output[:, t - 1] * seen)),
            f"B, t={t}": (0.0, patterns.mean(seen) / task.N),
            f"C, t={t}": (here / T, C),
            f"C, all t_q, t={t}": (patterns.mean(seen) / T, C),
            f"D, t={t}": (0.0, patterns.mean(seen) / task.N),
        }
    return found


@law("induction_terms.terms")
def terms(draws: int, seed: int, N: int, T: int, pairs: str = "distinct") -> Rows:
    """One row: each quantity as "name: paper" and "name: found". Exact: draws and seed change nothing."""
    found = paper_and_found(SecondVisit.model_validate({"N": N, "T": T, "pairs": pairs}))
    yield {
        f"{name}: {which}": 0.0 if abs(value) < 1e-15 else value  # sums that cancel
        for name, both in found.items()
        for which, value in zip(("paper", "found"), both, strict=True)
    }

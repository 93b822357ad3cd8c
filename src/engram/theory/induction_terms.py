r"""Every quantity of Appendix B.3, from the definition by patterns of sequences, beside the paper's expression.

Orthonormal embeddings, p̂ = 1/N. A term of step 2 is given by its part along Φ1 e_q (the trigger; shares sum to 1, so
each other Φ1 e_i has minus that, over N−1); a term of step 3 by its part along p_{t−1}, with both visits of q. The
paper averages over labels k with weight 1/N; here they have the weights they have given q, which differ by O(1/N) if
o ≠ q.

Two expressions of the paper are off by more than O(1/N). C keeps t_q = t−1 only, but how often the label occurs does
not depend on t_q, so that every t_q ≤ t stays: "C, all t_q". And with natural pairs o = q is not rare: Δ^q stays, and A
at the last two positions differs.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from engram.tasks.second_visit import Law, SecondVisit
from engram.theory.induction import gamma, output_memory, tau
from engram.values import Rows, law


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

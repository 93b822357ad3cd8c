"""Storage schemes under heavy-tailed data: formulas against loops, curves against simulation, laws in their limits."""

from collections.abc import Callable
from math import log

import numpy as np
import pytest
import torch

from engram.embeddings import directions
from engram.errors import EngramError
from engram.memory import Linear
from engram.theory import zipf, zipf_curve, zipf_laws
from engram.theory.memory_costs import KINDS, SHARES, arithmetic, batched, filled, fullness, noise

SMALL = zipf.heavy_tail(12, 3, 1.5)
COUNTS = np.array([5, 0, 2, 2, 1, 0])


def test_schemes_are_what_they_say() -> None:
    p = SMALL.probabilities
    assert zipf.count(np.array([0, 0, 3]), 5).tolist() == [2, 0, 0, 1, 0]
    assert zipf.seen(COUNTS).tolist() == [1, 0, 1, 1, 1, 0]
    assert zipf.seen(COUNTS, 2).tolist() == [1, 0, 1, 1, 0, 0]
    assert zipf.likeliest(p, 4).tolist() == [1] * 4 + [0] * 8
    assert zipf.likeliest(p[::-1].copy(), 2).nonzero()[0].tolist() == [10, 11]
    assert zipf.powers(p, 0.5, 2) == pytest.approx([p[0] ** 0.5, p[1] ** 0.5] + [0] * 10)
    assert zipf.powers(p, 1) == pytest.approx(p)


def test_the_most_seen_tokens_are_stored_and_chance_decides_ties() -> None:
    kept = np.array([zipf.most_seen(COUNTS, 2, seed) for seed in range(200)])
    assert kept.sum(1).tolist() == [2] * 200
    assert kept[:, 0].all()
    assert 60 < kept[:, 2].sum() < 140  # tokens 2 and 3 were both seen twice
    assert zipf.most_seen(COUNTS, 6, 0).tolist() == [1, 0, 1, 1, 1, 0]  # never seen, never stored


def test_scores_are_those_of_a_memory_with_weights() -> None:
    """W by answers, W as a loop of outer products, and Linear with weights: the same scores."""
    task, d = SMALL, 7
    q = zipf.powers(task.probabilities, 0.5, 9)
    E, U = (directions("sphere", n, d, 3, name, torch.float64) for n, name in ((12, "E"), (3, "U")))
    W = sum(q[z] * np.outer(U[y], E[z]) for z, y in enumerate(task.answers))
    memory = Linear(d).give(E, U)
    memory.store(dict(enumerate(task.answers.tolist())), weights=q)
    found = zipf.scores(task, q, E.numpy(), U.numpy())
    assert found == pytest.approx(E.numpy() @ W.T @ U.numpy().T, abs=1e-12)  # type: ignore[union-attr]
    assert found == pytest.approx(memory.scores().numpy(), abs=1e-12)


def test_errors_of_several_schemes_are_those_of_each() -> None:
    E, U = (directions("sphere", n, 5, 1, name) for n, name in ((12, "E"), (3, "U")))
    schemes = [np.ones(12), SMALL.probabilities, zipf.likeliest(SMALL.probabilities, 2)]
    alone = [float(SMALL.error(zipf.scores(SMALL, q, E.numpy(), U.numpy()))) for q in schemes]
    assert zipf_laws.exact_errors(SMALL, schemes, E, U) == pytest.approx(alone)


def test_the_infinite_memory_by_a_loop_and_by_samples() -> None:
    task, n = zipf.heavy_tail(40, 4, 1.5), 30
    p, wrong = task.probabilities, (task.answers != 0).astype(float)
    loop = sum(p[z] * (1 - p[z]) ** n * wrong[z] for z in range(40))
    assert zipf.hutter_error(p, n, wrong) == pytest.approx(loop, rel=1e-12)
    rows = list(zipf_laws.hutter(900, 0, N=40, M=4, alpha=1.5, least=30, most=300))
    assert rows[0]["expected"] == pytest.approx(loop, rel=1e-12)
    for row in rows[:5]:
        assert row["sampled"] == pytest.approx(row["expected"], rel=0.1)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
def test_the_infinite_memory_has_its_exponent(alpha: float) -> None:
    p = zipf.heavy_tail(400_000, 2, alpha).probabilities
    found = log(zipf.hutter_error(p, 2000) / zipf.hutter_error(p, 1000)) / log(2)
    assert found == pytest.approx(zipf.hutter_exponent(alpha), abs=0.02)


def test_exponents_of_the_families() -> None:
    assert zipf.width_exponent(2, 1, truncated=False) == pytest.approx(-1 / 4)
    assert zipf.width_exponent(2, 0, truncated=True) == pytest.approx(-1)
    assert zipf.width_exponent(1.5, 0.5, truncated=True) == pytest.approx(-0.2)
    assert [zipf.crowding(100, 2, rho) for rho in (1, 0.25, 0.125)] == pytest.approx([1, log(100), 10])
    assert [zipf.kept(1000, 2, rho) for rho in (0, 0.5, 1)] == [1000, 10, 3]


def test_the_lost_mass_has_the_exponents_of_the_families() -> None:
    """p({z: d q² ≲ Q_∞}) falls with the exponent that is stated for each scheme."""
    task = zipf.heavy_tail(200_000, 2, 2.0)
    p = task.probabilities
    for rho, d in ((0.5, 10**4), (1.0, 10**8)):
        mass = [zipf.lost_mass(task, zipf.powers(p, rho), by * d) for by in (1, 100)]
        assert log(mass[1] / mass[0]) / log(100) == pytest.approx(zipf.width_exponent(2, rho, False), abs=0.02)
    mass = [zipf.lost_mass(task, zipf.likeliest(p, d), d) for d in (100, 10_000)]
    assert log(mass[1] / mass[0]) / log(100) == pytest.approx(-1, abs=0.03)


def simulated(task: zipf.Zipf, q: zipf.Scheme, d: int, d_max: int, trials: int) -> tuple[float, float]:
    """Mean error and its standard error over embeddings, by W itself."""
    rng = np.random.default_rng(d)
    E, U = rng.normal(size=(trials, task.N, d)), rng.normal(size=(trials, task.M, d_max))
    U = (U / np.linalg.norm(U, axis=2, keepdims=True))[:, :, :d]
    W = np.einsum("z,tzi,tzj->tij", q, U[:, task.answers], E, optimize=True)
    found = task.error(E @ W.swapaxes(1, 2) @ U.swapaxes(1, 2))
    return float(found.mean()), float(found.std() / trials**0.5)


@pytest.mark.parametrize(("d", "d_max"), [(2, 2), (3, 30), (12, 30), (30, 30)])
def test_the_finite_size_curve_is_the_mean_over_embeddings(d: int, d_max: int) -> None:
    """With widths below the number of answers, and answers that are cut from longer ones."""
    task = zipf.heavy_tail(25, 4, 1.5)
    p = task.probabilities
    for q in (np.ones(25), p, zipf.likeliest(p, 3), zipf.likeliest(p, 1)):
        mean, error = simulated(task, q, d, d_max, 2500)
        assert zipf_curve.expected_error(task, q, d, d_max) == pytest.approx(mean, abs=4 * error + 0.01 * mean)


def test_two_answers_have_the_closed_form() -> None:
    """M = 2, q = 1, large d: Φ(√(d/(N−1))), in units where keys have length 1."""
    from engram.theory.collapse import two_valued_accuracy

    N, d = 1001, 1000
    found = zipf_curve.expected_error(zipf.heavy_tail(N, 2, 1.5), np.ones(N), d)
    assert 1 - found == pytest.approx(two_valued_accuracy(N, d), abs=0.003)


def test_values_of_q_between_those_computed_are_interpolated(monkeypatch: pytest.MonkeyPatch) -> None:
    task = zipf.heavy_tail(300, 2, 1.5)
    q = zipf.powers(task.probabilities, 0.5)
    few = zipf_curve.expected_error(task, q, 40, points=256)
    monkeypatch.setattr(zipf_curve, "VALUES", 1000)
    assert few == pytest.approx(zipf_curve.expected_error(task, q, 40, points=256), rel=2e-3)


def test_nothing_stored_answers_zero() -> None:
    task = zipf.heavy_tail(10, 3, 1.0)
    error = zipf_curve.expected_error(task, np.zeros(10), 5)
    assert error == pytest.approx(float(task.error(np.zeros((10, 3)))))


def test_wide_and_narrow_lengths_meet() -> None:
    """The normal law of √χ²_d where it takes over."""
    x = np.sqrt(zipf_curve.WIDE) + np.linspace(-2, 2, 9)
    wide, narrow = zipf_curve._longer(x, zipf_curve.WIDE + 1), zipf_curve._longer(x, zipf_curve.WIDE)
    assert wide == pytest.approx(narrow, abs=0.02)
    u = np.array([0.1, 0.5, 0.9])
    assert zipf_curve._length(u, zipf_curve.WIDE + 1) == pytest.approx(zipf_curve._length(u, zipf_curve.WIDE), rel=1e-3)


def test_no_scheme_beats_the_best_one_and_it_is_reached() -> None:
    task, d = zipf.heavy_tail(150, 3, 1.6), 64
    p = task.probabilities
    least, q = zipf_curve.best_scheme(p, d, 3)
    assert (q**2).sum() == pytest.approx(3 * d, rel=0.01)
    assert zipf_curve.expected_error(task, q, d) == pytest.approx(least, rel=0.08)
    others = [np.ones(150), p, p**0.5, *(zipf.likeliest(p, P) for P in (4, 8, 16, 32, 64))]
    assert all(zipf_curve.expected_error(task, q, d) > least for q in others)


def test_the_least_error_by_brute_force() -> None:
    """Two tokens, M = 2: every way to share the budget."""
    p, d = np.array([0.7, 0.3]), 3
    shares = np.linspace(0, d, 4001)
    errors = p[0] * zipf_curve.wrong(shares, d, 2) + p[1] * zipf_curve.wrong(np.minimum(2 * d - shares, d), d, 2)
    assert zipf_curve.best_scheme(p, d, 2)[0] == pytest.approx(errors.min(), abs=1e-3)


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_the_closed_form_lies_below_and_falls_alike(alpha: float) -> None:
    p = zipf.heavy_tail(100_000, 4, alpha).probabilities
    least = [zipf_curve.best_scheme(p, d, 4)[0] for d in (100, 1000)]
    bound = [zipf.lower_bound(d, alpha, 4) for d in (100, 1000)]
    assert least[0] > bound[0]
    assert least[1] > bound[1]
    assert log(bound[1] / bound[0]) / log(1001 / 101) == pytest.approx(1 - alpha)
    assert log(least[1] / least[0]) / log(10) == pytest.approx(1 - alpha, abs=0.1)


def test_words_for_schemes() -> None:
    p = SMALL.probabilities
    for word, q in {
        "1": np.ones(12),
        "p": p,
        "p^0.5": p**0.5,
        "1 | d/8": zipf.likeliest(p, 4),
        "p | 2": zipf.powers(p, 1, 2),
        "1|law": np.ones(12),
        "p | law": zipf.powers(p, 1, zipf.kept(32, 1.5, 1)),
    }.items():
        assert zipf_laws.scheme(word, SMALL, 32) == pytest.approx(q)


def test_trials_and_their_means_are_the_same_numbers() -> None:
    sizes = {"N": 30, "M": 3, "alpha": 2.0, "least": 4, "most": 20, "widths": 3}
    rows, means = list(zipf_laws.trials(5, 0, **sizes)), list(zipf_laws.errors(5, 0, **sizes))
    assert [row["d"] for row in means] == [4, 9, 20]
    for row in means:
        for word in ("1", "p", "1 | d/8"):
            assert row[word] == pytest.approx(np.mean([r[word] for r in rows if r["d"] == row["d"]]))


def test_the_table_of_samples_and_widths() -> None:
    """Too narrow for a memory, everything is answered by 0; wide enough, it is the infinite memory."""
    rows = list(zipf_laws.joint(20, 0, N=20, M=2, alpha=1.5, per=8, samples="5 2000", widths="7 600"))
    task = zipf.heavy_tail(20, 2, 1.5)
    cells = {(row["n"], row["d"]): row["error"] for row in rows}
    assert cells[5, 7] == pytest.approx(float(task.probabilities[1::2].sum()))
    assert cells[2000, 600] < 0.01
    assert cells[5, 600] == pytest.approx(zipf.hutter_error(task.probabilities, 5, 0.5), rel=0.35)


def test_an_exponential_memory_multiplies_once_for_each_pair() -> None:
    (row,) = arithmetic(1, 0, d=8, N=100, M=5)
    assert row["exponential"] == 8 * 100
    assert row["linear"] == 8 * 8 + 8 * 5
    assert filled("exponential", 8, 10, 3, 0).accuracy() == 1


@pytest.mark.parametrize("kind", KINDS)
def test_many_codebooks_at_once_are_single_memories(kind: str) -> None:
    memory = filled(kind, 6, 11, 3, 0)
    E, U = memory.inputs(range(11)), memory.values.vectors
    assert batched(kind, E[None], E[None], U[None])[0] == pytest.approx(memory.scores(), abs=1e-9)


def test_a_memory_is_filled_until_it_forgets() -> None:
    rows = list(noise(1, 0, d=8, size=0.0, most=64))
    assert [row["kind"] for row in rows] == [0, 1]
    for row in rows:
        assert row["clean"] == row["noisy"] >= 0.99
        assert row["asked"] >= 256 or row["N"] == 0
    assert rows[0]["N"] < rows[1]["N"]
    assert list(noise(1, 0, d=8, size=1.0, most=8))[1]["noisy"] < 0.99


@pytest.mark.parametrize(("kind", "d"), [("linear", 64), ("exponential", 5)])
def test_memories_are_filled_to_a_share_of_what_they_hold(kind: str, d: int) -> None:
    full, half = fullness(2, 0, kind=kind, d=d)
    assert (full["share"], half["share"]) == SHARES
    assert half["N"] == round(full["N"] / 2)
    assert 0.97 < full["clean"] < 1  # held at 99 %, and asked anew
    assert full["noisy"] < half["noisy"] <= half["clean"] + 0.01
    silent, _ = fullness(2, 0, kind=kind, d=d, size=0.0)
    assert silent["noisy"] == silent["clean"]


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda: zipf.heavy_tail(10, 2, 0), "alpha: must be a finite number above 0; got 0"),
        (lambda: zipf.heavy_tail(10, 2, -1.5), "alpha: must be a finite number above 0; got -1.5"),
        (lambda: zipf.heavy_tail(10, 11, 2.0), "M: 10 tokens have at most 10 answers; got M=11"),
        (lambda: zipf.heavy_tail(0, 1, 2.0), "N: must be a whole number of at least 1; got 0"),
        (lambda: zipf.powers(SMALL.probabilities, -0.5), "rho: the power of p must be a finite number of at least 0"),
        (lambda: zipf.likeliest(SMALL.probabilities, 13), "P: of 12 tokens a whole number from 0 to 12 can be stored"),
        (lambda: zipf.most_seen(COUNTS, 7, 0), "P: of 6 tokens a whole number from 0 to 6 can be stored; got 7"),
        (lambda: zipf.seen(COUNTS, 0), "times: must be a whole number of at least 1; got 0"),
        (lambda: zipf.hutter_exponent(1.0), "alpha: the law holds for a finite alpha above 1; got 1.0"),
        (lambda: zipf.width_exponent(2, 0, False), "rho: q = 1 on all tokens has no exponent"),
        (lambda: zipf.width_exponent(2, -1, True), "rho: the power of p"),
        (lambda: zipf.lost_mass(SMALL, np.ones(12), 0), "d: must be a whole number of at least 1; got 0"),
        (lambda: zipf.lower_bound(0, 2.0, 5), "d: must be a whole number of at least 1; got 0"),
        (lambda: zipf.kept(0, 2.0, 1), "d: must be a whole number of at least 1; got 0"),
        (lambda: zipf_curve.expected_error(SMALL, np.ones(12), 0), "d: must be a whole number of at least 1; got 0"),
        (lambda: zipf_curve.best_scheme(SMALL.probabilities, 0, 3), "d: must be a whole number of at least 1; got 0"),
        (lambda: list(zipf_laws.trials(1, 0, N=10, M=2, least=0, most=8)), "d: widths begin at 1 or above"),
        (lambda: zipf_laws.scheme("q", SMALL, 4), "scheme: 'q' is none; write 1, p, p^0.5 or best"),
        (lambda: zipf_laws.scheme("p^x", SMALL, 4), "scheme: 'p^x' has 'x' where a number should be"),
        (lambda: zipf_laws.scheme("1 | 40", SMALL, 4), "P: of 12 tokens"),
    ],
)
def test_bad_input_is_told_in_one_line(act: Callable[[], object], told: str) -> None:
    with pytest.raises(EngramError) as error:
        act()
    assert told in str(error.value)
    assert "\n" not in str(error.value)

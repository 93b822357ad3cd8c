"""Memories: what holds exactly, what holds on average, and what is refused."""

from collections.abc import Callable
from itertools import combinations
from math import inf, sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engram.embeddings import directions
from engram.memory import (
    MLP,
    Dense,
    Exponential,
    Factorised,
    LayerNormed,
    Linear,
    LowRank,
    Memory,
    NearestNeighbour,
    Sets,
    Softmax,
    Threshold,
    TwoInputs,
)
from engram.memory.memory import Name
from engram.memory.rules import hermite, random_features, relu_coefficient
from memories import close, few, seeds, shuffled

FIVE: dict[Name, Name] = {"France": "Paris", "Japan": "Tokyo", "Peru": "Lima", "Kenya": "Nairobi", "Chad": "N'Djamena"}
MEMORIES: dict[str, Callable[[int], Memory]] = {
    "hebb": lambda seed: Linear(64, seed=seed),
    "one-step": lambda seed: Linear(64, seed=seed, rule="one-step"),
    "trained": lambda seed: Linear(64, seed=seed, rule="trained"),
    "low-rank": lambda seed: LowRank(64, 48, seed=seed),
    "factorised": lambda seed: Factorised(64, 48, seed=seed),
    "layer-normed": lambda seed: LayerNormed(64, seed=seed),
    "hermite": lambda seed: MLP(64, 1024, rule="hermite", seed=seed),
    "ntk": lambda seed: MLP(64, 1024, rule="ntk", seed=seed),
    "mlp": lambda seed: MLP(64, 32, seed=seed),
    "threshold": lambda seed: Threshold(64, seed=seed),
    "dense": lambda seed: Dense(64, 3, seed=seed),
    "exponential": lambda seed: Exponential(64, seed=seed),
    "softmax": lambda seed: Softmax(64, seed=seed),
    "nearest": lambda seed: NearestNeighbour(64, seed=seed),
}
ADDITIVE = ["hebb", "low-rank", "factorised", "layer-normed", "hermite", "ntk"]
ROTATABLE: dict[str, Callable[[int], Memory]] = {
    "hebb": Linear,
    "one-step": lambda d: Linear(d, rule="one-step"),
    "layer-normed": LayerNormed,
    "dense": Dense,
    "exponential": Exponential,
    "softmax": Softmax,
    "nearest": NearestNeighbour,
    "threshold": Threshold,
}

# What holds exactly


@pytest.mark.parametrize("kind", ROTATABLE)
@few
@given(seed=seeds, n=st.integers(2, 12), M=st.integers(2, 6))
def test_rotating_the_vectors_changes_no_score(kind: str, seed: int, n: int, M: int) -> None:
    d = 8
    E, U = directions("sphere", n, d, seed, "e", torch.float64), directions("sphere", M, d, seed, "u", torch.float64)
    Q, R = (directions("orthonormal", d, d, seed, name, torch.float64) for name in "QR")
    still, rotated = ROTATABLE[kind](d).give(E, U), ROTATABLE[kind](d).give(E @ Q, U @ R)
    for memory in (still, rotated):
        memory.store(shuffled(n, M, seed))
    a, b = still.scores(), rotated.scores()
    assert torch.equal(a == -inf, b == -inf)
    assert close(a.nan_to_num(neginf=0), b.nan_to_num(neginf=0))


@pytest.mark.parametrize(
    "make", [lambda: LowRank(8, 4), lambda: MLP(8, 32, rule="hermite")], ids=["low-rank", "hermite"]
)
@few
@given(seed=seeds)
def test_frozen_first_layers_allow_rotated_values_only(make: Callable[[], Memory], seed: int) -> None:
    E, U = directions("sphere", 9, 8, seed, "e", torch.float64), directions("sphere", 4, 8, seed, "u", torch.float64)
    Q = directions("orthonormal", 8, 8, seed, "Q", torch.float64)
    still, values, keys = make().give(E, U), make().give(E, U @ Q), make().give(E @ Q, U)
    for memory in (still, values, keys):
        memory.store(shuffled(9, 4, seed))
    assert close(still.scores(), values.scores())
    assert not close(still.scores(), keys.scores(), 1e-3)


@pytest.mark.parametrize("kind", ADDITIVE)
@few
@given(seed=seeds, cut=st.integers(1, 9))
def test_storing_in_two_goes_is_storing_at_once(kind: str, seed: int, cut: int) -> None:
    pairs = list(shuffled(10, 5, seed).items())
    once, twice = MEMORIES[kind](seed), MEMORIES[kind](seed)
    once.store(pairs)
    twice.store(pairs[:cut])
    twice.store(pairs[cut - 1 :])  # a pair that is known is not stored again
    assert close(once.scores(), twice.scores())


@pytest.mark.parametrize("kind", [kind for kind in MEMORIES if kind not in ADDITIVE])
def test_others_write_everything_anew(kind: str) -> None:
    once, twice = MEMORIES[kind](1), MEMORIES[kind](1)
    once.store(FIVE)
    for pair in FIVE.items():
        twice.store([pair])
    assert torch.equal(once.scores(), twice.scores())


@few
@given(seed=seeds)
def test_dense_of_degree_one_is_hebb_with_orthonormal_values(seed: int) -> None:
    E = directions("sphere", 12, 8, seed, "e", torch.float64)
    U = torch.eye(8, dtype=torch.float64)
    memories = [Dense(8, 1).give(E, U), Linear(8).give(E, U)]
    for memory in memories:
        memory.store(shuffled(12, 8, seed))
    assert close(memories[0].scores(), memories[1].scores())


def test_sharp_attention_and_exponentials_find_the_nearest_key() -> None:
    pairs, x = shuffled(200, 20, 0), directions("sphere", 50, 8, 1, "x", torch.float64)
    answers = []
    for memory in (NearestNeighbour(8), Softmax(8, 1e6), Exponential(8, 1e6)):
        memory.store(pairs)
        answers.append(memory.respond(x).argmax(1))
    assert all(torch.equal(answers[0], other) for other in answers[1:])


@few
@given(seed=seeds, bits=st.integers(2, 6))
def test_a_threshold_silences_all_other_keys(seed: int, bits: int) -> None:
    """With the default bias exactly one hidden unit answers each stored key: recall is exact at any load."""
    memory = Threshold(8, seed=seed)
    memory.store(shuffled(2**bits, 2**bits, seed))
    fires = memory.overlaps(memory.E) > memory.halfway
    assert torch.equal(fires, torch.eye(2**bits, dtype=torch.bool))
    assert memory.accuracy() == 1


# What holds on average


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 6])
@pytest.mark.parametrize("cosine", [-0.7, 0.0, 0.4, 1.0])
def test_hermite_identity_of_relu(k: int, cosine: float) -> None:
    """E h_k(w · e) ReLU(w · x) = c_k ⟨e, x⟩^k, to 4 standard errors."""
    g, h = directions("gaussian", 2, 200_000, k, "hermite", torch.float64)
    draws = hermite(k, g) * (cosine * g + sqrt(1 - cosine**2) * h).relu()
    assert abs(float(draws.mean()) - relu_coefficient(k) * cosine**k) < 4 * float(draws.std()) / sqrt(len(draws))


@pytest.mark.parametrize("degree", [1, 2])
def test_wide_random_features_are_a_dense_memory(degree: int) -> None:
    """Over independent first layers, answers average to Σ_z ⟨e_z, x⟩^k v_z, to 4 standard errors."""
    E, V = (directions("sphere", 6, 5, 0, name, torch.float64) for name in "EV")
    W = directions("gaussian", 400 * 64, 5, 0, "W", torch.float64).view(400, 64, 5)
    out = random_features(E.expand(400, 6, 5), V.expand(400, 6, 5), W, degree)
    answers = (E @ W.mT).relu() @ out
    standard_error = answers.std(0) / sqrt(400)
    assert bool(((answers.mean(0) - (E @ E.T) ** degree @ V).abs() < 4.5 * standard_error).all())


def test_factorised_answers_average_to_hebb() -> None:
    """d=256, d'=64, 20 pairs: the diagonal is 1 on average, the rest of size 1/√d'."""
    memory = Factorised(256, 64)
    memory.store({i: i for i in range(20)})
    scores = memory.scores()
    rest = scores[~torch.eye(20, dtype=torch.bool)]
    assert abs(float(scores.diagonal().mean()) - 1) < 0.15
    assert abs(float(rest.mean())) < 0.05
    assert float(rest.std()) < 2 / sqrt(64)


# What every memory does


@pytest.mark.parametrize("kind", MEMORIES)
@pytest.mark.parametrize("seed", range(3))
def test_every_memory_recalls_five_pairs(kind: str, seed: int) -> None:
    memory = MEMORIES[kind](seed)
    memory.store(FIVE)
    assert {key: memory.recall(key) for key in FIVE} == FIVE
    assert memory.scores().shape == (5, 5)
    assert memory.margin() == pytest.approx(min(memory.margin(key) for key in FIVE), abs=1e-12)
    assert memory.margin() > 0
    assert memory.accuracy() == 1


@pytest.mark.parametrize("kind", MEMORIES)
def test_any_hashable_is_a_name(kind: str) -> None:
    odd: dict[Name, Name] = {None: (), (1, "a"): None, frozenset({1, 2}): 3.5, -7: "", object: b"bytes"}
    memory = MEMORIES[kind](0)
    memory.store(odd)
    assert all(memory.recall(key) is value for key, value in odd.items())
    assert memory.margin(None) > 0


def test_trained_memories_hold_more_than_hebb() -> None:
    """At N = 0.14 d² a trained matrix holds all, Hebb's loses many; an MLP of m = d units holds more still."""
    pairs = {i: i for i in range(140)}
    by_hand, trained = Linear(32), Linear(32, rule="trained")
    mlp, more = MLP(32, 32), {i: i for i in range(250)}
    by_hand.store(pairs)
    trained.store(pairs)
    mlp.store(more)
    assert trained.accuracy() == 1 > by_hand.accuracy() + 0.3
    assert mlp.accuracy() == 1


def test_two_inputs_store_a_table() -> None:
    """(z1 + z2) mod 6 is no sum of a part of z1 and a part of z2: the hidden layer is needed."""
    table: dict[Name, Name] = {(a, b): (a + b) % 6 for a in range(6) for b in range(6)}
    memory = TwoInputs(16, 64)
    memory.store(table)
    assert memory.accuracy() == 1
    linear = Linear(16, rule="trained", steps=500).give(memory.inputs(table), memory.values.vectors, table)
    linear.store(table)
    assert linear.accuracy() < 1


def test_no_linear_memory_maps_these_sets() -> None:
    """e_12 + e_34 = e_13 + e_24, so no W sends the first two to A and the others to B; one bias does."""
    answers = {(1, 2): "A", (3, 4): "A", (1, 3): "B", (2, 4): "B"}
    pairs = {frozenset(members): value for members, value in answers.items()}
    sets = Sets(64)
    sets.store(pairs)
    assert sets.accuracy() == 1
    linear = Linear(64, rule="trained", steps=500).give(sets.inputs(pairs), sets.values.vectors, pairs, "AB")
    linear.store(pairs)
    assert linear.accuracy() < 1


@few
@given(seed=seeds, size=st.integers(1, 3))
def test_sets_have_embeddings_of_their_own(seed: int, size: int) -> None:
    sets = Sets(24, seed=seed, law="orthonormal")
    pairs: dict[Name, Name] = {frozenset(members): members for members in combinations("abcdef", size)}
    sets.store(pairs)
    assert sets.accuracy() == 1
    assert len(sets.keys) == 6


@few
@given(seed=seeds, law=st.sampled_from(["sphere", "signs", "gaussian/d", "orthonormal"]))
def test_names_that_come_one_by_one_have_the_same_vectors(seed: int, law: str) -> None:
    once, slowly = Linear(16, seed=seed, law=law), Linear(16, seed=seed, law=law)  # type: ignore[arg-type]
    once.store({i: -i for i in range(13)})
    for i in range(13):
        slowly.store({i: -i})
    assert close(once.keys.vectors, slowly.keys.vectors, 1e-14)
    assert close(once.scores(), slowly.scores(), 1e-10)

"""Probes of heads: at their ceiling on a planted circuit, at chance on random weights, equal to a plain computation."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from engram.errors import EngramError
from engram.models import Network, network_of
from engram.probes.ablation import random_heads, share_left, top_heads, without_writer, z_means
from engram.probes.causal import keep, without_heads
from engram.probes.composition import effective, key_recall, layers_up_to, partners, raw, recall
from engram.probes.lens import lens, lens_losses
from engram.probes.ov_copying import copying_eigenvalues, copying_recall, copying_scores, linear_part, score
from engram.probes.repeats import fresh_tokens, longest, passed, repeats
from networks import MODELS, made, sequences
from planted_heads import INDUCTION, PREVIOUS, N, planted, unplanted

EXACT: dict[str, Any] = {"rel": 0, "abs": 1e-10}
SOME = np.arange(1, N)


@pytest.fixture(scope="module")
def circuit() -> Network:
    return planted()


@pytest.fixture(scope="module")
def random() -> Network:
    return unplanted()


def test_sequences_come_twice(circuit: Network) -> None:
    given = repeats(circuit, 3, 7, period=20)
    assert (given.start, given.tokens.shape) == (1, (4, 41))
    assert (given.tokens[:, 0] == 7).all()
    assert np.array_equal(given.tokens[:, 1:21], given.tokens[:, 21:])
    assert 7 not in given.tokens[:, 1:]
    assert all(len(set(row)) == 20 for row in given.tokens[:, 1:21])
    assert np.array_equal(repeats(circuit, 3, 7, period=20).tokens, given.tokens)
    assert not np.array_equal(repeats(circuit, 4, 7, period=20).tokens, given.tokens)
    whole = fresh_tokens(N, N - 1, 0, "all", 5)[0]
    assert sorted(whole) == [z for z in range(N) if z != 5]
    assert repeats(circuit, 0, None, period=20).tokens.shape == (4, 40)


def test_a_planted_circuit_is_found_and_random_heads_are_not(circuit: Network, random: Network) -> None:
    given = repeats(circuit, 0, 0, period=24)
    found, nothing = passed(circuit, given), passed(random, given)
    assert found.previous[PREVIOUS] > 0.95
    assert found.induction[INDUCTION] > 0.95
    assert top_heads(found.previous, 1) == [PREVIOUS]
    assert top_heads(found.induction, 1) == [INDUCTION]
    others = [found.induction[head] for head in circuit.heads() if head != INDUCTION]
    assert max(*others, *nothing.induction.values()) < 0.1
    assert found.gain > 5
    assert found.repeat < 0.5
    assert abs(nothing.gain) < 0.5


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_gives_what_whole_patterns_give(name: str) -> None:
    """Scores and losses from all patterns and logits at once, position by position."""
    network = network_of(made(name))
    given = repeats(network, 0, 1, period=9, batch=3)
    places: Any = [("pattern", i) for i in range(1, network.sizes.L + 1)]
    kept, tokens, n = keep(network, given.tokens, places), torch.from_numpy(given.tokens), given.period
    found = passed(network, given)
    for (_, layer), pattern in kept.items():
        for h in range(pattern.shape[1]):
            before = [pattern[b, h, t, t - 1] for b in range(3) for t in range(1, 19)]
            after = [pattern[b, h, t, t - n + 1] for b in range(3) for t in range(n + 1, 2 * n + 1)]
            assert found.previous[layer, h + 1] == pytest.approx(float(sum(before)) / len(before), **EXACT)
            assert found.induction[layer, h + 1] == pytest.approx(float(sum(after)) / len(after), **EXACT)
    logits = network.stream(given.tokens)
    for loss, first in ((found.first, 1), (found.repeat, n + 1)):
        at = range(first, first + n - 1)
        plain = [cross_entropy(logits[b, t], tokens[b, t + 1]) for b in range(3) for t in at]
        assert loss == pytest.approx(float(sum(plain)) / len(plain), **EXACT)


def test_keys_recall_tokens_through_their_writer_only(circuit: Network, random: Network) -> None:
    for network, least, most in ((circuit, 0.95, 1.0), (random, 0.0, 0.2)):
        x = effective(network, SOME, 0, layers_up_to([INDUCTION]))
        (found,) = partners(network, [INDUCTION], x)
        assert least <= found.recall(PREVIOUS) <= most
        assert found.recall(PREVIOUS) == key_recall(network, PREVIOUS, INDUCTION, x)
    x = effective(circuit, SOME, 0, layers_up_to([INDUCTION]))
    (found,) = partners(circuit, [INDUCTION], x)
    assert found.best == PREVIOUS
    assert found.recall((1, 1)) < 0.3
    assert partners(circuit, [INDUCTION], raw(circuit, SOME))[0].recall(PREVIOUS) > 0.95


@pytest.mark.parametrize("name", ["pre-norm", "unit scale", "attention only"])
def test_effective_embeddings_and_recall_by_hand(name: str) -> None:
    """Token by token through whole streams; the score matrix entry by entry."""
    network = network_of(made(name))
    tokens, writer, reader = np.array([4, 9, 2, 7, 30]), (1, 2), (2, 1)
    x = effective(network, tokens, 3, [1, 2])
    S = torch.zeros(5, 5, dtype=torch.float64)
    for k, z_k in enumerate(tokens):
        stream = network.stream([[3, int(z_k)]], stop=1, read="none")[0, 1]
        assert torch.allclose(x[2][k], stream, rtol=0, atol=1e-12)
        for j, z_j in enumerate(tokens):
            entering = network.stream([[3, int(z_j)]], stop=0, read="none")[0, 1]
            ov, qk = network.ov(writer), network.qk(reader)
            wrote = ov.output.W @ (ov.value.W @ network.normed("head", 1, entering))
            key = qk.key.W @ network.normed("head", 2, wrote)
            S[k, j] = (qk.query.W @ network.normed("head", 2, stream)) @ key
    assert key_recall(network, writer, reader, x) == recall(S)
    centred = S.numpy() - S.numpy().mean(axis=0)
    assert recall(S) == (centred.argmax(axis=1) == np.arange(5)).mean()


def test_a_planted_head_copies(circuit: Network, random: Network) -> None:
    for network, low, high in ((circuit, 0.95, 1.0), (random, 0.0, 0.2)):
        assert low <= copying_recall(network, INDUCTION, raw(network, SOME), SOME) <= high
    copies = copying_scores(circuit)
    assert copies[INDUCTION] > 0.9
    assert max(abs(value) for head, value in copies.items() if head != INDUCTION) < 0.3


@pytest.mark.parametrize("name", ["pre-norm", "unit scale"])
def test_copying_by_hand(name: str) -> None:
    """All scores at once, and the means of all outputs subtracted behind U."""
    network, tokens = network_of(made(name)), np.array([4, 9, 2, 7, 30])
    x, ov, U = effective(network, tokens, 3, [2])[2], network.ov((2, 2)), network.matrices()["U"]
    wrote = ov.output(ov.value(network.normed("head", 2, x)))
    S = network.normed("logits", 2, wrote) @ U.T
    plain = ((S - S.mean(dim=0)).argmax(dim=1).numpy() == tokens).mean()
    assert copying_recall(network, (2, 2), {2: x}, tokens) == plain


@pytest.mark.parametrize("name", MODELS)
def test_eigenvalues_are_those_of_the_whole_copying_matrix(name: str) -> None:
    """N×N, made here and nowhere else."""
    network = network_of(made(name))
    E, U = network.matrices()["E"], network.matrices()["U"]
    out = linear_part(network, "logits", network.sizes.L)
    for head in network.heads():
        ov, A = network.ov(head), linear_part(network, "head", head[0])
        whole = torch.linalg.eigvals(U @ out @ ov.output.W @ ov.value.W @ A @ E.T)
        small = copying_eigenvalues(network, head, A @ E.T @ U @ out)
        largest = whole[whole.abs().argsort(descending=True)][: len(small)]
        assert torch.allclose(largest.abs().sort().values, small.abs().sort().values, rtol=1e-6, atol=1e-8)
        assert score(small) == pytest.approx(score(whole), abs=1e-6)
        assert copying_scores(network)[head] == pytest.approx(score(small), abs=1e-9)


def test_the_linear_part_of_a_norm_is_the_norm_up_to_a_length() -> None:
    network = network_of(made("pre-norm"))
    x = torch.randn(5, network.sizes.d, dtype=torch.float64)
    whole, linear = network.normed("head", 1, x), x @ linear_part(network, "head", 1).T
    ratio = whole / linear
    assert torch.allclose(ratio, ratio[:, :1].expand_as(ratio), rtol=1e-8)


def test_without_its_heads_a_circuit_gains_nothing(circuit: Network) -> None:
    chosen_on, given = (repeats(circuit, 2, 0, period=24, number=i) for i in (1, 0))
    assert not np.array_equal(chosen_on.tokens, given.tokens)
    whole, top = passed(circuit, given), top_heads(passed(circuit, chosen_on).induction, 1)
    assert top == [INDUCTION]
    mean, others = z_means(circuit, top, chosen_on), random_heads(circuit, top, 0)
    assert others == [(2, 2)]
    assert share_left(passed(circuit, given, without_heads(top, mean)), whole) < 0.05
    assert share_left(passed(circuit, given, without_heads(others, mean)), whole) > 0.95
    assert share_left(passed(circuit, given, without_heads([PREVIOUS])), whole) < 0.2


def test_keys_without_what_the_writer_wrote(circuit: Network) -> None:
    given = repeats(circuit, 2, 0, period=24)
    whole, cut, other = passed(circuit, given), *(without_writer(circuit, w, given) for w in (PREVIOUS, (1, 1)))
    assert cut.induction[INDUCTION] < 0.1
    assert share_left(cut, whole) < 0.2
    assert cut.previous[PREVIOUS] == whole.previous[PREVIOUS]
    assert share_left(other, whole) > 0.95


def test_random_heads_are_of_the_same_layers() -> None:
    network = network_of(made("attention only"))  # 4, 4 and 2 heads
    chosen = [(1, 1), (1, 2), (1, 3), (2, 4)]
    found = random_heads(network, chosen, 0)
    assert len(set(found)) == 4
    assert not set(found) & set(chosen)
    assert {layer for layer, _ in found} == {1, 2}
    assert random_heads(network, [(3, 1), (3, 2)], 0) == []


@pytest.mark.parametrize("name", MODELS)
def test_a_lens_stops_after_every_layer(name: str) -> None:
    network = network_of(made(name))
    tokens = sequences(1)
    for said in lens(network, tokens, 3):
        p, z = network.stream(tokens, stop=said.layer, read="last")[0, 0].softmax(-1).topk(3)
        assert said.tokens == tuple(z.tolist())
        assert said.probabilities == pytest.approx(p.tolist())
    given = repeats(network, 0, None, period=9)
    found = lens_losses(network, given)
    assert len(found) == network.sizes.L + 1
    assert found[-1] == pytest.approx((passed(network, given).first, passed(network, given).repeat))


def test_a_planted_circuit_answers_in_its_last_layer(circuit: Network) -> None:
    found = lens_losses(circuit, repeats(circuit, 0, 0, period=24))
    gains = [first - repeat for first, repeat in found]
    assert abs(gains[0]) < 0.5
    assert gains[2] > 5


def test_periods_that_do_not_fit_are_refused(circuit: Network) -> None:
    assert (longest(circuit, 0), longest(circuit, None)) == (31, 32)
    for period in (2, 32):
        with pytest.raises(EngramError, match=rf"has 3 … 31 tokens in planted, whose context is 64; got {period}"):
            repeats(circuit, 0, 0, period=period)
    with pytest.raises(EngramError, match=r"reader: \(1, 1\) is not behind \(1, 2\)"):
        key_recall(circuit, (1, 2), (1, 1), raw(circuit, SOME))

"""What copying pays, and the probes of a real birth: by hand, at chance, and on planted weights."""

from math import log

import numpy as np
import pytest
import torch

from engram.learning import reference
from engram.models import Layer, Model, Transformer, network_of
from engram.probes.causal import without_part
from engram.probes.copying import Conflict, Copying, TextHeads, _repeated, bigrams_of, kinds, probabilities
from engram.probes.heads import twice
from engram.probes.probe import Look
from engram.tasks import Bigram
from engram.tasks.windows import Windows
from engram.theory.copying import KAPPA, Bigrams, followed, payoff

TASK = Windows(T=16)
MODEL = Transformer(d=8, hidden=6, layers=(Layer(heads=2), Layer(heads=2, feed_forward="mlp")), positions="rotary")


def look(seed: int = 0) -> Look:
    w = MODEL.init(TASK.N, TASK.T, seed)
    return Look(TASK, MODEL, w, seed, MODEL.names, "all", {}, reference.gradients, lambda: w)


def test_what_followed_last_time() -> None:
    tokens = np.array([[5, 1, 5, 2, 5, 5, 1], [0, 0, 0, 1, 0, 1, 0]])
    expected = [[-1, -1, 1, -1, 2, 5, 5], [-1, 0, 0, -1, 1, 0, 1]]
    assert followed(tokens).tolist() == expected


def test_bigrams_are_counts_smoothed_by_the_unigram() -> None:
    law = Bigrams.of(np.array([0, 1, 0, 1, 0, 2]), 3).law
    unigram = np.array([4, 3, 2]) / 9
    assert law[0] == pytest.approx((np.array([0, 2, 1]) + KAPPA * unigram) / (3 + KAPPA))
    assert law.sum(axis=1) == pytest.approx(1)
    assert Bigrams.of(np.array([0, 1, 0, 1, 0, 2]), 3).likeliest[1] == 0


def test_the_payoff_of_copying() -> None:
    """Random tokens twice: in the second copy the best share is all of it; without a repetition there is none."""
    N = 50
    uniform = Bigrams(np.full((N, N), 1 / N))
    tokens = np.stack([np.tile(np.random.default_rng(i).permutation(N)[:20], 2) for i in range(8)])
    late = np.broadcast_to(np.arange(39) >= 20, (8, 39))
    assert payoff(uniform, tokens[:, :-1], tokens[:, 1:], late) == pytest.approx(log(0.01 + 0.99 * N), abs=1e-9)
    assert payoff(uniform, tokens[:, :18], tokens[:, 1:19], np.ones((8, 18), bool)) == 0.0


def test_positions_are_sorted_by_what_their_target_is() -> None:
    batch = TASK.sample(0, 0, 6)
    groups = kinds(TASK, batch).groups
    likely = bigrams_of("code", TASK.N).likeliest
    assert (np.sum(list(groups.values()), axis=0) == 1).all()
    o = followed(batch.tokens)
    for b, t in np.ndindex(*batch.tokens.shape):
        z, y = batch.tokens[b, t], batch.targets[b, t]
        name = {(0, 0): "neither", (0, 1): "common", (1, 0): "copied", (1, 1): "both"}[
            int(o[b, t] == y), int(likely[z] == y)
        ]
        assert groups[name][b, t]


def test_probes_of_an_untrained_model_are_at_chance() -> None:
    heads, copying = TextHeads().measure(look()), Copying().measure(look())
    assert set(heads) == {f"{kind}.L{i}H{h}" for kind in ("previous", "induction") for i in (1, 2) for h in (1, 2)} | {
        "repeat.first",
        "repeat.second",
    }
    assert heads["repeat.second"] == pytest.approx(heads["repeat.first"], abs=0.3)
    assert abs(copying["context.score"]) < 0.3
    assert copying["guessed.copied"] < 0.1
    batch = look().unseen(128)
    metrics = reference.gradients(MODEL, look().w, batch, "all", ()).metrics
    assert copying["context.score"] == pytest.approx(metrics["loss.late"] - metrics["loss.early"])


def test_losses_of_two_copies_leave_out_the_seam() -> None:
    tokens = twice(9, 4, 2, 0)
    groups = _repeated(tokens).groups
    assert {name: np.flatnonzero(mask[0]).tolist() for name, mask in groups.items()} == {
        "first": [0, 1, 2],
        "second": [4, 5, 6],
        "seam": [3],
    }


def test_probabilities_where_bigram_and_copy_differ() -> None:
    """Against the forward pass, position by position; without the last feed-forward part W_F = 0."""
    w, batch = look().w, TASK.sample(0, 0, 5)
    found = Conflict().measure(look())
    o, b = followed(batch.tokens), bigrams_of("code", TASK.N).likeliest[batch.tokens]
    network = network_of(Model(MODEL, w))
    for watch, weights in ((None, w), (without_part("mlp", 2), w | {"W_F2": torch.zeros_like(w["W_F2"])})):
        p = MODEL.forward(weights, torch.from_numpy(batch.tokens)).logits.softmax(-1)
        at = [(i, t) for i, t in np.ndindex(*o.shape) if o[i, t] >= 0 and o[i, t] != b[i, t]]
        expected = {
            "copied": np.mean([p[i, t, o[i, t]].item() for i, t in at]),
            "bigram": np.mean([p[i, t, b[i, t]].item() for i, t in at]),
        }
        assert probabilities(network, TASK, batch, watch) == pytest.approx(expected, rel=1e-4)
    assert list(found) == ["conflict.copied", "conflict.bigram", "conflict.cut.copied", "conflict.cut.bigram"]


def test_probes_say_what_they_need() -> None:
    plain = Transformer(d=8, layers=(Layer(), Layer()))
    for probe in (TextHeads(), Copying()):
        assert probe.missing(TASK, plain) is None
        assert probe.missing(Bigram(), plain) is not None
    assert Conflict().missing(TASK, plain) is not None
    assert Conflict().missing(TASK, MODEL) is None

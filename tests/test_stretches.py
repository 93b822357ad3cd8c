"""What a longer context is worth: the same tokens behind both, and nothing to a model that cannot look back."""

import numpy as np
import pytest
import torch

from engram.learning import reference
from engram.models import Layer, Transformer
from engram.probes.probe import Look
from engram.probes.stretches import STRETCHES, Stretches, behind, places
from engram.tasks import Bigram
from engram.tasks.windows import Windows

TASK = Windows(T=16)
MODEL = Transformer(d=8, layers=(Layer(heads=2), Layer(heads=2)), positions="rotary")


def look(seed: int = 0, deaf: bool = False) -> Look:
    w = MODEL.init(TASK.N, TASK.T, seed)
    w |= {name: torch.zeros_like(w[name]) for name in ("W_O1", "W_O2") if deaf}
    return Look(TASK, MODEL, w, seed, MODEL.names, "all", {}, reference.gradients, lambda: w)


def test_both_contexts_end_with_the_same_held_out_tokens() -> None:
    starts, text = places(TASK), TASK.text.held_out
    near, far = (behind(TASK, starts, eighths) for eighths in (1, 7))
    assert (near.tokens.shape, far.tokens.shape) == ((STRETCHES, 4), (STRETCHES, 16))
    for batch in (near, far):
        stretch = batch.targets[batch.groups["stretch"]].reshape(STRETCHES, 2)
        assert np.array_equal(stretch, text[starts[:, None] + np.arange(2)])
    assert np.array_equal(far.tokens[:, -4:], near.tokens)


def test_a_model_that_cannot_look_back_gains_nothing() -> None:
    found = Stretches().measure(look(deaf=True))
    assert found["worth.far"] == pytest.approx(found["worth.near"], abs=1e-5)
    assert found["worth.near"] > 1


def test_the_loss_is_that_of_the_forward_pass_and_does_not_depend_on_the_seed() -> None:
    one, batch = look(), behind(TASK, places(TASK), 7)
    p = MODEL.forward(one.w, torch.from_numpy(batch.tokens)).logits.log_softmax(-1)
    said = p.gather(2, torch.from_numpy(batch.targets)[:, :, None])[:, :, 0]
    found = Stretches().measure(one)
    assert found["worth.far"] == pytest.approx(-float(said[:, -2:].mean()), rel=1e-4)
    same = Look(TASK, MODEL, one.w, 7, MODEL.names, "all", {}, reference.gradients, one.first)
    assert Stretches().measure(same) == found


def test_it_says_what_it_needs() -> None:
    assert Stretches().missing(TASK, MODEL) is None
    assert Stretches().missing(Bigram(), MODEL) is not None

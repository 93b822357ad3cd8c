"""What the prose of each example says is what its probes measure, at sizes that take seconds."""

from pathlib import Path
from typing import Any

import numpy as np

from engram.claims.experiment import Experiment
from engram.claims.readings import birth
from engram.experiments import find
from engram.learning import reference
from engram.models.construct import plant
from engram.probes.probe import Look
from engram.records import Record
from engram.runner.execute import execute
from engram.specs.settings import with_settings

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> Experiment:
    return find(str(EXAMPLES / f"{name}.py"))


def trained(name: str, home: Path, label: Any = None, **settings: Any) -> Record:
    """The run of an example under a label, with some fields overridden: task__spread=3 is task.spread."""
    (spec,) = example(name).labelled("quick", [0])[label]
    return execute(with_settings(spec, {key.replace("__", "."): value for key, value in settings.items()}), home)


def test_a_word_of_one_length_is_repeated_by_position(tmp_path: Path) -> None:
    """Layer 2 looks where the letter was, with neither of the memories of an induction head."""
    record = trained("own_task", tmp_path, plan__steps=100)
    assert record.last("accuracy.in_context") > 0.95
    assert record.last("attention.induction") > 0.8
    assert record.last("attention.chain") < 0.2
    assert max(record.last(f"recall.{name}") for name in ("W_K1", "W_K2")) < 0.15
    # shown words of another length, it looks L − 1 = 7 places back all the same, and is wrong
    other = with_settings(record.train, {"task.L": 6}).task.sample(0, 10**6, 64)
    predicted, early = record.model()(other.tokens).logits.argmax(-1).numpy(), slice(7, 15)
    assert (predicted == other.targets)[:, early].mean() < 0.2
    assert (predicted == np.roll(other.tokens, 7, axis=1))[:, early].mean() > 0.8


def test_a_word_of_any_length_is_repeated_by_an_induction_head(tmp_path: Path) -> None:
    record = trained("own_task", tmp_path, plan__steps=160, task__spread=3)
    assert record.last("accuracy.in_context") > 0.9
    assert min(record.last(name) for name in ("recall.W_K2", "attention.chain", "attention.induction")) > 0.8


def test_the_wider_model_learns_its_output_memory_sooner(tmp_path: Path) -> None:
    narrow, wide = (birth(trained("own_claim", tmp_path, d, plan__steps=50), "recall.W_O2") for d in (64, 128))
    assert narrow is not None
    assert wide is not None
    assert 1.5 * wide < narrow


def test_one_matrix_comes_close_to_the_bigram(tmp_path: Path) -> None:
    """It is on its way after 50 of 300 steps."""
    distance = trained("own_model", tmp_path, plan__steps=50).column("kl.W")
    assert distance[0] > 2
    assert distance[50] < 0.8


def test_a_memory_survives_being_pruned_in_the_middle_of_its_birth(tmp_path: Path) -> None:
    alone, pruned = (trained("own_intervention", tmp_path, label) for label in ("left alone", "pruned"))
    before, after, at = alone.column("recall.W_O2"), pruned.column("recall.W_O2"), 25
    assert 0.2 < before[at] < 0.5 < before[-1]
    assert float((pruned.model(at).weights["W_O2"] == 0).double().mean()) > 0.8
    assert 0 < before[at] - after[at] < 0.15
    assert abs(before[-1] - after[-1]) < 0.1


def test_certainty_comes_with_the_attention_memories() -> None:
    """On planted weights: the output memory alone makes little more certain, the induction head nearly everything."""
    (whole,) = example("own_probe").labelled("quick", [0])[None]
    spec: Any = with_settings(whole, {"task.T": 48})
    (certainty,), first = spec.plan.probes, spec.model.init(spec.task.N, spec.task.T, 0)
    planted = plant(spec.model, spec.task.N, spec.task.T, 0, sharpness=1.0)

    def entropy(*names: str) -> float:
        w = first | {name: planted[name] for name in names}
        look = Look(spec.task, spec.model, w, 0, spec.plan.trained, spec.plan.loss, {}, reference.gradients, lambda: w)
        return certainty.measure(look)["entropy.in_context"]

    assert entropy() > 3.5
    assert entropy("W_O2") > 2
    assert entropy("W_O2", "W_K1", "W_K2") < 0.5

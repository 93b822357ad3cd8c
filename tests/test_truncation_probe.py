"""Truncation while a model trains: columns of what it would say without a matrix, and weights that nobody touched."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engram.errors import EngramError
from engram.learning.reference import gradients
from engram.models import Layer, Simplified, Transformer
from engram.models.factual import Factual
from engram.probes.probe import UNSEEN, Look, Probe
from engram.probes.truncation import Truncation, TruncationMap, sweep
from engram.runner.execute import execute
from engram.show.curves import curves
from engram.specs import Train
from engram.specs.events import Truncate
from engram.specs.settings import with_settings
from engram.tasks import Batch, Bigram
from engram.tasks.facts import Facts
from engram.values import Value

MODEL = Transformer(d=8, hidden=16, layers=(Layer(queries="identity"), Layer(queries="identity", feed_forward="mlp")))
Tiny = Callable[..., Train]


class Noisy(Value):
    """A task with a clean form, which it is probed on, and a token that is noise."""

    N: int = 65
    T: int = 24
    groups: tuple[str, ...] = ("in_context",)
    noise_token: int = 2

    @property
    def clean(self) -> Bigram:
        return Bigram(K=3, T=24)

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        tokens = np.zeros((batch, self.T), dtype=np.int64)
        return Batch(tokens, tokens, {"in_context": np.ones_like(tokens, dtype=bool)})


def look(task: Any, model: Any = MODEL, seed: int = 3) -> Look:
    w = model.init(task.N, task.T, seed)
    return Look(task, model, w, seed, (), "in_context", {}, gradients, lambda: w)


@pytest.mark.parametrize("probe", [Truncation(shares=(0.0, 0.1, 1.0), sequences=6), TruncationMap(sequences=6)])
def test_a_probe_leaves_the_weights_as_they_are(probe: Probe) -> None:
    seen = look(Bigram(K=3, T=24))
    before = {name: value.clone() for name, value in seen.w.items()}
    probe.measure(seen)
    assert all(torch.equal(seen.w[name], before[name]) for name in before)


def test_all_kept_is_the_full_model() -> None:
    """As the training itself measures it on the same sequences."""
    seen = look(Bigram(K=3, T=24))
    found = Truncation(shares=(0.0, 1.0), sequences=6).measure(seen)
    full = gradients(seen.model, seen.w, seen.unseen(6), "in_context", ()).metrics
    assert found["cut.W_I2.100%.loss"] == pytest.approx(full["loss.in_context"], rel=1e-5)
    assert found["cut.W_I2.100%.accuracy"] == pytest.approx(full["accuracy.in_context"])
    assert found["cut.W_I2.0%.loss"] != found["cut.W_I2.100%.loss"]
    assert set(found) == {
        f"cut.W_I2.{share}.{m}" for share in ("0%", "100%") for m in ("accuracy", "loss", "p_correct")
    }


def test_a_task_with_noise_is_probed_on_its_clean_form() -> None:
    seen = look(Noisy())
    found = Truncation(sequences=6).measure(seen)
    expected = sweep(MODEL, seen.w, Bigram(K=3, T=24).sample(3, UNSEEN, 6), shares=(0.1,), matrices=("W_I2",), noise=2)
    assert {name.split(".")[-1] for name in found} == {"accuracy", "loss", "p_correct", "p_noise"}
    assert found["cut.W_I2.10%.p_noise"] == expected.at("W_I2", 0.1)["p_noise"]


def test_a_map_has_every_matrix_and_share() -> None:
    found = TruncationMap(sequences=6).measure(look(Bigram(K=3, T=24)))
    assert len(found) == 8 * 11 * 3
    assert {"map.W_K1.0%.loss", "map.W_O2.50%.accuracy", "map.W_F2.100%.p_correct"} <= set(found)
    assert len({found[f"map.{name}.100%.loss"] for name in MODEL.names[3:]}) == 1


def test_a_training_has_the_curves_and_is_otherwise_the_same(tiny: Tiny, tmp_path: Path) -> None:
    names, cut = ("W_K1", "W_I2"), (Truncation(every=3, shares=(0.0, 1.0), sequences=6),)
    plans = [tiny().plan.model_copy(update={"trained": names, "probes": probes}) for probes in ((), cut)]
    specs = [tiny().model_copy(update={"model": MODEL, "plan": plan}) for plan in plans]
    plain, probed = (execute(spec, tmp_path) for spec in specs)
    assert [step for step, row in enumerate(probed.rows) if "cut.W_I2.0%.loss" in row] == [0, 3, 6]
    for one, two in zip(plain.rows, probed.rows, strict=True):
        assert {name: value for name, value in two.items() if not name.startswith("cut.")} == one
    for name in names:
        assert torch.equal(plain.snapshot(6)[name], probed.snapshot(6)[name])


@pytest.mark.parametrize(
    ("model", "task", "says"),
    [
        (
            Simplified(d=8),
            Bigram(T=24),
            "a model with the matrix W_I2; this one has W_K1, W_V1, W_O1, W_K2, W_V2, W_O2",
        ),
        (Factual(d=8, answers=4), Facts(S=4, R=3, D=2, T=8), "a Transformer or Simplified"),
        (MODEL, Facts(S=4, R=3, D=2, T=8), "a task with positions in_context"),
        (MODEL, Bigram(T=24), None),
    ],
)
def test_a_probe_says_what_it_needs(model: Any, task: Any, says: str | None) -> None:
    assert Truncation().missing(task, model) == says


def test_a_plan_that_asks_for_a_matrix_that_is_missing_is_refused(tiny: Tiny) -> None:
    with pytest.raises(EngramError, match=r"^plan\.at_end: 'truncation' needs a model with the matrix W_I2; this one"):
        with_settings(tiny(), {"plan.at_end": ["truncation"]})
    assert with_settings(tiny(), {"plan.at_end": ["truncation_map"]}).plan.at_end == ("truncation_map",)
    with pytest.raises(ValueError, match="shares"):
        Truncation(shares=(1.5,))


def test_an_intervention_is_marked_in_the_curves(tmp_path: Path, tiny: Tiny) -> None:
    """A dashed line at its step in every panel, with what was done above the first."""
    events = (Truncate(step=3, matrix="W_O2", rank=1),)
    spec = tiny().model_copy(update={"events": events})
    axes = curves([execute(spec, tmp_path)]).axes
    assert all(any(np.array_equal(line.get_xdata(), [3, 3]) for line in ax.lines) for ax in axes)
    assert "truncate W_O2 to rank 1" in [text.get_text().replace("\\", "") for text in axes[0].texts]
    assert not any(ax.texts for ax in curves([execute(tiny(), tmp_path)]).axes)

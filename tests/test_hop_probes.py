"""Laws of the probes of hops: at their ceiling on planted weights, at chance on random ones."""

from pathlib import Path

import numpy as np
import pytest

from engram.experiments.hops.depth import looks_by_layer, training
from engram.learning import Adam, Plan
from engram.models import Layer, Model, Transformer, network_of
from engram.models.doubling import plant_composition, plant_hops
from engram.probes.hops import accuracies, asking_all, carried, pointers
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks import Bigram, Composition, Hops


def test_all_hops_are_asked_for_whatever_is_trained() -> None:
    assert asking_all(Composition(n=3, k=4)).asked == (1, 2, 4)
    assert asking_all(Hops(length=8, most=3, hops=(2,))).asked == (0, 1, 2, 3)


@pytest.mark.parametrize("hops", [1, 2, 4])
def test_a_planted_composition_needs_the_layers_up_to_its_hops(hops: int) -> None:
    """Layer i goes from 2^(i−2) hops to 2^(i−1): without it, nothing is left of hops that need it."""
    task = Composition(n=5, k=4, hops=(hops,))
    planted = plant_composition(task, hops)
    whole = accuracies(network_of(planted), task.sample(0, 0, 32))
    assert whole == {"none": {f"hop{hops}": 1.0}} | {f"L{i}": whole[f"L{i}"] for i in range(1, len(whole))}
    for i in range(1, len(whole)):
        assert whole[f"L{i}"][f"hop{hops}"] < 0.5


def test_planted_pointers_are_where_heads_look() -> None:
    """k = 2: layer 1 looks back, layer 2 at find, layer 3 reads what the pointer finds there."""
    task = Hops(length=40, most=2, hops=(2,))
    planted = plant_hops(task, 2)
    found = pointers(network_of(planted), task.sample(0, 0, 16), 2)
    assert found["L2H1.find1"] == pytest.approx(1, abs=1e-3)
    assert found["L1H1.find1"] < 0.5, "it is find where a letter comes back after one other"
    assert found["chance.find1"] < 0.3


def test_heads_without_keys_are_aligned_with_nothing() -> None:
    task, model = Hops(length=40, most=2), Transformer(d=16, layers=(Layer(heads=2),) * 2, norm="pre")
    w = model.init(task.N, task.T, 0)
    blind = Model(model, w | {name: 0 * w[name] for name in ("W_K1", "W_K2")})
    found = pointers(network_of(blind), task.sample(0, 0, 32), 2)
    for head in ("L1H1", "L1H2", "L2H1", "L2H2"):
        for j in (1, 2):
            assert found[f"{head}.find{j}"] == pytest.approx(found[f"chance.find{j}"])


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_a_planted_answer_is_carried_from_its_last_layer_on(k: int) -> None:
    """A letter is there from the start; all layers up to the last find hops, and in the other sequence."""
    task = Hops(length=40, most=3, hops=(k,))
    by_layer = carried(network_of(plant_hops(task, k)), task.sample(0, 0, 200), k)
    assert by_layer == {1: 1.0} if k == 0 else max(by_layer.values()) < 0.6


def test_an_answer_is_carried_through_layers_that_add_nothing() -> None:
    """Two layers find one hop; a third that writes nothing passes it on."""
    task = Hops(length=40, most=1, hops=(1,))
    planted = plant_hops(task, 1)
    model, w = planted.architecture, dict(planted.weights)
    assert isinstance(model, Transformer)
    deeper = model.model_copy(update={"layers": (*model.layers, model.layers[-1])})
    w |= {name.replace("2", "3"): 0 * value for name, value in w.items() if name.endswith("2")}
    by_layer = carried(network_of(Model(deeper, w)), task.sample(0, 0, 200), 1)
    assert by_layer[3] == 1.0
    assert max(by_layer[1], by_layer[2]) < 0.6


def test_the_columns_of_a_record(home: Path) -> None:
    model = Transformer(d=8, layers=(Layer(heads=2), Layer()))
    plan = Plan(optimiser=Adam(lr=0.01), steps=2, batch=4, trained=("W_O1", "U"), loss="all")

    def last(task: Composition | Hops, *probes: str) -> set[str]:
        spec = Train(task=task, model=model, plan=plan.model_copy(update={"at_end": probes}))
        measured = {name.partition(".")[0] for name in execute(spec, home).rows[-1]}
        return measured - {"step", "loss", "accuracy", "recall"}

    assert last(Composition(n=3, k=2), "hop_layers", "hop_patches") == {"without", "patched"}
    assert last(Hops(length=8, most=2), "hop_layers", "hop_alignment") == {"without", "alignment"}
    with pytest.raises(ValueError, match="'hop_alignment' needs the task Hops and a Transformer"):
        Train(task=Composition(n=3, k=2), model=model, plan=plan.model_copy(update={"at_end": ("hop_alignment",)}))
    with pytest.raises(ValueError, match="'hop_layers' needs a task with hops"):
        Train(task=Bigram(T=8), model=model, plan=plan.model_copy(update={"at_end": ("hop_layers",)}))


def test_a_map_of_looks_has_the_best_head_of_each_layer_in_the_mean_over_seeds(home: Path) -> None:
    records = [execute(training("smoke", 2, seed), home) for seed in (0, 1)]
    looks = np.array(looks_by_layer(records, 2))
    for layer, j in ((1, 1), (2, 1), (2, 2)):
        both = [[record.last(f"alignment.L{layer}H{h}.find{j}") for h in (1, 2)] for record in records]
        assert looks[layer - 1, j - 1] == pytest.approx(np.max(both, axis=1).mean())

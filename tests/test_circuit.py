"""Laws of circuits: shares add up, parts are worth what ablating them costs, planted circuits have their roles."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from engram.lab.circuit_roles import STEP
from engram.lab.circuits import circuit
from engram.learning import SGD, Plan
from engram.models import Layer, Model, Simplified, Transformer, network_of
from engram.models.construct import construct_with_mlp, plant
from engram.models.doubling import plant_hops
from engram.models.factual import Factual, SoftmaxHead
from engram.probes.circuit import Circuit, Read, circuit_of, read_positions
from engram.probes.composition import partners, raw
from engram.probes.fact_circuit import fact_circuit, looks
from engram.records.weights import initial_weights
from engram.specs import Train
from engram.tasks import Bigram, Hops
from engram.tasks.facts import Facts

Tiny = Callable[..., Train]
DEEP = Transformer(
    d=12, hidden=24, norm="pre", layers=(Layer(heads=2), Layer(heads=3, feed_forward="mlp"), Layer(heads=2))
)


def told(model: Simplified | Transformer, task: Bigram | None = None) -> tuple[Circuit, Model, Read]:
    task = task or Bigram(K=3, T=24)
    batch = task.sample(0, STEP, 8)
    found = Model(model, model.init(task.N, task.T, 0), task)
    mask = read_positions(batch, "in_context")
    return circuit_of(found, batch, mask), found, Read(batch, mask)


@pytest.mark.parametrize(
    "model", [Simplified(d=16), Simplified(d=16, blocks=("attention", "attention", "linear")), DEEP]
)
def test_shares_of_the_parts_are_the_whole_lead(model: Simplified | Transformer) -> None:
    found, whole, read = told(model)
    lead = read.lead(whole(read.batch.tokens).logits)
    assert sum(part.attribution for part in found.parts) == pytest.approx(lead, abs=1e-4)
    assert found.positions == int(read.mask.sum())


def test_a_head_is_worth_what_ablating_it_costs() -> None:
    found, whole, read = told(DEEP)
    for part in found.parts:
        if part.head:
            loss = read.loss(whole.ablate(*part.head)(read.batch.tokens).logits)
            assert part.worth == pytest.approx(loss - found.loss, abs=1e-5)
    assert {part.name for part in found.parts if part.kind == "head"} == {
        "L1H1", "L1H2", "L2H1", "L2H2", "L2H3", "L3H1", "L3H2",
    }  # fmt: skip


def test_edges_have_the_recall_of_composition() -> None:
    found, whole, _ = told(DEEP)
    network = network_of(whole)
    readers = [head for head in network.heads() if head[0] > 1]
    expected = {
        ("L{}H{}".format(*writer), "L{}H{}".format(*one.reader)): recall
        for one in partners(network, readers, raw(network, np.arange(network.sizes.N)))
        for writer, recall in one.recalls
    }
    assert {(edge.writer, edge.reader): edge.recall for edge in found.edges} == expected


def test_what_is_cut_from_keys_costs_nothing_where_nothing_was_written() -> None:
    found, whole, read = told(Simplified(d=16))
    assert found.edges[0].cut != 0
    silent = replace(whole, weights=whole.weights | {"W_O1": torch.zeros(16, 16)})
    assert circuit_of(silent, read.batch, read.mask).edges[0].cut == pytest.approx(0, abs=1e-9)


def planted(tiny: Tiny) -> tuple[Train, Model]:
    spec = tiny().model_copy(update={"model": Simplified(d=256)})
    weights = plant(Simplified(d=256), spec.task.N, spec.task.T, spec.seed, sharpness=100.0)
    return spec, Model(spec.model, weights, spec.task, spec.seed)


def test_a_planted_head_has_its_circuit(tiny: Tiny) -> None:
    spec, model = planted(tiny)
    nodes = {node["name"]: node for node in circuit(spec, model)["nodes"]}
    assert (nodes["L1H1"]["role"], nodes["L2H1"]["role"]) == ("previous-token head", "induction head")
    assert all(nodes[f"memory:{name}"]["recall"] == 1 for name in ("W_K1", "W_K2", "W_O2"))
    assert nodes["L2H1"]["attribution"] > 5 * abs(nodes["L1H1"]["attribution"])
    assert nodes["L1H1"]["worth"] > 1
    assert nodes["L2H1"]["worth"] > 1
    (edge,) = (e for e in circuit(spec, model)["edges"] if e["to"] == "L2H1")
    assert edge["recall"] == 1
    assert edge["cut"] > 1
    assert nodes["answer"]["p_right"] > 0.9
    columns = [nodes[n]["column"] for n in ("embedding", "memory:W_K1", "L1H1", "memory:W_K2", "L2H1", "memory:W_O2")]
    assert columns == [0, 1, 2, 3, 4, 5]


def test_without_a_probe_that_confirms_it_nothing_has_a_role(tiny: Tiny) -> None:
    spec = tiny()
    nodes = circuit(spec, Model(spec.model, initial_weights(spec), spec.task))["nodes"]
    assert {node["role"] for node in nodes} == {None}


def test_a_planted_pointer_has_its_role() -> None:
    """The last layer looks at find²; find itself is what an induction head looks at."""
    task = Hops(length=40, most=4, hops=(4,))
    model = plant_hops(task, 4)
    plan = Plan(optimiser=SGD(lr=0.1), steps=1, batch=2, loss="hop4", trained=("W_K1",))
    spec = Train(task=task, model=model.architecture, plan=plan)  # type: ignore[arg-type]  # a Transformer
    roles = {node["name"]: node["role"] for node in circuit(spec, model)["nodes"]}
    assert roles["L1H1"] == "previous-token head"
    assert roles["L2H1"] == "induction head"
    assert roles["L4H1"] == "looks at find2"


def test_facts_are_filtered_and_stored() -> None:
    task = Facts(S=8, R=8, D=4)
    built = construct_with_mlp(task.book(0), 256, 64, 2, 4096, 0)
    batch = task.sample(0, STEP, 64)
    found = fact_circuit(built.model, built.weights, batch)
    (mlp,) = (part for part in found.parts if part.kind == "feed-forward")
    assert mlp.worth is not None
    assert mlp.worth > 1
    assert mlp.attribution > sum(part.attribution for part in found.parts if part.kind == "head")
    assert sum(edge.cut or 0 for edge in found.edges) > 0


def test_shares_of_a_model_of_facts_are_its_whole_lead() -> None:
    task = Facts(S=6, R=3, D=4)
    model = Factual(d=16, heads=3, d_h=8, m=24, answers=task.answers)
    w, batch = model.init(task.N, task.T, 0), task.sample(0, STEP, 32)
    found, read = fact_circuit(model, w, batch), Read(batch, batch.groups["answer"])
    logits = model.forward(w, torch.from_numpy(batch.tokens)).logits
    assert sum(part.attribution for part in found.parts) == pytest.approx(read.lead(logits), abs=1e-5)
    assert found.loss == pytest.approx(read.loss(logits), abs=1e-6)
    masses = list(looks(model, w, task.book(0), batch))
    assert len(masses) == 3
    assert all(0 < one.subject < 1 and one.chance == pytest.approx(1 / task.T) for one in masses)


def test_what_cannot_be_taken_apart_says_so() -> None:
    task = Facts(S=4, R=2)
    plan = Plan(optimiser=SGD(lr=0.1), steps=1, batch=2, loss="answer", trained=("W_OV",))
    spec = Train(task=task, model=SoftmaxHead(answers=task.answers, d=8), plan=plan)
    told = circuit(spec, Model(spec.model, initial_weights(spec), spec.task))
    assert "SoftmaxHead cannot be taken apart" in told["why"]
    assert told["nodes"] == []

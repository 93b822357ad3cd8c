"""Laws of the probe of noisy recall: ceilings on weights written by hand, chance on random ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.learning import SGD, Plan
from engram.models import Layer, Simplified, Trace, Transformer, Weights
from engram.models.construct import plant
from engram.probes.answers import recall_in_context
from engram.probes.columns import axis, column
from engram.probes.edges import Attention, Masses
from engram.probes.noise import Noise, in_context_logits, looks, margins
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import build
from engram.tasks import Batch, Bigram, NoisyRecall

TASK = NoisyRecall(T=64)
IDENTITY = (Layer(queries="identity", feed_forward="mlp"),) * 2
CIRCUIT = Transformer(d=1024, hidden=4, scale="unit", layers=IDENTITY)
SMALL = Transformer(d=16, hidden=8, layers=IDENTITY)
Q, NOISE = TASK.trigger, TASK.noise_token


@pytest.fixture(scope="module")
def planted() -> Weights:
    """An induction head written by hand, and feed-forward layers that write nothing."""
    w = plant(Simplified(d=1024, scale="unit"), TASK.N, TASK.T, seed=0, sharpness=100.0)
    silent = {
        f"W_{letter}{i}": torch.zeros(shape) for i in (1, 2) for letter, shape in (("I", (4, 1024)), ("F", (1024, 4)))
    }
    return w | {"W_O2": 10 * w["W_O2"]} | silent


def with_noise(w: Weights, i: int, size: float = 30.0) -> Weights:
    """W_F ReLU(W_I x) of layer i writes size · u_ν where x holds e_q, whatever else of E, P and U it holds."""
    W_I, W_F = torch.zeros_like(w[f"W_I{i}"]), torch.zeros_like(w[f"W_F{i}"])
    W_I[0] = torch.linalg.pinv(torch.cat([w["E"], w["P"], w["U"]]))[:, Q]  # 1 on e_q, 0 on all others
    W_F[:, 0] = size * w["U"][NOISE]
    return w | {f"W_I{i}": W_I, f"W_F{i}": W_F}


def recall(model: Transformer, w: Weights, task: NoisyRecall) -> dict[str, float]:
    return recall_in_context(*in_context_logits(model, w, task.clean.sample(0, 0, 6)), task.noise_token)


def test_recall_by_hand() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], dtype=torch.float64))
    found = recall_in_context(logits, torch.tensor([1, 2]), 0)
    assert found == pytest.approx(
        {"p_noise": 0.3, "p_correct": 0.475, "accuracy": 0.5, "loss": -(np.log(0.25) + np.log(0.7)) / 2}
    )


@given(seed=st.integers(0, 999), n=st.integers(1, 9), N=st.integers(2, 7))
def test_recall_of_no_knowledge_is_chance(seed: int, n: int, N: int) -> None:
    """Equal logits, whatever they are; and adding the same to all logits of a position changes nothing."""
    rng = torch.Generator().manual_seed(seed)
    targets, shift = torch.randint(N, (n,), generator=rng), torch.randn(n, 1, generator=rng, dtype=torch.float64)
    blind = recall_in_context(shift.expand(n, N), targets, N - 1)
    assert [blind["p_noise"], blind["p_correct"], blind["loss"]] == pytest.approx([1 / N, 1 / N, np.log(N)])
    logits = torch.randn(n, N, generator=rng, dtype=torch.float64)
    assert recall_in_context(logits + shift, targets, 0) == pytest.approx(recall_in_context(logits, targets, 0))


def test_where_nothing_is_asked_there_is_no_number() -> None:
    found = recall_in_context(torch.zeros(0, 5), torch.zeros(0, dtype=torch.long), 1)
    assert np.isnan(list(found.values())).all()


def test_logits_in_context_are_those_of_the_forward_pass() -> None:
    """In the order of sequences and positions, also where the sequences are taken in several parts."""
    w, batch = SMALL.init(TASK.N, TASK.T, 0), TASK.sample(0, 0, 70)
    logits, targets = in_context_logits(SMALL, w, batch)
    read = torch.from_numpy(batch.groups["in_context"])
    whole = SMALL.forward(w, torch.from_numpy(batch.tokens)).logits[read]
    assert torch.allclose(logits, whole, rtol=0, atol=1e-5)
    assert torch.equal(targets, torch.from_numpy(batch.targets)[read])


def test_a_planted_head_recalls_without_noise(planted: Weights) -> None:
    found = recall(CIRCUIT, planted, TASK)
    assert min(found["p_correct"], found["accuracy"]) > 0.95
    assert found["loss"] < 0.1


def test_a_feed_forward_layer_that_knows_the_noise_hides_the_head(planted: Weights) -> None:
    """p(noise) at its ceiling; without W_I, which truncation to rank 0 removes, the head is there as before."""
    w, batch = with_noise(planted, 2), TASK.clean.sample(0, 0, 6)
    found = recall(CIRCUIT, w, TASK)
    assert found["p_noise"] > 0.99
    assert found["accuracy"] == (batch.targets == NOISE)[batch.groups["in_context"]].mean()
    without = recall(CIRCUIT, w | {"W_I2": torch.zeros_like(w["W_I2"])}, TASK)
    assert without == recall(CIRCUIT, planted, TASK)


def test_random_weights_recall_by_chance() -> None:
    """Mean over 20 models; a small U makes all predictions nearly uniform."""
    found = [recall(SMALL, w | {"U": 0.01 * w["U"]}, TASK) for w in (SMALL.init(65, 64, seed) for seed in range(20))]
    mean = {name: np.mean([row[name] for row in found]) for name in found[0]}
    assert [mean["p_noise"], mean["p_correct"]] == pytest.approx([1 / 65, 1 / 65], rel=0.05)
    assert mean["loss"] == pytest.approx(np.log(65), rel=0.01)
    assert mean["accuracy"] < 0.2


def by_hand(U: torch.Tensor, x: torch.Tensor) -> float:
    logits = (U @ x).tolist()
    noise = logits.pop(NOISE)
    return noise - max(logits)


def test_margins_by_hand() -> None:
    """Layer by layer in plain matrix products, an mlp and then a linear layer."""
    layers = (Layer(queries="identity", feed_forward="mlp"), Layer(feed_forward="linear"))
    model = Transformer(d=12, hidden=7, layers=layers)
    w = {name: value.double() for name, value in model.init(TASK.N, TASK.T, 0).items()}
    e = w["E"][Q]
    first = w["W_F1"] @ torch.clamp(w["W_I1"] @ e, min=0)
    expected = {
        "F1": by_hand(w["U"], first),
        "F2": by_hand(w["U"], w["W_F2"] @ e),
        "F2F1": by_hand(w["U"], w["W_F2"] @ first),
    }
    assert margins(model, w, Q, NOISE) == pytest.approx(expected, abs=1e-12)


def test_margins_with_layer_norms() -> None:
    """Each layer reads n(x), and so does U."""
    model = Transformer(d=12, hidden=7, layers=IDENTITY, norm="pre")
    w = {name: value.double() for name, value in model.init(TASK.N, TASK.T, 0).items()}

    def n(x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean()) / (x.var(correction=0) + 1e-5).sqrt()

    second = w["W_F2"] @ torch.clamp(w["W_I2"] @ n(w["E"][Q]), min=0)
    assert margins(model, w, Q, NOISE)["F2"] == pytest.approx(by_hand(w["U"], n(second)), abs=1e-12)


@pytest.mark.parametrize("i", [1, 2])
def test_the_margin_of_a_layer_that_writes_the_noise_token(planted: Weights, i: int) -> None:
    """size (‖u_ν‖² − max_j u_j · u_ν); a layer that writes nothing has no margin."""
    found = margins(CIRCUIT, with_noise(planted, i), Q, NOISE)
    assert found[f"F{i}"] == pytest.approx(by_hand(planted["U"], 30 * planted["U"][NOISE]), rel=1e-4)
    assert found[f"F{i}"] > 20
    assert found[f"F{3 - i}"] == found["F2F1"] == 0


def test_margins_of_the_layers_that_there_are() -> None:
    one = Transformer(d=8, hidden=4, layers=(Layer(), Layer(feed_forward="mlp")))
    assert list(margins(one, one.init(65, 8, 0), Q, NOISE)) == ["F2"]
    none = Transformer(d=8, layers=(Layer(), Layer()))
    assert margins(none, none.init(65, 8, 0), Q, NOISE) == {}


def test_looks_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """q ν q o q x: in context at 3 and 5; layer 2 looks at ν and at o there, layer 1 looks back but for once."""
    tokens = np.array([[Q, NOISE, Q, 7, Q, 9]])
    again = np.array([[False, False, True, False, True, False]])
    batch = Batch(tokens, np.roll(tokens, -1), {"in_context": again})
    back = torch.eye(6)[[0, 0, 1, 2, 3, 0]][None, None]
    ahead = torch.zeros(1, 1, 6, 6)
    ahead[0, 0, 2, 1], ahead[0, 0, 2, 2] = 0.75, 0.25
    ahead[0, 0, 4, 1], ahead[0, 0, 4, 3], ahead[0, 0, 4, 0] = 0.25, 0.5, 0.25
    x = torch.zeros(1, 6, 1)
    trace = Trace({"embedding": x}, (back, ahead), (back, ahead), x, torch.zeros(1, 6, 65))
    monkeypatch.setattr(Transformer, "forward", lambda self, w, z: trace)
    found = looks(SMALL, {"E": torch.zeros(65, 1)}, batch, Q, NOISE)
    assert found == pytest.approx({
        "previous": 4 / 5, "previous.chance": sum(1 / t for t in range(2, 7)) / 5,
        "previous.t<100": 4 / 5, "previous.t<100.chance": sum(1 / t for t in range(2, 7)) / 5,
        "successors.noise": (0.75 + 0.25) / 2, "successors.noise.chance": (1 / 3 + 1 / 5) / 2,
        "successors.clean": (0 + 0.5) / 2, "successors.clean.chance": (0 + 1 / 5) / 2,
    })  # fmt: skip


def test_the_first_hundred_positions_are_told_apart() -> None:
    """Uniform attention has chance, and more of it where there is less to look at."""
    task = NoisyRecall(T=150)
    w = SMALL.init(task.N, task.T, 0)
    w |= {name: torch.zeros_like(w[name]) for name in ("W_K1", "W_K2")}
    found = looks(SMALL, w, task.sample(0, 0, 40), task.trigger, task.noise_token)
    for name in ("previous", "previous.t<100", "successors.noise", "successors.clean"):
        assert found[name] == pytest.approx(found[f"{name}.chance"], rel=1e-5)
    assert found["previous"] == pytest.approx(np.mean([1 / t for t in range(2, 151)]), rel=1e-5)
    assert found["previous.t<100"] == pytest.approx(np.mean([1 / t for t in range(2, 101)]), rel=1e-5)


def test_a_planted_head_looks_at_all_successors(planted: Weights) -> None:
    """And at nothing else; which of them it prefers is a matter of interference between random embeddings."""
    found = looks(CIRCUIT, planted, TASK.sample(0, 0, 6), Q, NOISE)
    assert min(found["previous"], found["previous.t<100"]) > 0.99
    assert found["successors.noise"] + found["successors.clean"] > 0.95


def trained(task: Any, model: Any = SMALL, **plan: Any) -> Train:
    how = Plan(optimiser=SGD(lr=0.03), steps=4, batch=4, trained=("W_F2", "W_O2"), **plan)
    return build(Train, {"task": task, "model": model, "plan": how})  # type: ignore[return-value]


COLUMNS = {"noise.p_noise", "noise.p_correct", "noise.accuracy", "noise.loss"}
COLUMNS |= {f"noise.margin.{path}" for path in ("F1", "F2", "F2F1")}
PLACES = ("previous", "previous.t<100", "successors.noise", "successors.clean")
COLUMNS |= {f"noise.mass.{place}{chance}" for place in PLACES for chance in ("", ".chance")}


@pytest.mark.parametrize("noise", ["existing", "extra"])
def test_columns_of_a_training(tmp_path: Path, noise: Any) -> None:
    """At the end, or every so often; beside the probes of every training, and a test on clean text."""
    task = NoisyRecall(T=24, noise=noise)
    record = execute(trained(task, probes=(Noise(every=2, sequences=8),)), tmp_path)
    measured = {row["step"]: {name for name in row if name.startswith("noise.")} for row in record.rows}
    assert measured == {0: COLUMNS, 1: set(), 2: COLUMNS, 3: set(), 4: COLUMNS}
    assert {"recall.W_O2", "kl.W_F", "attention.induction"} <= set(record.rows[0])
    last = execute(trained(task, at_end=("noise",)), tmp_path).rows
    assert not COLUMNS & set(last[0])
    assert set(last[-1]) >= COLUMNS


def test_it_measures_clean_and_noisy_sequences_that_training_never_sees(tmp_path: Path) -> None:
    spec = trained(NoisyRecall(T=24), probes=(Noise(every=1, sequences=8),))
    row, task = execute(spec, tmp_path).rows[0], NoisyRecall(T=24)
    w = SMALL.init(task.N, task.T, 0)
    clean, noisy = task.clean.sample(0, 2**40, 8), task.sample(0, 2**40, 8)
    expected = recall_in_context(*in_context_logits(SMALL, w, clean), NOISE)
    expected |= {f"mass.{name}": value for name, value in looks(SMALL, w, noisy, Q, NOISE).items()}
    assert {name: row[f"noise.{name}"] for name in expected} == pytest.approx(expected, rel=1e-6)


UNSUITED = [(Bigram(T=24), SMALL), (TASK, Simplified(d=8)), (TASK, Transformer(d=8, layers=(Layer(),)))]


@pytest.mark.parametrize(("task", "model"), UNSUITED)
def test_what_does_not_suit_is_told(task: Any, model: Any) -> None:
    plan = Plan(optimiser=SGD(lr=1.0), steps=1, batch=1, trained=("U",), at_end=("noise",))
    with pytest.raises(
        EngramError, match="'noise' needs the task NoisyRecall and a Transformer with two layers"
    ) as error:
        build(Train, {"task": task, "model": model, "plan": plan})
    assert "\n" not in str(error.value)


def test_other_probes_say_whether_they_suit_noisy_recall() -> None:
    assert Attention().missing(TASK, SMALL) is None
    assert Masses().missing(TASK, SMALL) == "the task Bigram and a model with two layers of attention"


def test_columns_have_titles() -> None:
    titles = {
        "noise.p_noise": ("probability on clean text", "noise token"),
        "noise.p_correct": ("probability on clean text", "right token"),
        "noise.accuracy": ("accuracy on clean text", "accuracy"),
        "noise.loss": ("loss on clean text", "loss"),
        "noise.margin.F2F1": ("margin of noise", "F2F1"),
        "noise.mass.previous.t<100": ("mass", "previous t<100"),
        "noise.mass.successors.clean.chance": ("mass", "successors clean chance"),
        "noise": ("noise", "noise"),
    }
    assert {name: column(name)[1:] for name in titles} == titles
    assert axis("loss on clean text") == "loss on clean text (nats)"

"""A model of ours as a GPT-2 folder: read again it computes the same; what is no GPT-2 is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from conftest import main
from engram.adapters import read_network, revisions
from engram.adapters.export import gpt2_files
from engram.errors import EngramError
from engram.laws.same_probe import copied, differences
from engram.learning import SGD, Plan
from engram.models import Layer, Model, Network, Transformer, network_of
from engram.records import Record
from engram.records.hugging_face import export_hugging_face
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks import Bigram
from networks import MODELS, TASK, made, sequences

KINDS = ("none", "linear", "mlp")


def random_model(scale: str, *kinds: str, heads: int = 2, queries: str = "matrix") -> Model:
    layers = tuple(Layer.model_validate({"heads": heads, "feed_forward": k, "queries": queries}) for k in kinds)
    model = Transformer.model_validate({"d": 12, "layers": layers, "hidden": 20, "norm": "pre", "scale": scale})
    return Model(model, model.init(TASK.N, TASK.T, 3))


@pytest.mark.parametrize("scale", ["standard", "unit"])
@pytest.mark.parametrize("kinds", [("none", "none"), ("linear", "mlp"), ("mlp", "none", "linear")])
def test_the_copy_computes_the_same(scale: str, kinds: tuple[str, ...]) -> None:
    model = random_model(scale, *kinds)
    assert torch.allclose(copied(model).stream(sequences()), model(sequences()).logits, rtol=0, atol=1e-5)
    assert max(differences(model, sequences()).values()) < 1e-5


def test_queries_that_are_the_identity() -> None:
    model = random_model("unit", "none", "linear", heads=1, queries="identity")
    assert max(differences(model, sequences()).values()) < 1e-5


def test_a_wrong_copy_is_seen() -> None:
    model = random_model("standard", "mlp", "mlp")
    other = Model(model.architecture, model.weights | {"W_O2": 1.01 * model.weights["W_O2"]})
    off = (copied(other).stream(sequences()) - network_of(model).stream(sequences())).abs().max()
    assert off > 1e-4


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("full", r"a GPT-2 always normalises, so it needs norm='pre'; got norm='none'; --format folder, csv"),
        ("pre-norm", "all layers of a GPT-2 have the same number of heads; got 2, 3"),
        ("simplified", "only a Transformer with norm='pre' is a GPT-2; got a Simplified"),
    ],
)
def test_what_is_no_gpt2_is_refused(name: str, says: str) -> None:
    assert name in MODELS
    with pytest.raises(EngramError, match=f"export: {says}"):
        gpt2_files(made(name))


@pytest.fixture
def run(home: Path) -> Record:
    """A short training that stores three steps."""
    model = Transformer(d=12, layers=(Layer(heads=2), Layer(heads=2, feed_forward="mlp")), hidden=16, norm="pre")
    plan = Plan(optimiser=SGD(lr=0.1), steps=4, batch=4)
    return execute(Train(task=Bigram(K=3, T=24), model=model, plan=plan, seed=0), home)


def test_stored_steps_are_revisions(run: Record, tmp_path: Path) -> None:
    folders = export_hugging_face(run, tmp_path / "exported")
    assert [folder.name for folder in folders] == [f"step{step}" for step in run.snapshot_steps]
    assert len(folders) > 1
    for step, (name, model) in zip(run.snapshot_steps, revisions(tmp_path / "exported" / run.id), strict=True):
        assert name == f"step{step}"
        expected = run.model(step)(sequences()).logits
        assert torch.allclose(model.network.stream(sequences()), expected, rtol=0, atol=1e-5)


def test_the_command(run: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["runs", "export", run.id, "--format", "hf", "--into", str(tmp_path / "out"), "--json"])
    assert not ended.value.code
    written = json.loads(capsys.readouterr().out)["exported"]
    assert isinstance(read_network(written[0]), Network)


def test_the_copy_is_read_by_transformers(tmp_path: Path) -> None:
    theirs: Any = pytest.importorskip("transformers", reason="the extra hf is not installed")
    for scale in ("standard", "unit"):
        model = random_model(scale, *KINDS)
        folder = tmp_path / scale
        folder.mkdir()
        for name, content in gpt2_files(model).items():
            (folder / name).write_bytes(content)
        loaded = theirs.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        with torch.no_grad():
            found = loaded(sequences()).logits
        assert torch.allclose(found, model(sequences()).logits, rtol=0, atol=1e-5)

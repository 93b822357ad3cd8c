"""The fast path is the reference, faster: equal gradients, equal samples; and without a compiler everything works."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram import api
from engram.bench import suite
from engram.bench.baselines import dense_loss, descend, sample_token_by_token
from engram.cli.main import main
from engram.errors import EngramError
from engram.learning import SGD, Plan, choose_path, fast, reference
from engram.models import Simplified
from engram.native import kernel
from engram.records import Record
from engram.tasks import Bigram

pytestmark = pytest.mark.skipif(kernel() is None, reason="no C++ compiler on PATH")
LINEAR = ("attention", "attention", "linear")
TOLERANCE = {"float64": 1e-10, "float32": 1e-4}


@given(
    T=st.integers(2, 90), K=st.integers(1, 6), d=st.integers(1, 70), B=st.integers(1, 5), threads=st.integers(1, 3),
    scale=st.sampled_from(["standard", "unit"]), blocks=st.sampled_from([LINEAR, LINEAR[:2]]),
    loss=st.sampled_from(["in_context", "global", "first", "all"]), dtype=st.sampled_from(["float64", "float32"]),
    names=st.sets(st.sampled_from(sorted(fast.TRAINABLE))), seed=st.integers(0, 50), shorter=st.integers(0, 3),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_gradients_equal_autograd(
    T: int, K: int, d: int, B: int, threads: int, scale: Any, blocks: Any, loss: str, dtype: str, names: set[str],
    seed: int, shorter: int,
) -> None:  # fmt: skip
    """Every shape, every trained subset; the model may have more positions than the sequences."""
    task, model = Bigram(K=K, T=T), Simplified(d=d, scale=scale, blocks=blocks)
    w = {name: value.to(getattr(torch, dtype)) for name, value in model.init(task.N, T + shorter, seed).items()}
    chosen = tuple(sorted(names & set(model.names)))
    batch = task.sample(seed, 0, B)
    torch.set_num_threads(threads)
    expected, found = (path.gradients(model, w, batch, loss, chosen) for path in (reference, fast))
    assert found.positions == expected.positions
    assert found.metrics == pytest.approx(expected.metrics, rel=TOLERANCE[dtype], abs=TOLERANCE[dtype], nan_ok=True)
    # In float32 a gradient that nearly cancels is known no better than the largest one beside it.
    norms = {name: gradient.norm().item() for name, gradient in expected.gradients.items()}
    largest = max(norms.values(), default=0.0)
    for name in chosen:
        error = (found.gradients[name] - expected.gradients[name]).norm().item()
        scale_of_error, floor = (norms[name], 1e-13) if dtype == "float64" else (largest, 1e-9)
        assert error <= TOLERANCE[dtype] * scale_of_error + floor


@pytest.mark.parametrize("letters", [2, 300])
def test_vocabularies_of_other_sizes(letters: int, tmp_path: Path) -> None:
    text = "".join(chr(0x100 + i) for i in range(letters)) * 3
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    task = Bigram.model_validate({"corpus": str(tmp_path / "text.txt"), "K": 2, "T": 50})
    model = Simplified(d=10)
    w = {name: value.double() for name, value in model.init(letters, 50, 0).items()}
    batch = task.sample(0, 0, 3)
    torch.set_num_threads(8)  # more than sequences
    expected, found = (path.gradients(model, w, batch, "all", ("W_K1", "W_K2", "W_O2")) for path in (reference, fast))
    assert found.metrics == pytest.approx(expected.metrics, rel=1e-10, nan_ok=True)
    for name, gradient in expected.gradients.items():
        assert (found.gradients[name] - gradient).norm() <= 1e-10 * gradient.norm() + 1e-13


def test_what_does_not_fit_is_refused_before_the_kernel() -> None:
    task, model = Bigram(T=40), Simplified(d=8)
    w, batch = model.init(65, 40, 0), task.sample(0, 0, 2)
    for wrong in (model.init(65, 30, 0), model.init(50, 40, 0), {k: v.half() for k, v in w.items()}):
        with pytest.raises(EngramError, match=r"does not fit|float32 or float64"):
            fast.gradients(model, wrong, batch, "all", ("W_O2",))


def test_overflow_shows_in_the_loss() -> None:
    """All weights finite, scores infinite: the reference says NaN, and so must we."""
    task, model = Bigram(K=3, T=30), Simplified(d=8)
    w, batch = model.init(65, 30, 0), task.sample(0, 0, 4)
    w["W_K2"] *= 1e20
    w["W_O1"] *= 1e20
    for path in (reference, fast):
        assert np.isnan(path.gradients(model, w, batch, "all", ("W_O2",)).metrics["loss"])


def test_paper_size_in_float32() -> None:
    task, model = Bigram(), Simplified()
    w, batch = model.init(65, 256, 0), task.sample(0, 0, 6)
    names = ("W_K1", "W_K2", "W_O2")
    expected, found = (path.gradients(model, w, batch, "in_context", names) for path in (reference, fast))
    for name, gradient in expected.gradients.items():
        assert (found.gradients[name] - gradient).norm() < 1e-4 * gradient.norm()


def test_same_threads_same_bytes() -> None:
    task, model = Bigram(T=100), Simplified(d=40)
    w, batch = model.init(65, 100, 0), task.sample(0, 0, 9)
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        first, again = (fast.gradients(model, w, batch, "all", ("W_K1", "W_O2")).gradients for _ in range(2))
        assert all(torch.equal(first[name], again[name]) for name in first)


@pytest.mark.parametrize("name", ["W_K1", "W_K2", "W_O2", "W_V1"])
def test_a_weight_that_is_no_number_shows_in_the_loss(name: str) -> None:
    task, model = Bigram(K=3, T=30), Simplified(d=8)
    w, batch = model.init(65, 30, 0), task.sample(0, 0, 4)
    w[name][1, 2] = float("nan")
    assert np.isnan(fast.gradients(model, w, batch, "all", ("W_O2",)).metrics["loss"])


@given(
    T=st.integers(2, 80), K=st.integers(1, 65), B=st.integers(1, 20), seed=st.integers(0, 99),
    outputs=st.sampled_from(["uniform", "bigram"]), triggers=st.sampled_from(["random", "fixed"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_compiled_walk_equals_the_readable_one(T: int, K: int, B: int, seed: int, outputs: Any, triggers: Any) -> None:
    task = Bigram(T=T, K=K, outputs=outputs, triggers=triggers)
    rng = np.random.default_rng(seed)
    jumps = np.where(rng.random((B, 65)) < K / 65, rng.integers(0, 65, (B, 65)), -1)
    bits = rng.integers(0, 2**32, (T + 1, B), dtype=np.uint32)
    for compiled, readable in zip(task._native_walk(jumps, bits), task._walk(jumps, bits), strict=True):
        assert np.array_equal(compiled, readable)


def test_the_dense_baseline_computes_the_same_loss() -> None:
    """A baseline that computed something else would flatter."""
    for blocks, loss, names in ((LINEAR[:2], "in_context", ("W_O2",)), (LINEAR, "all", ("W_O2", "W_F"))):
        task, model = Bigram(K=3, T=40), Simplified(d=12, blocks=blocks)
        w, batch = model.init(65, 40, 0), task.sample(0, 0, 7)
        expected = reference.gradients(model, w, batch, loss, names)
        leaves = w | {name: w[name].clone().requires_grad_() for name in names}
        optimiser = torch.optim.SGD([leaves[name] for name in names], 0.5)
        assert descend(optimiser, dense_loss(model, leaves, batch, loss)) == pytest.approx(
            expected.metrics["loss"], rel=1e-5
        )
        for name in names:
            assert torch.allclose(leaves[name], w[name] - 0.5 * expected.gradients[name], atol=1e-5)


def test_the_plain_sampler_draws_from_the_same_task() -> None:
    task = Bigram(K=3, T=60)
    z = sample_token_by_token(task, 0, 300)
    assert z.shape == (300, 61)
    impossible = task.table.bigram[z[:, :-1], z[:, 1:]] == 0
    ours = task.sample(0, 0, 300)
    assert abs(impossible.mean() - (task.table.bigram[ours.tokens, ours.targets] == 0).mean()) < 0.03
    shares = [np.bincount(tokens.ravel(), minlength=65) / tokens.size for tokens in (z, ours.tokens)]
    assert np.abs(shares[0] - shares[1]).max() < 0.03


def test_bench_answers_in_the_contract_form(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "BATCH", 8)
    with pytest.raises(SystemExit) as stop:
        main(["bench", "sample", "step", "step.roofline", "--json"])
    lines = json.loads(capsys.readouterr().out)["benchmarks"]
    assert stop.value.code == 0
    assert [line["name"] for line in lines] == ["sample", "step.in-context", "step.all-tokens", "step.roofline"]
    for line in lines:
        assert {"name", "value", "unit", "baseline", "ratio", "gflops"} <= set(line)
        assert min(line["value"], line["baseline"], line["ratio"]) > 0
    with pytest.raises(SystemExit) as stop:
        main(["bench", "stepp"])
    assert stop.value.code == 2
    assert "did you mean step?" in capsys.readouterr().err


def test_the_path_is_chosen_said_and_can_be_forced(home: Path) -> None:
    chosen = api.run("birth.joint", scale="smoke").records[0]
    forced = api.run("birth.joint", scale="smoke", seeds=[1], path="reference").records[0]
    assert [record.env["sittings"][0]["path"] for record in (chosen, forced)] == ["fast", "reference"]
    assert api.recheck(chosen)["ok"]
    assert api.recheck(forced)["ok"]
    plan = Plan(optimiser=SGD(lr=0.1), steps=1, batch=1, trained=("E",))
    assert choose_path("auto", Simplified(), plan, "cpu") == "reference"
    assert choose_path("auto", Simplified(), plan.model_copy(update={"trained": ("W_F",)}), "cuda") == "reference"
    with pytest.raises(EngramError, match="--path fast: needs Simplified or Factual on CPU"):
        choose_path("fast", Simplified(), plan, "cpu")
    with pytest.raises(EngramError, match="allowed: auto, fast, reference"):
        choose_path("quick", Simplified(), plan, "cpu")


def test_without_a_compiler_everything_works(home: Path, tmp_path: Path) -> None:
    """An empty PATH and an empty cache: the torch path, the same data, and rows equal to all digits that count."""
    with_kernel = api.run("birth.joint", scale="smoke").records[0]
    environment = {k: v for k, v in os.environ.items() if k not in ("PATH", "XDG_CACHE_HOME")}
    environment |= {"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache"), "ENGRAM_HOME": str(tmp_path / "plain")}
    command = [sys.executable, "-m", "engram", "run", "birth.joint", "--scale", "smoke"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    without = Record(tmp_path / "plain" / with_kernel.id)
    assert without.env["sittings"][0]["path"] == "reference"
    for row, other in zip(with_kernel.rows, without.rows, strict=True):
        assert row == pytest.approx(other, rel=2e-4, abs=2e-4, nan_ok=True)

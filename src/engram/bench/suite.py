"""The benchmarks. Each measures both sides on a stated slice in the same run, warmed up, best of several."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from engram.bench import busy, engines, facts, grid, hops, lab, load, noisy, probing, sweeps
from engram.bench.baselines import dense_loss, descend, sample_in_pool, sampling_pool, transformer_loss
from engram.bench.lines import Benchmark, Work, best, in_process, our_step, peaks
from engram.engines.local import cores
from engram.learning import SGD
from engram.learning.plan import Plan
from engram.models import Simplified, Transformer, Weights
from engram.specs import Train
from engram.tasks import Bigram

BATCH, PROCESSES, TIMES = 512, cores(), 3
TRAINED = {"in-context": ("W_K1", "W_K2", "W_O2"), "all-tokens": ("W_K1", "W_K2", "W_O2", "W_F")}
OPTIMISER = SGD(lr=0.2, momentum=0.9, weight_decay=1e-4)
LOSS = {"in-context": "in_context", "all-tokens": "all"}


@dataclass
class Bench:
    """Both sides of every benchmark; what several of them need is measured once."""

    task: Bigram = field(default_factory=lambda: Bigram(K=5, T=256))
    d: int = 128

    def model(self, kind: str) -> Simplified:
        blocks = ("attention", "attention", "linear") if kind == "all-tokens" else ("attention", "attention")
        return Simplified(d=self.d, blocks=blocks)

    def weights(self, kind: str) -> Weights:
        return self.model(kind).init(self.task.N, self.task.T, 0)

    @cached_property
    def sgemm(self) -> float:
        """GFLOP/s of a tall × d × d product, the shape of the model's projections."""
        tall, square = torch.randn(BATCH * self.task.T, self.d), torch.randn(self.d, self.d)
        out = torch.empty_like(tall)  # without this, half of the time would go into fetching fresh memory
        return 2 * tall.numel() * self.d / best(lambda: torch.mm(tall, square, out=out), 10) / 1e9

    @cached_property
    def token_by_token(self) -> float:
        """Tokens per second of the plain sampler on as many processes as there are cores, 16 sequences each."""
        with sampling_pool(PROCESSES) as pool:
            seconds = best(lambda: sample_in_pool(pool, PROCESSES, self.task, 16 * PROCESSES), TIMES)
        return 16 * PROCESSES * self.task.T / seconds

    def dense_step(self, kind: str, names: tuple[str, ...] = ()) -> Work:
        """A dense step at the full batch; its sampling is not in it."""
        model, w, batch = self.model(kind), self.weights(kind), self.task.sample(0, 0, BATCH)
        optimiser = plain_sgd([w[name] for name in names or TRAINED[kind]])
        return lambda: descend(optimiser, dense_loss(model, w, batch, LOSS[kind]))

    def our_step(self, kind: str, batch: int = BATCH, names: tuple[str, ...] = ()) -> Work:
        plan = Plan(optimiser=OPTIMISER, steps=1, batch=batch, trained=names or TRAINED[kind], loss=LOSS[kind])
        return our_step(self.task, self.model(kind), plan)

    @cached_property
    def steps(self) -> dict[str, tuple[float, float, float]]:
        """For each loss: our seconds, the dense step's seconds, and the dense step's GFLOP as torch counts them."""
        measured = {}
        for kind in TRAINED:
            dense = self.dense_step(kind)
            with FlopCounterMode(display=False) as counter:
                dense()
            measured[kind] = (best(self.our_step(kind), TIMES), best(dense, TIMES), counter.get_total_flops() / 1e9)
        return measured


def sample(bench: Bench) -> Iterator[Benchmark]:
    tokens = BATCH * bench.task.T
    ours = tokens / best(lambda: bench.task.sample(0, 0, BATCH), TIMES)
    about = f"baseline: numpy choice for every token, {PROCESSES} processes, 16 sequences each; ours: one thread"
    yield Benchmark("sample", ours, bench.token_by_token, about, unit="tokens/s")


def steps(bench: Bench) -> Iterator[Benchmark]:
    for kind, (ours, dense, gflop) in bench.steps.items():
        plain = dense + BATCH * bench.task.T / bench.token_by_token
        share = gflop / dense / bench.sgemm
        about = (
            f"baseline: dense step {dense:.2f} s at {share:.0%} of sgemm {bench.sgemm:.0f} GFLOP/s, plus plain sampling"
        )
        if share < 0.35:
            about += " (below 35 %: NOT A FAIR BASELINE in this run)"
        yield Benchmark(f"step.{kind}", ours, plain, about, gflops=gflop / dense)


def roofline(bench: Bench) -> Iterator[Benchmark]:
    """Could a perfect dense implementation be faster? The dense FLOPs at the speed of sgemm, against our whole step."""
    ours, _, gflop = bench.steps["in-context"]
    left, perfect = algebra_gflop(bench), gflop / bench.sgemm
    about = f"baseline: the dense step's {gflop:.0f} GFLOP at sgemm speed; {left:.0f} GFLOP are left by the algebra"
    yield Benchmark("step.roofline", ours, perfect, about, gflops=bench.sgemm)


def limit(bench: Bench) -> Iterator[Benchmark]:
    """How near our step comes to the least time that its own arithmetic can take; a ratio of 1 cannot be reached."""
    ours, _, _ = bench.steps["in-context"]
    left = algebra_gflop(bench)
    about = f"baseline: the {left:.0f} GFLOP that the algebra leaves, at sgemm speed; sampling and updates are in ours"
    yield Benchmark("step.limit", ours, left / bench.sgemm, about, gflops=left / ours)


def algebra_gflop(bench: Bench) -> float:
    """Multiplications and additions in the kernel's matrix products for one in-context step, counted on a batch."""
    batch, d, N = bench.task.sample(0, 0, BATCH), bench.d, bench.task.N
    total = 0
    for read in batch.groups["in_context"]:
        q = np.flatnonzero(read)
        if len(q):
            Q, seen, last = len(q), int((q + 1).sum()), int(q[-1]) + 1
            layer1 = 2 * last * (last + 1) * d  # x1, and back ∇a1: half of a square each
            layer2 = 6 * 2 * seen * d  # scores, mixing; back: ∇a2, ∇(W_K2ᵀ x1_t), and ∇x1 twice
            square, readout = 3 * 2 * Q * d * d, 5 * 2 * Q * N * d
            total += layer1 + layer2 + square + readout
    return total / 1e9


def ours() -> Work:
    return Bench().our_step("in-context")


def dense() -> Work:
    return Bench().dense_step("in-context")


def memory(bench: Bench) -> Iterator[Benchmark]:
    """Growth of the process's peak during steps, each side in a process of its own."""
    yield peaks("step.memory", f"{__name__}.ours", f"{__name__}.dense")


FIRST_STEP = """
from pathlib import Path
import tempfile
from engram.experiments import find
from engram.runner.execute import execute
with tempfile.TemporaryDirectory() as home:
    try:
        execute(find("birth.joint").specs("quick", [0])[0], Path(home), on_row=lambda row: 1 / (1 - row["step"]))
    except ZeroDivisionError:
        print(0)
"""


def start(bench: Bench) -> Iterator[Benchmark]:
    """From process start to the end of the first training step, beyond what `import torch` alone takes."""
    whole = best(lambda: in_process(FIRST_STEP, ""), TIMES)
    torch_alone = best(lambda: in_process("import torch; print(0)", ""), TIMES)
    about = "seconds beyond `import torch` (baseline: `import torch`), kernel compiled before"
    yield Benchmark("start", whole - torch_alone, torch_alone, about)


def fig3(bench: Bench) -> Iterator[Benchmark]:
    """All five schedules of birth.fig3 at paper scale, from one step of each of their phases."""
    from engram.experiments.birth.fig3 import specs

    trainings = [spec for same in specs("paper", [0]).values() for spec in same if isinstance(spec, Train)]
    phases = [phase for spec in trainings for phase in _phases(spec.plan)]
    seconds = {names: _phase_seconds(bench, names) for names in {names for names, _ in phases}}
    ours, dense = (sum(seconds[names][side] * steps for names, steps in phases) for side in (0, 1))
    about = f"5 schedules of 1000 steps, extrapolated from {len(seconds)} phases; baseline: dense steps, plain sampling"
    yield Benchmark("fig3", ours, dense, about)


def _phases(plan: Plan) -> list[tuple[tuple[str, ...], int]]:
    """Which matrices move for how many steps."""
    until = max(plan.frozen_until.values(), default=0)
    parts = [(plan.trained_at(0), until), (plan.trained_at(until), plan.steps - until)]
    return [(names, steps) for names, steps in parts if steps]


def _phase_seconds(bench: Bench, names: tuple[str, ...]) -> tuple[float, float]:
    sampling = BATCH * bench.task.T / bench.token_by_token
    ours = best(bench.our_step("in-context", names=names), 2)
    return ours, best(bench.dense_step("in-context", names=names), 2) + sampling


def growth(bench: Bench) -> Iterator[Benchmark]:
    """Seconds of our step as sizes grow, against proportional growth of the smallest in batch; T and d beside it."""
    base = best(bench.our_step("in-context", 128), 3)
    for batch in (256, 512, 1024):
        seconds = best(bench.our_step("in-context", batch), 2)
        yield Benchmark(f"growth.batch-{batch}", seconds, base * batch / 128, "baseline: linear from batch 128")
    for T in (64, 128, 256, 512, 1024):
        seconds = best(Bench(Bigram(K=5, T=T)).our_step("in-context", 64), 2)
        yield Benchmark(f"growth.T-{T}", seconds, seconds, "batch 64, d 128")
    for d in (64, 128, 256, 512):
        seconds = best(Bench(d=d).our_step("in-context", 64), 2)
        yield Benchmark(f"growth.d-{d}", seconds, seconds, "batch 64, T 256")


FULL, FULL_TASK = Transformer(), Bigram(K=3, T=256)


def transformer(bench: Bench) -> Iterator[Benchmark]:
    """The general Transformer, a few sequences at a time, against a plain one that takes the batch as a whole."""
    about = f"full model of 2 layers, d {FULL.d}, T {FULL_TASK.T}, batch 256; both with the same sampling"
    yield Benchmark("transformer.step", best(full(), 3), best(unchunked(), 3), about)
    yield peaks("transformer.memory", f"{__name__}.full", f"{__name__}.unchunked")


def full() -> Work:
    return our_step(FULL_TASK, FULL, Plan(optimiser=OPTIMISER, steps=1, batch=256, trained=FULL.names, loss="all"))


def unchunked() -> Work:
    w, number = FULL.init(FULL_TASK.N, FULL_TASK.T, 0), count()
    optimiser = plain_sgd(list(w.values()))
    return lambda: descend(optimiser, transformer_loss(FULL, w, FULL_TASK.sample(0, next(number), 256)))


def plain_sgd(weights: list[torch.Tensor]) -> torch.optim.Optimizer:
    """As torch sets it up by itself, with the numbers of ours."""
    return torch.optim.SGD([weight.requires_grad_() for weight in weights], 0.2, 0.9, weight_decay=1e-4)


BENCHMARKS = {
    "sample": sample,
    "step": steps,
    "step.roofline": roofline,
    "step.limit": limit,
    "step.memory": memory,
    "step.busy": busy.beside_others,
    "start": start,
    "growth": growth,
    "fig3": fig3,
    "transformer.step": transformer,
    "step.facts": facts.steps,
    "step.noisy": noisy.steps,
    "step.hops": hops.steps,
    "grid": grid.grid,
    "sweep.linear": sweeps.linear,
    "sweep.hopeless": sweeps.hopeless,
    "lab.slowdown": lab.slowdown,
    "lab.scrub": lab.scrub,
    "lab.report": lab.report,
    "probe.heads": probing.heads,
    "probe.pass": probing.warm,
    "engine.local": engines.local,
    "engine.ray": engines.ray,
    "engine.speedup": engines.speedup,
    "load.rows": load.rows,
    "load.runs": load.runs,
}

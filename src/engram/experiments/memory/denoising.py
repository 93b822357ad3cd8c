"""Attention trained to denoise in context finds one step of a dense memory, close to Bayes' predictor.

W_PV and W_KQ become αI and βI. Protocol of the published code: n=16, L=500, 800 prompts to train and 200 to test, the
same for all seeds, Adam, 100 epochs. In case 1 linear attention at its best scale, αβ = (1/3)/(1 + (d+1)/L) = .3274, is
3.5 % above Bayes' 1/3, since L points do not fix the subspace; 512 weights learned from 800 prompts cost 5 % more. It
is within 6 % of 1/3 on the first dataset, whose test prompts are easy (Bayes: .310), but not of Bayes' error over
datasets. In case 3 the scales still move after 100 epochs. More datasets and 200 epochs were tried after seeing this.

    engram run memory.denoising --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Rows, Runs, Scale, Seeds, checks
from engram.tasks.denoising import Subspace
from engram.theory.retrieval import subspace_floor

SOURCE = "Smart, Bietti and Sengupta 2025, section 3 and its published code"
CLAIMS = {
    "memory.denoising": "Trained attention has the published scales α and β, in a subspace and on clusters.",
    "memory.denoising-floor": "In a subspace linear attention is within 6 % of the floor 1/3.",
    "memory.denoising-longer": "On clusters, 200 epochs bring softmax attention to the published scales.",
    "memory.denoising-datasets": "Over datasets, linear attention is within 6 % of Bayes' error on the same prompts.",
}
WHY = {
    "memory.denoising": (
        "Only case 3 (clusters) disagrees. After the 100 epochs of the published protocol the scales of softmax "
        "attention are still moving when the learning rate drops; after 200 epochs the same code lands on the "
        "published values (memory.denoising-longer). Control: in case 1 (subspace) every measure agrees, and αβ = "
        "0.3276 where the closed form (1/3)/(1 + (d + 1)/L) gives 0.3274."
    ),
    "memory.denoising-datasets": (
        "Bayes' predictor knows the subspace, which L = 500 points do not determine: this costs linear attention 3.5 "
        "% even at its best scale. Learning 512 weights from 800 prompts costs the rest. The published 6 % owe "
        "something to their dataset, whose 200 test prompts are easy (there Bayes' error is 0.310 instead of 1/3). "
        "Control: on the same prompts one step of memory with αI and βI is within 6 %."
    ),
}
CASES, KINDS = ("subspace", "sphere", "clusters"), ("linear", "softmax")
PUBLISHED = {"subspace": (1.607, 0.194), "clusters": (1.0, 5.13)}  # α and β of softmax attention
LAW = "learning.denoising.trained"
ONE = "weight seeds on one dataset"  # what n counts
SMOKE = {"epochs": 2, "L": 20, "n": 12}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    """By case and kind of attention; runs beyond the protocol are kinds of their own."""
    less, prompts = (SMOKE, 100) if scale == "smoke" else ({}, 1000)
    sizes = {(case, kind): less | {"case": case, "attention": kind} for case in CASES for kind in KINDS}
    linear, longer = sizes["subspace", "linear"], {"epochs": 2 * less.get("epochs", 100)}
    sizes["clusters", "longer"] = sizes["clusters", "softmax"] | longer
    return {
        **{label: checks(LAW, seeds, prompts, **size) for label, size in sizes.items()},
        ("subspace", "datasets"): [check for n in seeds for check in checks(LAW, [n], prompts, **linear, data=n)],
    }


def claims(runs: Runs) -> Claimed:
    last = {label: [r.rows[-1] for r in same] for label, same in runs.items()}
    linear = last["subspace", "linear"]
    errors = [row["loss.test"] / subspace_floor(Subspace()) for row in linear]
    floor = Measure.over_seeds("subspace: test error / (1/3), linear", errors, 0.94, 1.06).noted(counts=ONE)
    published = [
        near("subspace: αβ, linear", [row["alpha"] * row["beta"] for row in linear], 1 / 3, 0.06),
        *near_published("subspace", last["subspace", "softmax"], 0.15, 0.15),
        *near_published("clusters", last["clusters", "softmax"], 0.05, 0.15),
    ]
    yield "memory.denoising", published
    yield "memory.denoising-floor", [floor]
    yield "memory.denoising-longer", [*near_published("clusters", last["clusters", "longer"], 0.05, 0.15)]
    names = {"loss.test": "trained: test / Bayes", "loss.memory": "one step of memory αI, βI: test / Bayes"}
    yield "memory.denoising-datasets", [over_datasets(name, runs, column) for column, name in names.items()]


def near_published(case: str, rows: Rows, *shares: float) -> Measures:
    """α and β; a joint change of sign solves the task as well and is undone."""
    signs = [1 if row["alpha"] > 0 else -1 for row in rows]
    for name, letter, wanted, share in zip(("alpha", "beta"), "αβ", PUBLISHED[case], shares, strict=True):
        values = [sign * row[name] for sign, row in zip(signs, rows, strict=True)]
        yield near(f"{case}: {letter}, softmax", values, wanted, share)


def over_datasets(name: str, runs: Runs, column: str) -> Measure:
    """The ratio to Bayes' error within 6 %; n counts datasets, whatever the number of weight seeds on each."""
    found: dict[int, list[float]] = {}
    for record in runs["subspace", "datasets"]:
        found.setdefault(record.check.sizes["data"], []).extend(ratios(record.rows[-1:], column))
    return Measure.over_datasets(name, list(found.values()), 0.94, 1.06)


def near(name: str, values: list[float], published: float, share: float) -> Measure:
    return Measure.over_seeds(name, values, (1 - share) * published, (1 + share) * published).noted(counts=ONE)


def ratios(rows: Rows, column: str) -> list[float]:
    return [row[column] / row["loss.bayes"] for row in rows]


def figure(runs: Runs) -> Figure:
    from engram.show.retrieval import denoising_panels

    return denoising_panels(runs, list(CASES), subspace_floor(Subspace()), PUBLISHED)

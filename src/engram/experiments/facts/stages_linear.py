"""Hallucination is a stage of learning: a linear head knows the relation long before the subject (Fig. 5 left).

Gradient flow of one linear attention head with one-hot embeddings, on the exact population (nothing is sampled), and
the published run beside it: S = 16, R = 4, D = 8, 20 noise tokens, T = 32, structured facts, SGD with learning rate
0.1, batches of 1024, all initial values 1e-5. First the loss stays at ln |A|; then at ln D: answers are drawn from the
right relation, whatever the subject; then it falls. Which part is learned first follows the growth rates λ_r and λ_s,
and turns around when there are few subjects: then answers fit the subject and not the relation.

    engram run facts.stages-linear --seeds 3
"""

from math import log, sqrt

import numpy as np

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Rows, Runs, Scale, Seeds, checks
from engram.claims.readings import worst_by_seed
from engram.experiments.facts import stages_plan
from engram.models.factual import LinearHead
from engram.records.files import Row
from engram.specs import Train
from engram.tasks.facts import Facts
from engram.theory.fact_flow import escape_time, relation_rate, subject_rate

SOURCE = "Understanding factual recall in transformers, section on optimisation dynamics, Theorems 5 and 6, Fig. 5 left"
CLAIMS = {
    "facts.conserved": "w(z)² − Σ_a W(a, z)² does not change under gradient flow.",
    "facts.converges": "Gradient flow reaches any loss.",
    "facts.hallucination-stage": "Between uniform and right answers there is a stage at which p̂ is p(a | r).",
    "facts.which-part-first": "Which part comes first, relation or subject, follows the rates λ.",
    "facts.escape-times": "Tokens grow at λ_r and λ_s, and leave when their logit under this growth would be 1.",
    "facts.published-stages": "SGD leaves ln |A| at about step 1,600 and ends at a loss of about 0.01, as published.",
}
SEEDS = {"quick": 3, "paper": 3}
MAIN = {"S": 16, "R": 4, "D": 8, "T": 32, "noise": 20}
RUN = {**MAIN, "until": 820, "equal": True}
LONG = {**MAIN, "until": 40_000}
SWEEP, SUBJECTS = {"R": 16, "D": 2, "T": 8, "noise": 4, "until": 2500, "equal": True}, (2, 4, 6, 8, 16)
RANDOM = {"S": 4, "R": 3, "D": 2, "T": 5, "noise": 3, "until": 1000}
ALPHA = 1e-5
STEPS = {"smoke": 64, "quick": 8192, "paper": 8192}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    exact = {"run": RUN, "long": LONG} | {("subjects", S): SWEEP | {"S": S} for S in SUBJECTS}
    return {
        **{label: checks("fact_flow.stages", [0], 410, **sizes) for label, sizes in exact.items()},
        "random": checks("fact_flow.conserved", seeds, 200, **RANDOM),
        "SGD": [_sampled(STEPS[scale], seed) for seed in seeds],
    }


def _sampled(steps: int, seed: int) -> Train:
    task = Facts(**MAIN, dictionary="structured")
    plan = stages_plan(0.1, steps, ("w", "W"), every=64)
    return Train(task=task, model=LinearHead(answers=task.answers, alpha=ALPHA), plan=plan, seed=seed)


def claims(runs: Runs) -> Claimed:
    run, long = (runs[label][0].rows for label in ("run", "long"))
    yield (
        "facts.conserved",
        [Measure.worst("largest drift over max w², worst seed", worst_by_seed(runs["random"], "drift"), 1e-9)],
    )
    yield "facts.converges", [*_falls(long)]
    yield "facts.hallucination-stage", [*_plateaus(run)]
    yield "facts.which-part-first", [_which_first(runs)]
    yield "facts.escape-times", [*_escapes(run)]
    yield "facts.published-stages", [*_sampled_stages(runs["SGD"])]


def _falls(rows: Rows) -> Measures:
    """Small at the end, and still falling like a power of time."""
    half, end = rows[len(rows) // 2], rows[-1]
    yield Measure.exact("loss at the end", end["loss"], 0.005)
    power = log(end["loss"] / half["loss"]) / log(end["time"] / half["time"])
    yield Measure.exact("exponent of the loss in time at the end, plus 1", power + 1, 0.3)


def plateau(rows: Rows, level: float) -> Row:
    """Where the loss is slowest among the rows near this level."""
    losses, times = (np.array([row[name] for row in rows]) for name in ("loss", "time"))
    near = np.abs(losses - level) < 0.3
    speed = np.where(near, np.abs(np.gradient(losses, times)), np.inf)
    return rows[int(speed.argmin())]


def _plateaus(rows: Rows) -> Measures:
    R, D = MAIN["R"], MAIN["D"]
    late = 0.8 * escape_time(relation_rate(R, D), sqrt((1 - 1 / R) / D), ALPHA)
    first, second = next(row for row in rows if row["time"] > late), plateau(rows, log(D))
    yield Measure.exact("at 0.8 of the relation's escape time: loss minus ln |A|", first["loss"] - log(R * D), 0.02)
    yield Measure.exact("at the plateau that follows: loss minus ln D", second["loss"] - log(D), 0.02)
    yield Measure.exact("there, loss of the relation alone", second["loss.relation"], 0.02)
    yield Measure.exact("there, distance of p̂ to p(a | r)", second["distance.relation"], 0.05)


def _half_times(runs: Runs) -> dict[int, tuple[float, float]]:
    """When the relation is half known and when the subject is, by the number of subjects."""
    flows = {S: runs["subjects", S][0].rows for S in SUBJECTS}
    return {S: (_half_time(rows, "relation"), _half_time(rows, "subject")) for S, rows in flows.items()}


def _rates(S: int) -> tuple[float, float]:
    return relation_rate(SWEEP["R"], SWEEP["D"]), subject_rate(S, SWEEP["R"], SWEEP["D"])


def _which_first(runs: Runs) -> Measure:
    """Whether the part with the larger rate is known first, for every S but the one where rates are about equal."""
    wrong = 0
    for S, known in _half_times(runs).items():
        rates = _rates(S)
        if abs(log(rates[0] / rates[1])) > 0.2:
            wrong += int(min(known) == float("inf") or (rates[0] > rates[1]) != (known[0] < known[1]))
    return Measure.exact("numbers of subjects for which the slower part is known first", wrong, 0.5)


def _half_time(rows: Rows, part: str) -> float:
    """When the loss of a part has fallen to half of its initial value."""
    column = f"loss.{part}"
    return next((row["time"] for row in rows if row[column] < rows[0][column] / 2), float("inf"))


def _escapes(rows: Rows) -> Measures:
    S, R, D = (MAIN[name] for name in "SRD")
    predicted = {
        "relation": (relation_rate(R, D), sqrt((1 - 1 / R) / D)),
        "subject": (subject_rate(S, R, D), sqrt((1 - 1 / D) / R)),
    }
    for name, (rate, share) in predicted.items():
        growing = [row for row in rows if 1e-6 < row[f"logit.{name}"] < 1e-2]
        slope = np.polyfit([row["time"] for row in growing], np.log([row[f"w.{name}"] for row in growing]), 1)[0]
        yield Measure.exact(f"growth of w({name}) over λ, minus 1", float(slope / rate) - 1, 0.1)
        left, expected = next(row["time"] for row in rows if row[f"logit.{name}"] > 1), escape_time(rate, share, ALPHA)
        yield Measure.exact(f"time at which {name}s leave, over predicted, minus 1", left / expected - 1, 0.1)


def _sampled_stages(records: Records) -> Measures:
    """Of the training that was published: when the first stage ends, how long the second lasts, the end."""
    curves = [record.curve("all.loss") for record in records]
    middle, low = log(sqrt(MAIN["R"]) * MAIN["D"]), log(sqrt(MAIN["D"]))
    left, known = ([_first_below(*curve, level) for curve in curves] for level in (middle, low))
    yield Measure.over_seeds("step at which the loss is half way from ln |A| to ln D", left, 1400, 2000)
    yield Measure.over_seeds("step at which the loss is half of ln D", known, 4000, 6000)
    yield Measure.over_seeds("loss at step 8192", [float(losses[-1]) for _, losses in curves], 0.005, 0.02)


def _first_below(steps: np.ndarray, losses: np.ndarray, level: float) -> float:
    """By interpolation between the rows; the last step if the loss never is."""
    after = int(np.argmax(losses < level))
    if after == 0:
        return float(steps[-1])
    return float(np.interp(level, losses[[after, after - 1]], steps[[after, after - 1]]))


def figure(runs: Runs) -> Figure:
    from engram.show.facts import linear_stages

    rates = {S: _rates(S) for S in SUBJECTS}
    return linear_stages(runs["run"][0].rows, runs["SGD"], _half_times(runs), rates, rate=0.1)

"""Hallucination is a stage of learning: a linear head knows the relation long before the subject (Fig. 5 left).

Gradient flow of one linear attention head with one-hot embeddings, on the exact population (nothing is sampled), and
the published run beside it: S = 16, R = 4, D = 8, 20 noise tokens, T = 32, structured facts, SGD with learning rate
0.1, batches of 1024, all first values 1e-5. First the loss stays at ln |A|; then at ln D: answers are drawn from the
right relation, whatever the subject; then it falls. Which part is learned first follows the growth rates λ_r and λ_s,
and turns around when there are few subjects: then answers fit the subject and not the relation.

    engram run facts.stages-linear --seeds 3
"""

from collections.abc import Iterator, Sequence
from math import log, sqrt
from typing import Any

import numpy as np

from engram.claims import Claim, Measure
from engram.claims.experiment import Scale
from engram.experiments.facts import stages_plan
from engram.models.fact_heads import LinearHead
from engram.records import Record
from engram.records.files import Row
from engram.specs import Check, Train
from engram.tasks.facts import Facts
from engram.theory.fact_flow import escape_time, relation_rate, subject_rate

TIMES = "quick and paper 25 s a seed on 2 cores"
SOURCE = "Understanding factual recall in transformers, section on optimisation dynamics, Theorems 5 and 6, Fig. 5 left"
CLAIMS = {
    "facts.conserved": "w(z)² − Σ_a W(a, z)² does not change under gradient flow.",
    "facts.converges": "Gradient flow reaches any loss.",
    "facts.hallucination-stage": "Between uniform and right answers p̂ is p(a | r); which part comes first follows λ.",
    "facts.escape-times": "Tokens grow at λ_r and λ_s, and leave when their logit under this growth would be 1.",
}
SEEDS = {"quick": 3, "paper": 3}
STAGES, CONSERVED = "fact_flow.stages", "fact_flow.conserved"
MAIN = {"S": 16, "R": 4, "D": 8, "T": 32, "noise": 20}
RUN = {**MAIN, "until": 820, "equal": 1}
LONG = {**MAIN, "until": 40_000}
SWEEP = [{"S": S, "R": 16, "D": 2, "T": 8, "noise": 4, "until": 2500, "equal": 1} for S in (2, 4, 6, 8, 16)]
RANDOM = {"S": 4, "R": 3, "D": 2, "T": 5, "noise": 3, "until": 1000}
ALPHA = 1e-5
STEPS = {"smoke": 64, "quick": 8192, "paper": 8192}


def specs(scale: Scale, seeds: Sequence[int]) -> list[Check | Train]:
    exact = [Check(law=STAGES, sizes=sizes, draws=410) for sizes in (RUN, LONG, *SWEEP)]
    random = [Check(law=CONSERVED, sizes=RANDOM, draws=200, seed=seed) for seed in seeds]
    return [*exact, *random, *(_sampled(STEPS[scale], seed) for seed in seeds)]


def _sampled(steps: int, seed: int) -> Train:
    task = Facts(**MAIN, dictionary="structured")
    plan = stages_plan(0.1, steps, ("w", "W"), every=64)
    return Train(task=task, model=LinearHead(answers=task.answers, alpha=ALPHA), plan=plan, seed=seed)


def rows_of(records: Sequence[Record], law: str, **sizes: int) -> list[list[Row]]:
    return [
        r.rows
        for r in records
        if isinstance(r.spec, Check) and r.spec.law == law and sizes.items() <= r.spec.sizes.items()
    ]


def claims(records: Sequence[Record]) -> Iterator[Claim]:
    (run,), (long,) = rows_of(records, STAGES, **RUN), rows_of(records, STAGES, **LONG)
    drifts = [max(row["drift"] for row in rows) for rows in rows_of(records, CONSERVED)]
    yield _claim("facts.conserved", Measure.exact("largest drift over max w², worst seed", max(drifts), 1e-9))
    yield _claim("facts.converges", *_falls(long))
    yield _claim("facts.hallucination-stage", *_plateaus(run), *_which_first(records))
    yield _claim("facts.escape-times", *_escapes(run))


def _falls(rows: Sequence[Row]) -> Iterator[Measure]:
    """Small at the end, and still falling like a power of time."""
    half, end = rows[len(rows) // 2], rows[-1]
    yield Measure.exact("loss at the end", end["loss"], 0.005)
    power = log(end["loss"] / half["loss"]) / log(end["time"] / half["time"])
    yield Measure.exact("exponent of the loss in time at the end, plus 1", power + 1, 0.3)


def plateau(rows: Sequence[Row], level: float) -> Row:
    """Where the loss is slowest among the rows near this level."""
    losses, times = (np.array([row[name] for row in rows]) for name in ("loss", "time"))
    near = np.abs(losses - level) < 0.3
    speed = np.where(near, np.abs(np.gradient(losses, times)), np.inf)
    return rows[int(speed.argmin())]


def _plateaus(rows: Sequence[Row]) -> Iterator[Measure]:
    R, D = MAIN["R"], MAIN["D"]
    late = 0.8 * escape_time(relation_rate(R, D), sqrt((1 - 1 / R) / D), ALPHA)
    first, second = next(row for row in rows if row["time"] > late), plateau(rows, log(D))
    yield Measure.exact("at 0.8 of the relation's escape time: loss minus ln |A|", first["loss"] - log(R * D), 0.02)
    yield Measure.exact("at the plateau that follows: loss minus ln D", second["loss"] - log(D), 0.02)
    yield Measure.exact("there, loss of the relation alone", second["loss.relation"], 0.02)
    yield Measure.exact("there, distance of p̂ to p(a | r)", second["distance.relation"], 0.05)


def _which_first(records: Sequence[Record]) -> Iterator[Measure]:
    """Whether the part with the larger rate is known first, for every S but the one where rates are about equal."""
    wrong = 0
    for sizes in SWEEP:
        (rows,) = rows_of(records, STAGES, **sizes)
        rates = relation_rate(sizes["R"], sizes["D"]), subject_rate(sizes["S"], sizes["R"], sizes["D"])
        if abs(log(rates[0] / rates[1])) > 0.2:
            known = _half_time(rows, "relation"), _half_time(rows, "subject")
            wrong += int(min(known) == float("inf") or (rates[0] > rates[1]) != (known[0] < known[1]))
    yield Measure.exact("numbers of subjects for which the slower part is known first", wrong, 0.5)


def _half_time(rows: Sequence[Row], part: str) -> float:
    """When the loss of a part has fallen to half of its first value."""
    column = f"loss.{part}" if part else "loss"
    return next((row["time"] for row in rows if row[column] < rows[0][column] / 2), float("inf"))


def _escapes(rows: Sequence[Row]) -> Iterator[Measure]:
    S, R, D = (MAIN[name] for name in "SRD")
    predicted = {
        "relation": (relation_rate(R, D), sqrt((1 - 1 / R) / D)),
        "subject": (subject_rate(S, R, D), sqrt((1 - 1 / D) / R)),
    }
    for name, (rate, share) in predicted.items():
        growing = [row for row in rows if 1e-6 < row[f"logit.{name}"] < 1e-2]
        slope = np.polyfit([row["time"] for row in growing], np.log([row[f"w.{name}"] for row in growing]), 1)[0]
        yield Measure.exact(f"growth of w({name}) over λ, minus 1", float(slope / rate) - 1, 0.1)
        left = next(row["time"] for row in rows if row[f"logit.{name}"] > 1)
        yield Measure.exact(
            f"time at which {name}s leave, over predicted, minus 1", left / escape_time(rate, share, ALPHA) - 1, 0.1
        )


def _claim(id: str, *measures: Measure) -> Claim:
    return Claim(id, CLAIMS[id], SOURCE, measures)


def figure(records: Sequence[Record]) -> Any:
    from engram.show.stages import linear_stages

    (run,) = rows_of(records, STAGES, **RUN)
    sampled = [record for record in records if isinstance(record.spec, Train)]
    sweep = {sizes["S"]: rows_of(records, STAGES, **sizes)[0] for sizes in SWEEP}
    times = {S: (_half_time(rows, "relation"), _half_time(rows, "subject")) for S, rows in sweep.items()}
    rates = {S: (relation_rate(16, 2), subject_rate(S, 16, 2)) for S in sweep}
    return linear_stages(run, sampled, times, rates, rate=0.1)

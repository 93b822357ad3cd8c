"""The same stages with softmax and random embeddings: relation first, then the fact (Fig. 5 right).

One softmax head, W_KQ and W_OV from zero, frozen random embeddings on the sphere, S = 16, R = 4, D = 8, structured
facts, SGD on fresh batches of 1024. Width and learning rate are ours (the paper does not say): uniform attention makes
gradients T times smaller than those of the linear head; and at d = 128 some subjects resemble others so much that
attention never turns to them, and a fifth of the facts stays unknown, whatever the rate.

    engram run facts.stages-softmax --seeds 3
"""

from math import log

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds
from engram.experiments.facts import stages_plan
from engram.models.factual import SoftmaxHead
from engram.records import Record
from engram.specs import Train
from engram.tasks.facts import Facts

SOURCE = "Understanding factual recall in transformers, Fig. 5 right"
CLAIMS = {"facts.softmax-stages": "With softmax and random embeddings, too, the relation is known before the fact."}
SEEDS = {"quick": 3, "paper": 3}
TASK = Facts(S=16, R=4, D=8, noise=20, T=32, dictionary="structured")
STEPS = {"smoke": 64, "quick": 4096, "paper": 4096}
WIDTH, RATE = 512, 10.0


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    plan = stages_plan(RATE, STEPS[scale], ("W_KQ", "W_OV"), every=32)
    model = SoftmaxHead(answers=TASK.answers, d=WIDTH)
    return {"softmax head": [Train(task=TASK, model=model, plan=plan, seed=seed) for seed in seeds]}


def claims(runs: Runs) -> Measures:
    over, relation, subject, distance = zip(*map(_between, runs["softmax head"]), strict=True)
    ends = [record.curve("all.loss")[1][-1] for record in runs["softmax head"]]
    yield Measure.over_seeds("where p̂ is nearest to p(a | r): loss minus ln D", over, -0.4, 0.4)
    yield Measure.over_seeds("there, loss of the relation alone", relation, high=0.2)
    yield Measure.over_seeds("there, loss of the subject alone, over ln D", subject, low=0.5)
    yield Measure.over_seeds("there, distance of p̂ to p(a | r)", distance, high=0.2)
    yield Measure.over_seeds("loss at the end", ends, high=0.5)


def _between(record: Record) -> tuple[float, float, float, float]:
    """Where p̂ is nearest to p(a | r): loss minus ln D, of the relation alone, of the subject alone, distance."""
    distance = record.curve("all.distance.relation")[1]
    at = int(distance.argmin())
    found = {name: float(record.curve(f"all.{name}")[1][at]) for name in ("loss", "loss.relation", "loss.subject")}
    return found["loss"] - log(8), found["loss.relation"], found["loss.subject"] / log(8), float(distance[at])


def figure(runs: Runs) -> Figure:
    from engram.show.facts import sampled_stages

    return sampled_stages(runs["softmax head"], {"ln |A|": log(32), "ln D": log(8)}, "Softmax, random embeddings")

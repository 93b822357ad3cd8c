"""How well the induction head of Eq. 7, written by hand, answers: the ceiling that training is compared with."""

from engram.learning.fast import applies
from engram.learning.paths import PATHS
from engram.models import Simplified
from engram.models.construct import plant
from engram.tasks import Bigram
from engram.values import Rows, law

AT_ONCE = 32  # sequences


@law("learning.construction.accuracies")
def accuracies(draws: int, seed: int, d: int, sharpness: float, K: int = 5, T: int = 128) -> Rows:
    """In-context accuracy and loss of planted weights at unit scale, one row for each of `draws` batches."""
    task, model = Bigram(K=K, T=T), Simplified(d=d, scale="unit")
    w = plant(model, task.N, T, seed, sharpness)
    path = PATHS["fast" if applies(model, (), "cpu") else "reference"]
    for step in range(draws):
        metrics = path(model, w, task.sample(seed, step, AT_ONCE), "in_context", ()).metrics
        yield {"accuracy": metrics["accuracy.in_context"], "loss": metrics["loss"]}

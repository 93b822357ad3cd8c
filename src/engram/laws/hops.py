"""What weights written by hand answer about hops: pointer doubling on strings, and compositions of permutations."""

import numpy as np
from jaxtyping import Bool, Int

from engram.models import Model
from engram.models.doubling import plant_composition, plant_hops
from engram.tasks import Batch, Composition, Hops
from engram.tasks.hops import strings
from engram.theory.hops import bits_of, hop_depth, most_hops, pointer_doubling
from engram.values import Rows, generator, law

AT_ONCE = 20  # sequences


@law("hops.doubling")
def doubling(draws: int, seed: int, most: int, length: int, letters: int = 4) -> Rows:
    """A row for each k = 1 … most, on the same `draws` strings, with what ⌊log₂k⌋ + 2 layers do.

    wrong        share of all positions that the planted weights answer wrongly
    hard         share of letters that pointer doubling under hard attention gets wrong
    defined      share of letters at which hop_k is defined
    shallower    of these the share that is right with one layer less, for the best number of hops that it reaches
    """
    X = strings(generator(seed, "hops.doubling"), draws, length, letters)
    task = Hops(letters=letters, length=length, most=most)
    hopped = [_letters_at(X, pointer_doubling(X, bits_of(k))) for k in range(most + 1)]
    for k in range(1, most + 1):
        batch = task.ask(X, np.full(draws, k))
        right = batch.targets[:, 1:] - task.first_letter
        defined = batch.targets[:, 1:] != task.undefined
        yield {
            "k": float(k),
            "layers": float(hop_depth(k)),
            "wrong": float(_wrong(plant_hops(task, k), batch).mean()),
            "hard": float((np.where(defined, right, -1) != hopped[k]).mean()),
            "defined": float(defined.mean()),
            "shallower": max(_share(hopped[j] == right, defined) for j in range(most_hops(hop_depth(k) - 1) + 1)),
        }


def _letters_at(X: Int[np.ndarray, "B n"], at: Int[np.ndarray, "B n"]) -> Int[np.ndarray, "B n"]:
    """The letters at these places, −1 where there is none."""
    return np.where(at >= 0, np.take_along_axis(X, np.maximum(at, 0), axis=1), -1)


def _share(of: Bool[np.ndarray, "B n"], among: Bool[np.ndarray, "B n"]) -> float:
    return float(of[among].mean()) if among.any() else float("nan")


def _wrong(model: Model, batch: Batch) -> Bool[np.ndarray, "B T"]:
    """Where the most likely token is not the target."""
    parts = [batch.tokens[first : first + AT_ONCE] for first in range(0, len(batch.tokens), AT_ONCE)]
    return np.concatenate([model(part).logits.argmax(dim=2).numpy() for part in parts]) != batch.targets


@law("hops.composition")
def composition(draws: int, seed: int, n: int, k: int) -> Rows:
    """`draws` sequences of k permutations, hidden ones of the seed: the share of positions, and of compositions of all
    k, that log₂k + 1 planted layers answer wrongly."""
    task = Composition(n=n, k=k, hidden=seed)
    batch = task.sample(seed, 0, draws)
    wrong = _wrong(plant_composition(task, k), batch)
    answers = _share(wrong, batch.groups[f"hop{k}"])
    yield {"layers": float(k.bit_length()), "wrong": float(wrong.mean()), "wrong.answers": answers}

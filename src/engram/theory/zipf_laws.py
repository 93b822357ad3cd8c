"""Measured errors of storage schemes under heavy-tailed data, and the curves that theory gives for them.

A scheme is a word: "1", "p", "p^0.5"; "p^0.5 | 40" stores the 40 likeliest tokens only, "1 | d/8" the ⌊d/8⌋ likeliest,
"p^0.5 | law" as many as its law says, and "best" is the scheme of the least error (theory.zipf_curve.best_scheme).
"""

from collections.abc import Iterator, Sequence
from math import floor

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from engram.embeddings import directions
from engram.errors import EngramError
from engram.memory import Threshold
from engram.tasks.zipf import Zipf
from engram.theory import zipf
from engram.theory.zipf_curve import best_scheme, expected_error
from engram.values import Rows, law


def widths_between(least: int, most: int, count: int) -> list[int]:
    """Whole numbers, evenly apart in logarithms."""
    if not 1 <= least <= most:
        raise EngramError(f"d: widths begin at 1 or above and do not fall; got {least} to {most}")
    return sorted({round(d) for d in np.geomspace(least, most, count)})


def scheme(word: str, task: Zipf, d: int) -> zipf.Scheme:
    """q of a word, at width d."""
    p, (base, _, cut) = task.probabilities, word.replace(" ", "").partition("|")
    if base == "best":
        return best_scheme(p, d, task.M)[1]
    if base not in ("1", "p") and not base.startswith("p^"):
        raise EngramError(f"scheme: {word!r} is none; write 1, p, p^0.5 or best, and perhaps | d/8, | 40 or | law")
    rho = {"1": 0.0, "p": 1.0}.get(base) if base in ("1", "p") else _number(base.removeprefix("p^"), word)
    assert rho is not None
    return zipf.powers(p, rho, _kept(cut, word, task, d, rho) if cut else None)


def _kept(cut: str, word: str, task: Zipf, d: int, rho: float) -> int:
    """P of a cut: never more than there are tokens."""
    if cut == "law":
        return min(task.N, zipf.kept(d, task.alpha, rho))
    if cut.startswith("d/"):
        return min(task.N, floor(d / _number(cut.removeprefix("d/"), word)))
    return int(_number(cut, word))


def _number(text: str, word: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise EngramError(f"scheme: {word!r} has {text!r} where a number should be; write p^0.5 or 1 | d/8") from None


def error_curves(
    draws: int, seed: int, task: Zipf, words: list[str], widths: list[int]
) -> Iterator[Float[np.ndarray, "schemes widths"]]:
    """For each draw the exact errors; its embeddings are drawn once at the largest width and cut to their first d."""
    q = {d: [scheme(word, task, d) for word in words] for d in widths}
    for draw in range(draws):
        E, U = _embeddings(task, widths[-1], seed, draw)
        yield np.stack([exact_errors(task, q[d], E[:, :d], U[:, :d]) for d in widths], axis=1)


def _embeddings(task: Zipf, d: int, seed: int, draw: int) -> tuple[Float[Tensor, "N d"], Float[Tensor, "M d"]]:
    """Gaussian keys, and answers on the sphere."""
    E = directions("gaussian/d", task.N, d, seed, f"zipf.E.{draw}")
    return E, directions("sphere", task.M, d, seed, f"zipf.U.{draw}")


def exact_errors(
    task: Zipf, schemes: Sequence[zipf.Scheme], E: Float[Tensor, "N d"], U: Float[Tensor, "M d"]
) -> Float[np.ndarray, " schemes"]:
    """The error of each scheme by zipf.scores, all in one product."""
    weights = torch.from_numpy(np.concatenate([zipf.by_answer(task, q) for q in schemes])).to(E.dtype)
    overlaps = E @ (weights @ E).T  # e_z · S_y, for the answers y of one scheme after the other
    scores = overlaps.view(task.N, len(schemes), task.M) @ (U @ U.T)
    return task.error(scores.transpose(0, 1).numpy())


@law("zipf.trials")
def trials(
    draws: int,
    seed: int,
    N: int = 1000,
    M: int = 5,
    alpha: float = 2.0,
    schemes: str = "1, p, 1 | d/8",
    least: int = 10,
    most: int = 1000,
    widths: int = 20,
) -> Rows:
    """A row for every trial and width: the error of each scheme."""
    task, words, ds = zipf.heavy_tail(N, M, alpha), _words(schemes), widths_between(least, most, widths)
    for trial, errors in enumerate(error_curves(draws, seed, task, words, ds)):
        for d, at in zip(ds, errors.T, strict=True):
            yield {"trial": trial, "d": d, **dict(zip(words, at.tolist(), strict=True))}


@law("zipf.errors")
def errors(
    draws: int,
    seed: int,
    N: int = 1000,
    M: int = 5,
    alpha: float = 2.0,
    schemes: str = "1, p, 1 | d/8",
    least: int = 10,
    most: int = 1000,
    widths: int = 20,
) -> Rows:
    """A row for every width: the error of each scheme, the mean over `draws` trials."""
    task, words, ds = zipf.heavy_tail(N, M, alpha), _words(schemes), widths_between(least, most, widths)
    total = np.zeros((len(words), len(ds)))
    for found in error_curves(draws, seed, task, words, ds):
        total += found
    for d, at in zip(ds, (total / draws).T, strict=True):
        yield {"d": d, **dict(zip(words, at.tolist(), strict=True))}


@law("zipf.curve")
def curve(
    draws: int,
    seed: int,
    N: int = 1000,
    M: int = 5,
    alpha: float = 2.0,
    schemes: str = "1, p, 1 | d/8",
    least: int = 10,
    most: int = 1000,
    widths: int = 20,
    cut: bool = True,
) -> Rows:
    """The same rows from theory, integrated over `draws` points; `cut`: answers are cut from the largest width."""
    task, words, ds = zipf.heavy_tail(N, M, alpha), _words(schemes), widths_between(least, most, widths)
    for d in ds:
        found = {word: expected_error(task, scheme(word, task, d), d, most if cut else d, draws) for word in words}
        yield {"d": d, **found}


@law("zipf.least")
def least_errors(
    draws: int,
    seed: int,
    N: int = 1000,
    M: int = 5,
    alpha: float = 2.0,
    least: int = 10,
    most: int = 1000,
    widths: int = 4,
) -> Rows:
    """The least error that any scheme can have, and the closed form below it, at every width."""
    task = zipf.heavy_tail(N, M, alpha)
    for d in widths_between(least, most, widths):
        yield {"d": d, "least": best_scheme(task.probabilities, d, M)[0], "bound": zipf.lower_bound(d, alpha, M)}


def _words(schemes: str) -> list[str]:
    return [word.strip() for word in schemes.split(",")]


@law("zipf.hutter")
def hutter(
    draws: int, seed: int, N: int = 1_000_000, M: int = 5, alpha: float = 2.0, least: int = 100, most: int = 10_000
) -> Rows:
    """An infinite memory, which answers 0 to unseen tokens: its expected error, and that of `draws` samples, for n."""
    task = zipf.heavy_tail(N, M, alpha)
    p, wrong = task.probabilities, (task.answers != 0).astype(float)
    lost = p * wrong
    ns = widths_between(least, most, 9)
    found = np.zeros(len(ns))
    for draw in range(draws):
        tokens, first = np.unique(task.sample(ns[-1], several(seed, draw)), return_index=True)
        found += [float(lost.sum() - lost[tokens[first < n]].sum()) for n in ns]  # all but what was seen by then
    for n, total in zip(ns, found.tolist(), strict=True):
        yield {"n": n, "expected": zipf.hutter_error(p, n, wrong), "sampled": total / draws}


def several(seed: int, draw: int) -> int:
    """The seed of one of up to 1000 draws of a seed."""
    return 1000 * seed + draw


@law("zipf.joint")
def joint(
    draws: int,
    seed: int,
    N: int = 1000,
    M: int = 5,
    alpha: float = 2.0,
    per: int = 12,
    samples: str = "10 100 1000 10000",
    widths: str = "10 20 50 100 200 1000",
) -> Rows:
    """n samples and width d together: the ⌊d/per⌋ tokens seen most often are stored with q = 1; means over `draws`."""
    task, ns, ds = zipf.heavy_tail(N, M, alpha), [int(n) for n in samples.split()], [int(d) for d in widths.split()]
    total = np.zeros((len(ns), len(ds)))
    for draw in range(draws):
        counts = [zipf.count(task.sample(n, several(seed, draw)), N) for n in ns]
        E, U = _embeddings(task, ds[-1], seed, draw)
        for i, d in enumerate(ds):
            stored = [zipf.most_seen(c, min(N, d // per), several(seed, draw)) for c in counts]
            total[:, i] += exact_errors(task, stored, E[:, :d], U[:, :d])
    for n, at in zip(ns, (total / draws).tolist(), strict=True):
        for d, error in zip(ds, at, strict=True):
            yield {"n": n, "d": d, "error": error}


@law("zipf.seen")
def seen_is_best(
    draws: int, seed: int, N: int = 100, M: int = 5, alpha: float = 2.0, d: int = 1000, n: int = 1000
) -> Rows:
    """For each trial the errors of schemes that know n samples, and that of an infinite memory that guesses."""
    task = zipf.heavy_tail(N, M, alpha)
    for draw in range(draws):
        counts = zipf.count(task.sample(n, several(seed, draw)), N)
        schemes = {"seen": zipf.seen(counts), "seen twice": zipf.seen(counts, 2), "counts": counts / n}
        schemes["root of counts"] = np.sqrt(counts / n)
        found = exact_errors(task, list(schemes.values()), *_embeddings(task, d, seed, draw)).tolist()
        yield dict(zip(schemes, found, strict=True)) | {
            "infinite": float(task.probabilities[counts == 0].sum()) * (1 - 1 / M)
        }


@law("zipf.threshold_mlp")
def threshold_mlp(
    draws: int, seed: int, N: int = 10_000, M: int = 5, alpha: float = 2.0, d: int = 64, least: int = 8, most: int = 256
) -> Rows:
    """A layer with one unit for each of the P likeliest tokens: its parameters 2dP, and its error on all tokens."""
    task = zipf.heavy_tail(N, M, alpha)
    for P in widths_between(least, most, 6):
        found = [_threshold_error(task, P, d, several(seed, draw)) for draw in range(draws)]
        yield {"P": P, "parameters": 2 * d * P, "error": float(np.mean(found))}


def _threshold_error(task: Zipf, P: int, d: int, seed: int) -> float:
    E = directions("sphere", task.N, d, seed, "zipf.E")
    memory = Threshold(d).give(E, directions("sphere", task.M, d, seed, "zipf.U"))
    memory.store(dict(enumerate(task.answers[:P].tolist())))
    return float(task.error(memory.respond(E.double()).numpy()))

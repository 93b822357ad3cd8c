"""Three steps on a planted token: signal and noise of the step on attention, and a map over length and width."""

import numpy as np

from engram.learning.planted_steps import Directions, first_step, second_step_parts, success_rates
from engram.tasks.planted import PlantedToken
from engram.theory import mean_bias
from engram.values import Rows, law


@law("learning.planted_steps.signal_and_noise")
def signal_and_noise(draws: int, seed: int, N: int, T: int, balanced: bool = False) -> Rows:
    """Rows by width N/8, N/4, … 4N: how much of g is in w, over 1/(NT²), and the spread of e_z · w over the law.

    Means over `draws` codebooks, each with its own data.
    """
    task = PlantedToken(N=N, T=T, balanced=balanced)
    for d in (N << 2 >> i for i in range(5, -1, -1)):
        found = [_parts_of_w(task, d, seed + (draw << 32)) for draw in range(draws)]
        signal, noise = (float(np.mean(values)) for values in zip(*found, strict=True))
        yield {"d": d, "signal": signal * N * T**2, "noise": noise / mean_bias.noise(N, task.samples, d)}


def _parts_of_w(task: PlantedToken, d: int, seed: int) -> tuple[float, float]:
    """How much of g is in w, and the standard deviation over tokens of e_z · the rest."""
    at, sample = Directions.drawn(task.N, d, seed), task.training_sample(seed)
    of_tokens, of_mark = second_step_parts(first_step(sample, at), sample, at)
    return of_mark, float((at.E @ (of_tokens @ at.E)).std())


@law("learning.planted_steps.phases")
def phases(draws: int, seed: int, N: int, least: int, most: int, widest: int) -> Rows:
    """A map: rows by length T and width d, each a mean over `draws` codebooks with their own data.

    T doubles from `least` to `most`; d grows by √2 from 8 to `widest`.
    """
    widths = np.unique(np.round(8 * 2 ** np.arange(0, np.log2(widest / 8) + 0.01, 0.5)).astype(int))
    for T in (least << i for i in range((most // least).bit_length())):
        for d in widths.tolist():
            found = [success_rates(PlantedToken(N=N, T=T), d, seed + (draw << 32)) for draw in range(draws)]
            yield {"T": T, "d": d} | {name: float(np.mean([row[name] for row in found])) for name in found[0]}

"""Three published figures of small memories, read anew after the first reading had disagreed.

Steps that decay (scaling.steps) with N = 30 tokens instead of the 10 of the published notebook; the scalar
approximation (scaling.stored) after 1,000 steps instead of its 100; rules of steps (scaling.steps) by the mean p of the
tokens that are wrong, which is what the notebook computes, instead of the error over the number of tokens. Bands are
those of the first reading, seeds are fresh. N = 30 and 1,000 steps were found by trying, so that these claims are ours;
the mean over wrong tokens stands in the notebook. A seed is 100 memories, as published.

    engram run scaling.reread --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.experiments.scaling.steps import last_errors, least_error

TIMES = "quick and paper 9 s a seed on 2 cores"

SOURCE = "Cabannes, Dohmatob and Bietti 2024, published notebooks (learning_rates, approximation_error, adam)"
CLAIMS = {
    "scaling.decay-helps-30": "With d=5, N=30 and batch 1 a large step that decays beats both constant ones.",
    "scaling.decay-numbers-30": "With N=30 errors at step 1000 are about .21 (γ=0.1), .22 (γ=10) and .15 (decayed).",
    "scaling.q-dynamics-1000": "Over 1,000 steps real errors fall to .045; approximate ones to .11, then rise to .15.",
    "scaling.mean-of-wrong": "The mean p of wrong tokens is .013 for gradients, .001 for signs, 0 for normalised.",
}
N, D, TOKENS = 30, 10, 10  # tokens of the schedules; the width of the approximation; tokens of the rules
DRAWS = {"smoke": 3, "quick": 100, "paper": 100}
STEPS = {"smoke": (130, 20, 70), "quick": (1000, 1000, 100), "paper": (1000, 1000, 100)}  # as in the labels below
NUMBERS = {"small": ("γ=0.1", 0.18, 0.24), "large": ("γ=10", 0.18, 0.26), "decayed": ("γ=10, decayed", 0.12, 0.18)}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    draws, (samples, batches, steps) = DRAWS[scale], STEPS[scale]
    return {
        "schedules": checks("dynamics.schedules", seeds, draws, N=N, steps=samples),
        "recursion": checks("dynamics.recursion", seeds, draws, d=D, steps=batches),
        "wrong": checks("dynamics.wrong_tokens", seeds, draws, steps=steps),
    }


def claims(runs: Runs) -> Claimed:
    yield "scaling.decay-helps-30", [*_decay(runs["schedules"])]
    yield "scaling.decay-numbers-30", [*_levels(runs["schedules"])]
    yield "scaling.q-dynamics-1000", [*_approximation(runs["recursion"])]
    yield "scaling.mean-of-wrong", [*_wrong(runs["wrong"])]


def _decay(records: Records) -> Measures:
    decayed, least = last_errors(records, "decayed"), least_error(records, N, 1.5)
    for name, rate in (("small", "0.1"), ("large", "10")):
        values = last_errors(records, name)
        yield Measure.difference(f"N=30: error at step 1000, γ={rate} minus decayed", values, decayed, resolution=least)


def _levels(records: Records) -> Measures:
    least = least_error(records, N, 1.5)
    for name, (words, low, high) in NUMBERS.items():
        values = last_errors(records, name)
        yield Measure.over_seeds(f"N=30, {words}: error at step 1000", values, low, high, resolution=least)


def _approximation(records: Records) -> Measures:
    lowest = [float(record.column("error.scalar").min()) for record in records]
    yield Measure.over_seeds("real error after 1000 steps", last_errors(records, "real"), 0.03, 0.06)
    yield Measure.over_seeds("approximation: lowest error in 1000 steps", lowest, 0.09, 0.13)
    yield Measure.over_seeds("approximation: error after 1000 steps", last_errors(records, "scalar"), 0.12, 0.18)


def _wrong(records: Records) -> Measures:
    least = least_error(records, TOKENS, 2)
    gradient = [record.last("p.gradient") for record in records]
    yield Measure.over_seeds("gradient: mean p of wrong tokens at step 100", gradient, 0.009, 0.017, least)
    sign = [float(record.column("p.sign")[-50:].mean()) for record in records]
    yield Measure.over_seeds("sign: mean p of wrong tokens, steps 51 to 100", sign, 0.0003, 0.003, least)
    late = [float(record.column("p.normalised")[60:].mean()) for record in records]
    name = "normalised: mean p of wrong tokens from step 60 on"
    yield Measure.over_seeds(name, late, high=0.0005, resolution=least)


def figure(runs: Runs) -> Figure:
    from engram.show.read_anew import read_anew

    return read_anew(runs["schedules"], runs["recursion"], runs["wrong"])

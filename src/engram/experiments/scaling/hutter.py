"""A memory without limits errs on what it has not seen: its error falls like n^{−(α−1)/α} with n samples.

Tokens come by p(z) ∝ z^−α; each that was seen is known for ever, the others are answered by 0. The error is known in
closed form in expectation, Σ p(z) (1 − p(z))^n over the tokens whose answer is not 0, and measured on samples.

    engram run scaling.hutter --seeds 5
"""

from engram.claims import Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.claims.fits import Curve, exponent, slope
from engram.theory.zipf import hutter_exponent

SOURCE = "Cabannes, Dohmatob and Bietti 2024 (after Hutter 2021)"
CLAIMS = {"scaling.hutter": "An infinite memory errs like n^{−(α−1)/α} from n = 100 to 10,000 samples (N = 10⁶)."}
ALPHAS = (1.5, 2.0, 3.0)
DRAWS = {"smoke": 2, "quick": 20, "paper": 100}
SIZES = {
    "smoke": {"N": 2000, "least": 10, "most": 100},
    "quick": {"N": 1_000_000, "least": 100, "most": 10_000},
    "paper": {"N": 1_000_000, "least": 100, "most": 10_000},
}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {alpha: checks("zipf.hutter", seeds, DRAWS[scale], alpha=alpha, **SIZES[scale]) for alpha in ALPHAS}


def claims(runs: Runs) -> Measures:
    for alpha in ALPHAS:
        law, expected = hutter_exponent(alpha), over_samples(runs[alpha][:1], "expected")[0]
        name = f"α={alpha}: exponent in n minus −(α−1)/α"
        yield Measure.exact(f"{name}, in expectation", slope(expected) - law, 0.05)
        yield exponent(f"{name}, sampled", over_samples(runs[alpha], "sampled"), -0.05, 0.05, law)


def over_samples(records: Records, column: str) -> list[Curve]:
    """For each seed the error over n."""
    return [[(row["n"], row[column]) for row in record.rows] for record in records]


def figure(runs: Runs) -> Figure:
    from engram.show.storage_schemes import unseen_figure

    return unseen_figure({alpha: runs[alpha] for alpha in ALPHAS}, hutter_exponent)

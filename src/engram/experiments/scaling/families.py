"""Which weights q store heavy-tailed tokens best: the powers p^ρ, whole and truncated, and the least error of any q.

Exponents of the powers are read off the finite-size curve at widths that no machine could hold, where the law has
settled, and for ρ = 1/2 off simulations too. The least error is found by sharing interference among tokens at one price
(engram.theory.zipf_curve.best_scheme). A layer with one unit per pair stores the likeliest pairs without interference.

    engram run scaling.families --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Measures, Records, Runs, Scale, Seeds, checks
from engram.claims.fits import exponent, slope
from engram.specs import Check
from engram.theory.zipf import width_exponent

SOURCE = "Cabannes, Dohmatob and Bietti 2024; the constant of the lower bound is derived here"
CLAIMS = {
    "scaling.rho": "q = p^ρ falls like d^{−(α−1)/(2ρα)}, truncated like d^{−(α−1)/(2ρα+1)} (α = 2).",
    "scaling.lower-bound": "No scheme tried errs less than the bound, and the best one meets it (d from 10 to 316).",
    "scaling.mlp-bound": "A layer of one unit per pair errs like parameters^{−(α−1)} (16 to 512 units, N = 10,000).",
}
ALPHA = 2.0
WHOLE = {
    0.5: (10**2, 10**6),
    0.75: (10**3, 10**9),
    1.0: (10**4, 10**10),
}  # by ρ: widths that hold 10 to 1000 tokens
CUT = {0.0: (80, 8000), 0.5: (10**3, 10**9), 1.0: (10**5, 10**11)}
SIMULATED = {"p^0.5": False, "p^0.5 | law": True}  # whether it is truncated
TRIED = "1, p, p^0.5, p^0.25, 1 | d/16, 1 | d/8, 1 | d/4, 1 | d/2, best"
ALPHAS = (2.0, 3.0)
DRAWS = {"smoke": 2, "quick": 200, "paper": 1000}
POINTS = {"smoke": 128, "quick": 2048, "paper": 8192}
TOKENS = {"smoke": 2000, "quick": 100_000, "paper": 100_000}
WIDTHS = {
    "smoke": {"N": 60, "least": 10, "most": 32, "widths": 2},
    "quick": {"N": 1000, "least": 10, "most": 316, "widths": 4},
    "paper": {"N": 1000, "least": 10, "most": 316, "widths": 4},
}
SMALL = {"smoke": {"N": 60, "most": 60}, "quick": {"N": 1000, "most": 1000}, "paper": {"N": 1000, "most": 1000}}
UNITS = {"smoke": {"N": 100, "d": 32, "most": 32}, "quick": {"most": 512}, "paper": {"most": 512}}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    draws = DRAWS[scale]
    return {
        **{("whole", rho): curve(scale, f"p^{rho}", *WHOLE[rho]) for rho in WHOLE},
        **{("cut", rho): curve(scale, f"p^{rho} | law" if rho else "1 | d/8", *CUT[rho]) for rho in CUT},
        "simulated": checks(
            "zipf.errors", seeds, draws // 4 or 1, schemes=", ".join(SIMULATED), least=30, widths=8, **SMALL[scale]
        ),
        "tried": checks("zipf.errors", seeds, draws, schemes=TRIED, **WIDTHS[scale]),
        "least": checks("zipf.least", [0], **WIDTHS[scale]),
        **{("mlp", a): checks("zipf.threshold_mlp", seeds, 2, alpha=a, least=16, **UNITS[scale]) for a in ALPHAS},
    }


def curve(scale: Scale, scheme: str, least: int, most: int) -> list[Check]:
    """A scheme on the finite-size curve, which does not depend on the seed."""
    sizes = {"N": TOKENS[scale], "alpha": ALPHA, "least": least, "most": most, "widths": 9, "cut": False}
    return checks("zipf.curve", [0], POINTS[scale], schemes=scheme, **sizes)


def claims(runs: Runs) -> Claimed:
    yield "scaling.rho", [*on_the_curve(runs), *simulated(runs["simulated"])]
    yield "scaling.lower-bound", [*over_least(runs)]
    yield "scaling.mlp-bound", [in_parameters(runs["mlp", alpha], alpha) for alpha in ALPHAS]


def on_the_curve(runs: Runs) -> Measures:
    for kind, truncated in (("whole", False), ("cut", True)):
        for label in (label for label in runs if label[0] == kind):
            off = slope(points(runs, label)) - width_exponent(ALPHA, label[1], truncated)
            yield Measure.exact(f"ρ = {label[1]}, {kind}: exponent of the curve in d minus the law's", off, 0.05)


def points(runs: Runs, label: tuple[str, float]) -> list[tuple[float, float]]:
    """d and the error of the one scheme under a label."""
    rows = runs[label][0].rows
    (scheme,) = (name for name in rows[0] if name not in ("d", "step"))
    return [(row["d"], row[scheme]) for row in rows]


def simulated(records: Records) -> Measures:
    for scheme, truncated in SIMULATED.items():
        curves = [[(row["d"], row[scheme]) for row in record.rows] for record in records]
        name = f"ρ = 0.5, {'cut' if truncated else 'whole'}: simulated exponent in d minus the law's"
        yield exponent(name, curves, -0.05, 0.05, width_exponent(ALPHA, 0.5, truncated))


def over_least(runs: Runs) -> Measures:
    """At each width the least error of all schemes tried, over that of any scheme at all."""
    least, schemes = runs["least"][0].rows, TRIED.split(", ")
    for i, bound in enumerate(least):
        ratios = [min(record.rows[i][s] for s in schemes) / bound["least"] for record in runs["tried"]]
        yield Measure.over_seeds(f"d = {bound['d']}: least error of schemes tried over the bound", ratios, low=0.95)
    best = [record.rows[-1]["best"] / least[-1]["least"] for record in runs["tried"]]
    yield Measure.over_seeds("largest d: error of the best scheme over the bound", best, high=1.25)


def in_parameters(records: Records, alpha: float) -> Measure:
    curves = [[(row["parameters"], row["error"]) for row in record.rows] for record in records]
    name = f"α={alpha}: exponent of the error in parameters minus −(α−1)"
    found = [slope(one) + alpha - 1 for one in curves]
    return Measure.slope(name, found, -0.05, 0.05, resolution=1e-6)  # a layer without interference has no noise


def figure(runs: Runs) -> Figure:
    from engram.show.storage_schemes import families_figure

    laws = {label: width_exponent(ALPHA, label[1], label[0] == "cut") for label in runs if label[0] in ("whole", "cut")}
    exact = {label: points(runs, label) for label in laws}
    layers = {alpha: runs["mlp", alpha] for alpha in ALPHAS}
    return families_figure(exact, laws, runs["tried"], TRIED.split(", "), runs["least"][0].rows, layers)

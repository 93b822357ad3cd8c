"""The error of a storage scheme at every width, not only its exponent: theory within 5 % of what is measured.

Given a key, its overlaps with the sums of keys that share an answer are independent Gaussian numbers. So the error is
an integral over a few of them (engram.theory.zipf_curve), whatever N and d. Setting and widths: see scaling.schemes.

    engram run scaling.finite-size --seeds 10
"""

from engram.claims import Figure, Labelled, Measure, Measures, Runs, Scale, Seeds, checks

SOURCE = "this project; the setting is that of Cabannes, Dohmatob and Bietti 2024"
CLAIMS = {
    "scaling.finite-size": "The finite-size curve is within 5 % of mean errors at every d from 10 to 1000 (N = 1000).",
}
NAMES = {"1": "q = 1", "p": "q = p", "1 | d/8": "threshold"}
DRAWS = {"smoke": 5, "quick": 400, "paper": 2000}
POINTS = {"smoke": 256, "quick": 4096, "paper": 16_384}
SIZES = {"smoke": {"N": 50, "most": 60, "widths": 4}, "quick": {}, "paper": {}}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {
        "measured": checks("zipf.errors", seeds, DRAWS[scale], alpha=2.0, **SIZES[scale]),
        "curve": checks("zipf.curve", [0], POINTS[scale], alpha=2.0, **SIZES[scale]),
    }


def claims(runs: Runs) -> Measures:
    for i, law in enumerate(runs["curve"][0].rows):
        for scheme, name in NAMES.items():
            ratios = [record.rows[i][scheme] / law[scheme] for record in runs["measured"]]
            yield Measure.over_seeds(f"{name}, d = {law['d']}: mean error over the curve", ratios, 0.95, 1.05)


def figure(runs: Runs) -> Figure:
    from engram.show.storage_schemes import errors_and_curves

    curve = runs["curve"][0].rows
    series = {name: by_width(runs, scheme) for scheme, name in NAMES.items()}
    return errors_and_curves(series, {name: {row["d"]: row[s] for row in curve} for s, name in NAMES.items()})


def by_width(runs: Runs, scheme: str) -> dict[float, list[float]]:
    """The mean errors of all seeds at each width."""
    rows = zip(*(record.rows for record in runs["measured"]), strict=True)
    return {same[0]["d"]: [row[scheme] for row in same] for same in rows}

"""What the bigram task allows: entropies of the text, and the floor of the global loss with random triggers.

A model that knows π_b exactly still loses Σ_i ν_i H(π_b(·|i)) / Σ_i ν_i on global positions, where ν_i counts the
visits of token i while it is not a trigger. This floor depends on the task: it is not the text's bigram entropy.

    engram run birth.levels --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds, checks

SOURCE = "the task of Birth of a Transformer, section 3; the levels are computed here"
CLAIMS = {
    "birth.levels": "The text has unigram entropy 3.3128 and bigram entropy 2.4526 nats, and 1403 different bigrams.",
    "birth.floor": "With random triggers the floor of the global loss lies below the text's bigram entropy.",
}
LEVELS = {"entropy.unigram": (3.3128, 5e-5), "entropy.bigram": (2.4526, 5e-5), "bigrams": (1403, 0.5)}
TRIGGERS = (1, 3, 5)  # K
SEQUENCES = {"smoke": 8, "quick": 500, "paper": 2000}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    draws, length = SEQUENCES[scale], {"T": 32} if scale == "smoke" else {}
    return {
        "text": checks("bigram.text_levels", [0]),
        **{K: checks("bigram.floor_levels", seeds, draws, K=K, **length) for K in TRIGGERS},
    }


def claims(runs: Runs) -> Claimed:
    text = runs["text"][0].rows[0]
    exact = [Measure.exact(f"{name} minus {v}", text[name] - v, error) for name, (v, error) in LEVELS.items()]
    yield "birth.levels", exact
    measures = []
    for K in TRIGGERS:
        rows = [record.rows[0] for record in runs[K]]
        gaps, below = [r["sampled"] - r["floor"] for r in rows], [text["entropy.bigram"] - r["floor"] for r in rows]
        measures.append(Measure.over_seeds(f"K={K}: sampled sequences minus occupancies", gaps, low=-0.03, high=0.03))
        enumerated = not any(row["floor.error"] for row in rows)  # then seeds change nothing
        name = f"K={K}: bigram entropy minus floor"
        measures.append(Measure.known(name, below[0], low=0) if enumerated else Measure.over_seeds(name, below, low=0))
    yield "birth.floor", measures


def figure(runs: Runs) -> Figure:
    from engram.show.curves import levels_by_size

    text = runs["text"][0].rows[0]
    names = {"floor": "floor, from the expected visits of each token", "sampled": "the same loss on sampled sequences"}
    series = {words: {K: [r.rows[0][name] for r in runs[K]] for K in TRIGGERS} for name, words in names.items()}
    level, title = (
        {"bigram entropy of the text": text["entropy.bigram"]},
        "The least global loss of any model",
    )
    return levels_by_size(series, level, "triggers K", "loss at global positions (nats)", title)

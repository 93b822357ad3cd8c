"""The same probes on our own models and on real ones: a model of ours that is read as models of others are.

Transformers with layer norms and random weights are written as GPT-2 folders of Hugging Face, read by the reader of
real models, and looked at by the same probes. Where nothing is lost on the way, what is found in a real model is not
due to its reader. Sizes: two layers, with linear feed-forward layers, MLPs or none, at both scales.

    engram run real.same-probe --seeds 5
"""

from engram.claims import Claimed, Figure, Labelled, Measure, Runs, Scale, Seeds, checks
from engram.claims.readings import worst_by_seed
from engram.laws.same_probe import FEED_FORWARD

SOURCE = "This project: the reader of GPT-2 folders and the export of runs"
CLAIMS = {
    "real.same-probe": "Probes find the same in a model of ours and in its copy that is read as models of others are."
}
BAND = 1e-5
SIZES = {
    "smoke": {"d": 16, "T": 12, "L": 2, "H": 2},
    "quick": {"d": 64, "T": 64, "L": 2, "H": 4},
    "paper": {"d": 128, "T": 256, "L": 3, "H": 4},
}
MODELS = {"smoke": 1, "quick": 3, "paper": 3}
MEASURED = {
    "logits": "logits",
    "pattern": "attention",
    "alignment": "alignment with the previous token",
    "qk": "W_QᵀW_K of heads, over the largest entry",
    "ov": "W_O W_V of heads, over the largest entry",
    "silenced": "log probabilities with a head silenced",
}


def specs(scale: Scale, seeds: Seeds) -> Labelled:
    return {
        (kind, how): checks("real.same_probe", seeds, MODELS[scale], feed_forward=kind, scale=how, **SIZES[scale])
        for kind in FEED_FORWARD
        for how in ("standard", "unit")
    }


def claims(runs: Runs) -> Claimed:
    measures = [Measure.worst(f"{words}: largest difference", found, BAND) for words, found in errors(runs).items()]
    yield "real.same-probe", measures


def errors(runs: Runs) -> dict[str, list[float]]:
    """By what is measured the largest difference, for each seed."""
    records = [record for found in runs.values() for record in found]
    return {words: worst_by_seed(records, name) for name, words in MEASURED.items()}


def figure(runs: Runs) -> Figure:
    from engram.show.same_probe import largest_differences

    return largest_differences({words: max(found, key=abs) for words, found in errors(runs).items()}, BAND)

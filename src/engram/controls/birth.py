"""Controls of "Birth of a Transformer": labels without meaning, memories not learned, an order turned around."""

from math import exp
from types import SimpleNamespace
from typing import Any

import numpy as np

from engram.claims.controls import Control, Controls
from engram.claims.planting import (
    alike,
    anew,
    changed,
    columns,
    drawn,
    exchanged_columns,
    grafted,
    held,
    multiplied,
    rewritten,
    swapped,
    together,
    with_rows,
)
from engram.laws.published import COLUMNS as PUBLISHED
from engram.laws.published import GAP
from engram.records import Record
from engram.records.files import Row
from engram.values import generator

OUTPUT, SECOND, FIRST, EARLY = "recall.W_O2", "recall.W_K2", "recall.W_K1", "recall.W_K1.t<64"
ACCURACY = "accuracy.in_context"
NOTHING = Control("nothing is learned", changed(held()))
KEYS_FIRST = Control("W_K2 is born when W_O2 was, and W_O2 when W_K2 was", changed(exchanged_columns((OUTPUT, SECOND))))
HEADS = [(f"effect.previous.L1{h}", f"effect.successors.L2{h}") for h in ("", "H1", "H2", "H3", "H4")]


def _is_text(label: Any) -> bool:
    return isinstance(label, str)


def _is_data(label: Any) -> bool:
    return isinstance(label, str) and label.startswith("K=")


SAME_DATA = Control("all laws of data are learned like K=5 random", alike("K=5 random", only=_is_data))
SLOW_JOINT = Control("joint training is as slow as the slowest schedule", grafted({"joint": "W_O2 frozen"}))
ONE_FROZEN = ("W_K1 frozen", "W_K2 frozen")
BOTH_LAWS = ("uniform", "bigram")


def _uniform_attention(record: Record, row: Row) -> Row:
    """The mass of uniform attention on every edge, with 5 % of noise."""
    masses = [name.removesuffix(".chance") for name in row if name.endswith(".chance")]
    rng = generator(record.spec.seed, "control.mass")
    return {name: row[f"{name}.chance"] * exp(0.05 * rng.normal()) for name in masses}


def _at_the_pace_of_the_head(record: Record) -> Record:
    """The global loss falls from its first value to its least as the loss in context does."""
    own, other = record.curve("loss.global")[1], record.curve("loss.in_context")[1]
    share = (other - other.min()) / (other[0] - other.min())
    paced = own.min() + (own[0] - own.min()) * share
    return with_rows(
        record, [{**row, "loss.global": value} for row, value in zip(record.rows, paced.tolist(), strict=True)]
    )


def _gains_to_the_end(record: Record) -> Record:
    """Accuracy grows in a straight line to what it is at the end, with a tenth of its noise."""
    values = record.column(ACCURACY)
    end = float(values[-100:].mean())
    line = np.linspace(0, end, len(values)) + 0.1 * (values - end)
    return with_rows(record, [{**row, ACCURACY: value} for row, value in zip(record.rows, line.tolist(), strict=True)])


def _no_more_than_one_batch(record: Record) -> Record:
    """Each of the 65 tokens is recalled as often as after one batch, drawn anew for every number of batches."""
    first, rng = record.rows[0]["recall"], generator(record.spec.seed, "control.batches")
    return with_rows(record, [{**row, "recall": rng.binomial(65, first) / 65} for row in record.rows])


def _behind(record: Record) -> Record:
    """The published run is a sixth of its 300 steps behind itself."""
    by = len(record.rows) // 6
    published = {name: record.column(name) + record.column(name + GAP) for name in PUBLISHED}
    late = {
        name: np.r_[np.full(by, found[0]), found[: len(found) - by]] - record.column(name)
        for name, found in published.items()
    }
    rows = [{name + GAP: float(gap[i]) for name, gap in late.items()} for i in range(len(record.rows))]
    return with_rows(record, [{**own, **row} for own, row in zip(record.rows, rows, strict=True)])


def _other_text(right: Any) -> Any:
    """A task whose text has one per cent of letters drawn at random."""

    def task() -> Any:
        table = right().table
        unigram, bigram = (0.99 * p + 0.01 / p.shape[-1] for p in (table.unigram, table.bigram))
        entropies = -(bigram * np.log(bigram)).sum(1)
        return SimpleNamespace(table=SimpleNamespace(unigram=unigram, bigram=bigram, row_entropies=entropies))

    return task


def _floor_of_the_text(record: Record, row: Row) -> Row:
    """Triggers change nothing: the floor is the bigram entropy, up to the noise of the samples."""
    if "sampled" not in row:
        return {}
    return {"floor": 2.4526 + (row["sampled"] - row["floor"] if row["floor.error"] else 0)}  # K=1 is exact


def _tuned(label: Any) -> bool:
    return label[0] == "tuned" and label[2] == 128


OTHER_OUTPUTS = [("test.uniform.accuracy.in_context", "test.bigram.accuracy.in_context")]
NULL_CORRELATIONS = drawn(lambda rng: 0.12 * rng.normal(), "diagonal.W_K2.frequency", "diagonal.W_K1.position")

CONTROLS: Controls = {
    "birth.full-architecture": (NOTHING, KEYS_FIRST),
    "birth.heads-share": (Control("the layers have exchanged their parts", changed(exchanged_columns(*HEADS))),),
    "birth.two-layers-reach": (
        Control("two layers do as one does", grafted({("fixed", 2): ("fixed", 1), ("random", 2): ("random", 1)})),
        Control("accuracy is 1 % lower", changed(multiplied(0.99, ACCURACY))),
    ),
    "birth.one-layer-fails": (
        Control("one layer reaches half as much again", changed(multiplied(1.5, ACCURACY))),
        Control("one layer gains to the end", changed(_gains_to_the_end, only=_is_text)),
    ),
    "birth.induction-attention": (Control("attention is uniform", changed(rewritten(_uniform_attention))),),
    "birth.two-layers-near-ceiling": (
        Control("two layers do as one does", grafted({("random", 2): ("random", 1)})),
        Control("two layers reach 2 % less", changed(multiplied(0.98, ACCURACY))),
    ),
    "birth.output-must-come-first": (
        Control("freezing W_O2 does not matter", grafted({"W_O2 frozen": "joint"})),
        Control("freezing W_K1 and W_K2 does not matter", grafted({"W_K1, W_K2 frozen": "joint"})),
        NOTHING,
    ),
    "birth.second-layer-before-first": (
        Control(
            "the first layer is the easier one",
            together(
                swapped(ONE_FROZEN), changed(exchanged_columns((SECOND, EARLY)), only=lambda label: label in ONE_FROZEN)
            ),
        ),
    ),
    "birth.joint-is-faster": (SLOW_JOINT,),
    "birth.joint-from-thaw": (SLOW_JOINT,),
    "birth.diversity-generalises": (
        Control(
            "uniform outputs generalise as bigram ones do, and the reverse",
            together(swapped(BOTH_LAWS), changed(exchanged_columns(*OTHER_OUTPUTS))),
        ),
    ),
    "birth.global-before-in-context": (
        Control(
            "global statistics are learned at the pace of the head", changed(_at_the_pace_of_the_head, only=_is_data)
        ),
    ),
    "birth.data-slows": (SAME_DATA,),
    "birth.random-slows-at-equal-rarity": (SAME_DATA,),
    "birth.fewer-fixed-slows": (SAME_DATA,),
    "birth.competition": (
        Control(
            "both stay where they are at 30–50 % of the steps", changed(held(OUTPUT, "kl.W_F", begin=0.3, end=0.5))
        ),
    ),
    "birth.bigram-memory-kl": (Control("W_F learns nothing", changed(held("kl.W_F"))),),
    "birth.preference": (
        Control(
            "the model prefers the bigram where it preferred the head",
            changed(
                exchanged_columns(
                    *((f"preference.{p}.follows", f"preference.{p}.bigram") for p in ("unlikely", "likely"))
                )
            ),
        ),
    ),
    "birth.slow-output-memory": (
        SAME_DATA,
        Control(
            "all memories slow down as W_O2 does",
            changed(columns({SECOND: OUTPUT, FIRST: OUTPUT, EARLY: OUTPUT}, 0.05), only=_is_data),
        ),
    ),
    "birth.slow-key-memory": (
        SAME_DATA,
        Control(
            "the key memories slow down as W_O2 does",
            changed(columns({SECOND: OUTPUT, EARLY: OUTPUT}, 0.05), only=_is_data),
        ),
        Control(
            "W_K1 is not slowed down by random triggers, K=5",
            grafted({"K=5 random": "K=5 fixed, ranks 1–5"}, EARLY),
        ),
    ),
    "birth.diversity-fills-memories": (
        Control(
            "both laws of outputs fill the memories alike", alike("uniform", only=lambda label: label in BOTH_LAWS)
        ),
        Control("W_K1 differs as W_K2 does", changed(columns({EARLY: SECOND}))),
    ),
    "birth.memory-diagonals": (
        Control("strength does not depend on frequency or position", changed(NULL_CORRELATIONS)),
        Control("W_O2 is as uneven as W_K2", changed(columns({"diagonal.W_O2.variation": "diagonal.W_K2.variation"}))),
    ),
    "birth.dimension": (
        Control(
            "all widths are learned like d=128",
            together(
                alike(("tuned", 128, 128, 12.8), only=_tuned),
                alike(("fixed", 128), only=lambda label: label[0] == "fixed"),
            ),
        ),
        Control("nothing is learned at the tuned rate", changed(held(), only=lambda label: label[0] == "tuned")),
    ),
    "birth.one-step-recall": (
        Control("all widths recall like d=128", alike(128, only=lambda label: True)),
        Control("more batches do not help", changed(_no_more_than_one_batch)),
    ),
    "birth.learns": (NOTHING, Control("accuracy is 5 % lower", changed(multiplied(0.95, ACCURACY)))),
    "birth.output-first": (NOTHING, KEYS_FIRST),
    "birth.first-layer-last": (
        Control("W_K1 is born when W_O2 was", changed(columns({FIRST: OUTPUT, EARLY: OUTPUT}))),
    ),
    "birth.early-positions": (Control("positions make no difference", changed(columns({EARLY: FIRST}, 0.05))),),
    "birth.official-curve": (Control("the authors' run is 50 steps behind", changed(_behind)),),
    "birth.levels": (
        Control(
            "one per cent of the letters is drawn at random",
            changed(anew(), only=lambda label: label == "text"),
            {"engram.theory.bigram.Bigram": _other_text},
        ),
    ),
    "birth.floor": (Control("triggers do not change the floor", changed(rewritten(_floor_of_the_text))),),
}

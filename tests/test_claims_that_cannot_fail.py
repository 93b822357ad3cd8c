"""What holds whatever is measured is no claim: it is asked of the code that measures, on the committed records."""

from collections.abc import Iterator

import pytest

from engram import experiments
from engram.claims import Runs
from engram.claims.experiment import Scale, unique
from engram.claims.ledger import Index
from engram.records import Record
from engram.records.files import COMMITTED
from engram.specs.spec import run_id

SEEDS = [0, 1, 2]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index.of([COMMITTED])


def records_of(name: str, index: Index, scale: Scale = "quick") -> Iterator[tuple[object, Record]]:
    labelled = experiments.find(name).labelled(scale, SEEDS)
    found = {run_id(spec): index.found[run_id(spec)].record for spec in unique(labelled)}
    runs = Runs.of(labelled, found, scale, SEEDS)
    return ((label, record) for label, same in runs.items() for record in same)


def test_no_transformer_stores_more_bits_than_it_has(index: Index) -> None:
    ratios = [record.rows[0]["ratio"] for _, record in records_of("facts.lower-bound", index)]
    assert len(ratios) == 9
    assert all(0 < ratio < 1 for ratio in ratios)


def test_no_matrix_stores_more_bits_than_it_has(index: Index) -> None:
    found = [record for label, record in records_of("memory.bounds", index) if label in ("Hebbian", "trained")]
    assert len(found) == 6
    assert all(0 < record.column("ratio").max() < 1 for record in found)


def test_no_attention_beats_the_predictor_of_bayes(index: Index) -> None:
    """On prompts that are the same for both: one record may be a little luckier than the mean, not more."""
    found = [record for _, record in records_of("memory.denoising", index) if "loss.bayes" in record.columns]
    assert found
    assert all(record.last("loss.test") > 0.99 * record.last("loss.bayes") for record in found)

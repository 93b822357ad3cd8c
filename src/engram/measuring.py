"""What committed records have measured of capacities, as the table that the calculator fits (`make capacities`)."""

import csv
import io

from engram import experiments
from engram.calculator.kinds import KINDS
from engram.calculator.measured import COLUMNS, FILE, Points
from engram.claims.experiment import Scale
from engram.claims.index import Index
from engram.experiments.scaling.prediction import held, size_of
from engram.records import Record
from engram.records.files import COMMITTED, replace
from engram.specs import Spec
from engram.specs.encode import digest_of
from engram.specs.spec import run_id

SCALES: dict[str, Scale] = {"hebb": "quick", "linear": "paper", "mlp": "quick", "facts": "quick"}  # whose Specs count


def measured_points(index: Index) -> dict[str, Points]:
    """For each kind (size, held), from every finished record of its experiment, whatever the seed."""
    return {
        name: sorted((size_of(kind, r), held(kind, r)) for r in _records(name, index)) for name, kind in KINDS.items()
    }


def _records(name: str, index: Index) -> list[Record]:
    """Facts are those of the shape α = β = 1, of which most is known."""
    labelled = experiments.find(KINDS[name].experiment).labelled(SCALES[name], [0])
    specs = [spec for label, same in labelled.items() for spec in same if name != "facts" or label[0] == (1.0, 1.0)]
    found = [index.found[id] for spec in specs for id in _of_all_seeds(spec, index)]
    return [one.record for one in found if one.finished and not one.stale]


def _of_all_seeds(spec: Spec, index: Index) -> list[str]:
    seeds = sorted(index.seeds.get(digest_of(spec), ()))  # of a Spec with seed 0: without its seed
    return [run_id(spec.model_copy(update={"seed": seed})) for seed in seeds]


def table(points: dict[str, Points]) -> str:
    """As CSV, numbers in full."""
    text = io.StringIO()
    rows = [(name, f"{size:g}", repr(held)) for name, same in points.items() for size, held in same]
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    return text.getvalue()


def write_table() -> None:
    replace(FILE, table(measured_points(Index.of([COMMITTED]))).encode())


if __name__ == "__main__":
    write_table()

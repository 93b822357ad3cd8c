"""The grid of optimisers: cells on the way of a longer training, the published file, standard errors."""

from math import inf, sqrt
from pathlib import Path

import numpy as np
import pytest

from engram.errors import EngramError
from engram.experiments.scaling.grid import Compared
from engram.laws.online_grid import (
    CELLS,
    WAYS,
    Cells,
    beside_published,
    beside_stand_in,
    compared,
    errors,
    grid,
    published_cells,
)

ONE = (10, 1.0, 64, 256)
HEADER = "model,optimizer,layernorm,lr,batch_size,ntrain,d,seeds,mean_error,std_error_over_seeds\n"


def test_the_whole_grid_has_40320_trainings() -> None:
    one = CELLS["all"]
    cells = len(one.widths) * len(one.rates) * len(one.batches) * len(one.samples)
    assert len(WAYS) * cells == 4032


@pytest.mark.parametrize("kind", ["matrix", "learned"])
def test_a_cell_on_the_way_is_a_training_of_its_own(kind: str) -> None:
    both, alone = Cells((10,), (1.0,), (64,), (256, 1024)), Cells((10,), (1.0,), (64,), (256,))
    ours = [[*errors((kind, "SGD"), False, cells, 5)] for cells in (both, alone)]  # type: ignore[arg-type]
    assert ours[0][0] == ours[1][0]


def test_a_published_cell_is_set_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    content = (
        HEADER + "learnable,Adam,True,1.0,64,256,10,10,0.5,0.1\nmatrix,SGD,False,1.0,64,256,10,10,0.5,0\n"
    ).encode()
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid" / "published_cells.csv").write_bytes(content)
    monkeypatch.setenv("ENGRAM_REFERENCE", str(tmp_path))
    assert published_cells(content)["learned", "sign", True] == {ONE: (0.5, 0.1)}
    digest = hashlib.sha256(content).hexdigest()
    rows = [*beside_published(1, 3, "learned", "sign", True, "smoke", digest)]
    plain = [*grid(1, 3, "learned", "sign", True, "smoke")]
    at = [tuple(row[name] for name in ("d", "lr", "batch", "n")) for row in rows].index(ONE)
    assert rows[at] == plain[at] | {"gap": 0.5 - plain[at]["error"], "off": (plain[at]["error"] - 0.5) / 0.1}
    assert [row for i, row in enumerate(rows) if i != at] == [row for i, row in enumerate(plain) if i != at]
    assert "off" not in compared(0.3, 0.5, 0.0)
    with pytest.raises(EngramError, match="not the file that was registered"):
        next(iter(beside_published(1, 3, "matrix", "SGD", False, "smoke", "0" * 64)))


def test_z_is_that_of_two_means() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.3, 0.05, 10), rng.normal(0.35, 0.02, 10)
    cell = Compared(tuple(ours), theirs.mean(), theirs.std(ddof=1))
    by_hand = (theirs.mean() - ours.mean()) / sqrt(ours.var(ddof=1) / 10 + theirs.var(ddof=1) / 10)
    assert cell.z == pytest.approx(by_hand)
    assert Compared((0.3586083,) * 10, 0.358608, 0.0).z == 0  # the published numbers have six digits
    assert Compared((0.25,) * 10, 0.5, 0.0).z == inf


def test_seeds_of_ours_are_within_two_errors_of_each_other() -> None:
    """About one cell in twenty is not; with the same seeds on both sides all are."""
    rows = [*beside_stand_in(1, 990, "exponential", "sign", False, "smoke", other=990)]
    assert all(abs(row["off"]) < 3 for row in rows if "off" in row)


def test_cells_that_nobody_named_are_refused() -> None:
    with pytest.raises(EngramError, match="none of smoke, quick, all"):
        next(iter(grid(1, 0, "matrix", "SGD", False, "huge")))

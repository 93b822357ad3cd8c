"""Capacity searches: bisection finds the edge, both paths train alike, a cut search goes on where it was."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engram.claims.readings import capacity
from engram.errors import EngramError, Interrupted
from engram.learning import Adam, FullBatch, fast_stores, stores
from engram.learning.bisection import MOST, bisection
from engram.models.stores import LinearMap, Outer, TwoLayer
from engram.models.trace import Weights
from engram.native import kernel
from engram.records import Record
from engram.runner.execute import execute, search_rows
from engram.show.report import report
from engram.show.tables import number
from engram.specs import Search
from engram.specs.encode import decode, digest_of, encode
from engram.specs.spec import run_id
from engram.tasks import Association
from engram.tasks.association import Problem

PLAN = FullBatch(optimiser=Adam(lr=0.1), steps=400, check_every=20)
needs_kernel = pytest.mark.skipif(kernel() is None, reason="no C++ compiler on PATH")


def never() -> bool:
    return False


class Copy(LinearMap):
    """Begins at W = I."""

    def init(self, seed: int) -> Weights:
        return {"W": torch.eye(self.d)}


def trained_search(**fields: object) -> Search:
    given = {"task": Association(), "model": LinearMap(d=6), "plan": PLAN, "bracket": (4, 30), "tolerance": 0.1}
    return Search.model_validate(given | fields)


@settings(deadline=None)
@given(edge=st.integers(1, 5000), low=st.integers(1, 400), width=st.integers(1, 4000), ratio=st.floats(1.0, 1.5))
def test_bisection_finds_the_edge(edge: int, low: int, width: int, ratio: float) -> None:
    """A size passes up to the edge: the answer brackets it, wherever the search began, and nothing is asked twice."""
    assume(edge <= MOST * (low + width))
    asking, asked = bisection(low, low + width, ratio), []
    size = next(asking)
    try:
        while True:
            asked.append(size)
            size = asking.send(size <= edge)
    except StopIteration as end:
        lo, hi = end.value
    assert lo <= edge < hi
    assert hi <= lo * ratio or hi == lo + 1
    assert len(set(asked)) == len(asked)
    assert {lo, hi} <= set(asked)


def test_bisection_does_not_grow_for_ever() -> None:
    def always_yes() -> None:
        asking = bisection(1, 4, 1.0)
        next(asking)
        for _ in range(1000):
            asking.send(True)

    with pytest.raises(EngramError, match="the target is not crossed up to size"):
        always_yes()


def test_bisection_gives_up_below_one() -> None:
    asking = bisection(1, 4, 1.0)
    next(asking)
    assert [asking.send(False)] == [1]
    with pytest.raises(EngramError, match="the target is already crossed below size 1"):
        asking.send(False)


@needs_kernel
@settings(deadline=None, max_examples=25)
@given(
    N=st.integers(1, 60),
    d=st.integers(2, 20),  # for d = 1 gradients cancel down to rounding errors, which Adam makes as large as any other
    m=st.integers(0, 40),
    M=st.integers(1, 70),
    lr=st.sampled_from([0.03, 1.0, 1000.0]),
    seed=st.integers(0, 2**31),
)
def test_kernel_trains_like_autograd(N: int, d: int, m: int, M: int, lr: float, seed: int) -> None:
    """Ten steps of Adam in float64: the same weights, accuracy and number of steps."""
    model = TwoLayer(d=d, m=m) if m else LinearMap(d=d)
    plan = FullBatch(optimiser=Adam(lr=lr), steps=10, check_every=3)
    drawn = Association(kind="random", M=M).problem(N, d, seed)
    problem = Problem(drawn.X.double(), drawn.U.double(), drawn.f)
    (fast,), (slow,) = (path.train_stores(model, plan, problem, [seed], 2.0, never) for path in (fast_stores, stores))
    assert (fast.accuracy, fast.steps) == pytest.approx((slow.accuracy, slow.steps))
    for name, weights in slow.weights.items():
        scale = max(1.0, float(weights.abs().max()))
        assert float((fast.weights[name] - weights).abs().max()) < 1e-6 * scale, name


@needs_kernel
@pytest.mark.parametrize("lr", [1e9, 1e20, 1e38])
@pytest.mark.parametrize("model", [LinearMap(d=16), TwoLayer(d=16, m=8)])
def test_kernel_survives_huge_scores(model: LinearMap | TwoLayer, lr: float) -> None:
    """Scores beyond the resolution of float are compared rightly; an overflow ends a training, not the process."""
    plan = FullBatch(optimiser=Adam(lr=lr), steps=64, check_every=8)
    found = fast_stores.train_stores(model, plan, Association().problem(20, 16, 0), [0], 0.99, never)[0]
    assert 0 <= found.accuracy <= 1
    if lr == 1e9 and isinstance(model, LinearMap):
        slow = stores.train_stores(model, plan, Association().problem(20, 16, 0), [0], 0.99, never)[0]
        assert (found.accuracy, found.steps) == (slow.accuracy, slow.steps)


@needs_kernel
def test_kernel_refuses_answers_that_are_not_there() -> None:
    problem = Association().problem(4, 8, 0)
    with pytest.raises(EngramError, match="answers must lie"):
        fast_stores.train_stores(LinearMap(d=8), PLAN, Problem(problem.X, problem.U, problem.f + 1), [0], 0.99, never)


@pytest.mark.parametrize("path", [stores, pytest.param(fast_stores, marks=needs_kernel)])
def test_accuracy_at_the_target_is_not_above_it(path: object) -> None:
    """99 of 100 right is 0.99 on both paths, in memory and on disk."""
    problem = Association().problem(100, 100, 0)
    f = problem.f.clone()
    f[0, 0] = 1
    plan = FullBatch(optimiser=Adam(lr=1e-12), steps=1, check_every=1)
    X, U = torch.eye(100)[None], torch.eye(100)[None] * 1.0
    found = path.train_stores(Copy(d=100), plan, Problem(X, U, f), [0], 0.99, never)[0]  # type: ignore[attr-defined]
    assert found.accuracy == 0.99
    assert not found.accuracy > 0.99


@needs_kernel
def test_kernel_stores_what_autograd_stores() -> None:
    """In float32, well inside and far outside the capacity, both paths come to the same verdict."""
    plan = FullBatch(optimiser=Adam(lr=1000.0), steps=600, check_every=32)
    for n, passes in ((30, True), (140, False)):
        problem = Association().problem(n, 16, 0)
        for path in (fast_stores, stores):
            assert (path.train_stores(LinearMap(d=16), plan, problem, [0], 0.99, never)[0].accuracy > 0.99) == passes


@pytest.mark.parametrize("path", [stores, pytest.param(fast_stores, marks=needs_kernel)])
def test_slices_and_giving_up(path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices do not change a training; a hopeless one ends at its mark, a good one does not."""
    problem, model = Association().problem(200, 8, 0), LinearMap(d=8)
    hopeless = FullBatch(optimiser=Adam(lr=1000.0), steps=300, check_every=10, hopeless=((50, 0.5), (100, 0.9)))
    assert path.train_stores(model, hopeless, problem, [0], 0.99, never)[0].steps == 50  # type: ignore[attr-defined]
    easy = Association().problem(10, 8, 0)
    whole = path.train_stores(model, hopeless, easy, [0], 0.99, never)[0]  # type: ignore[attr-defined]
    assert whole.accuracy == 1
    monkeypatch.setattr(fast_stores, "WORK_AT_ONCE", 1.0)
    sliced = path.train_stores(model, hopeless, easy, [0], 0.99, never)[0]  # type: ignore[attr-defined]
    assert (sliced.steps, sliced.accuracy) == (whole.steps, whole.accuracy)
    assert torch.equal(sliced.weights["W"], whole.weights["W"])


def test_problems_train_alike_alone_and_together() -> None:
    problems = [Association().problem(12, 6, seed) for seed in (0, 1, 2)]
    together = Problem(*(torch.cat([getattr(p, part) for p in problems]) for part in ("X", "U", "f")))
    alone = [stores.train_stores(LinearMap(d=6), PLAN, p, [s], 0.99, never)[0] for s, p in enumerate(problems)]
    for a, b in zip(alone, stores.train_stores(LinearMap(d=6), PLAN, together, [0, 1, 2], 0.99, never), strict=True):
        assert (a.accuracy, a.steps) == (b.accuracy, b.steps)


def test_cut_search_goes_on_to_the_same_bytes(home: Path) -> None:
    """Stopped after any row, or killed in the middle of one, the rows come out as if nothing had happened."""
    spec = trained_search(votes=3)
    whole = (execute(spec, home / "whole").folder / "rows.jsonl").read_bytes()
    count = len(whole.splitlines())
    for cut in range(1, count):
        folder = home / str(cut)
        with pytest.raises(ZeroDivisionError):
            execute(spec, folder, on_row=lambda row, cut=cut: 1 / (cut - 1 - row["step"]))
        rows = folder / run_id(spec) / "rows.jsonl"
        rows.write_bytes(rows.read_bytes() + b'{"step": 9')
        execute(spec, folder)
        assert rows.read_bytes() == whole


def test_search_stops_when_asked(home: Path) -> None:
    with pytest.raises(Interrupted, match="search-linearmap"):
        execute(trained_search(), home, stop=lambda: True)
    assert execute(trained_search(), home).finished


def test_rows_say_how_the_search_went(home: Path) -> None:
    spec = trained_search(votes=3)
    record = execute(spec, home)
    sizes: dict[int, list[dict[str, float]]] = {}
    for row in record.rows:
        sizes.setdefault(row["n"], []).append(row)
    assert all([row["vote"] for row in rows] == [0, 1, 2] for rows in sizes.values())
    won = {n: sum(row["accuracy"] > 0.99 for row in rows) >= 2 for n, rows in sizes.items()}
    lo, hi = max(n for n in won if won[n]), min(n for n in won if not won[n])
    assert lo < capacity(record) < hi
    assert next(search_rows(spec, "reference"))["n"] == record.rows[0]["n"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bracket": (9, 3)}, "bracket"),
        ({"bracket": (0, 3)}, "bracket"),
        ({"plan": None}, "plan"),
        ({"model": Outer(d=4)}, "plan"),
        ({"draws": 3}, "draws"),
        ({"target": 1.0}, "target"),
        ({"votes": 0}, "votes"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"model": Association()}, "no search takes Association, Association and FullBatch"),
        (
            {"plan": FullBatch(optimiser=Adam(lr=1.0), steps=4, check_every=1), "model": Outer(d=4)},
            "no search takes Association, Outer and FullBatch",
        ),
    ],
)
def test_bad_searches_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trained_search(**fields)


@pytest.mark.parametrize("fields", [{"kind": "modulo"}, {"M": 3}, {"kind": "permutation", "M": 3}, {"inputs": 3}])
def test_bad_associations_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (pydantic's)
        Association.model_validate(fields)


def test_search_can_be_stored_and_read() -> None:
    spec = trained_search()
    again = decode(json.loads(json.dumps(encode(spec))))
    assert digest_of(again) == digest_of(spec)
    assert run_id(spec).startswith("search-linearmap-d6-s0-")


def test_wrong_kind_of_record_is_told(home: Path) -> None:
    record = execute(trained_search(), home)
    with pytest.raises(EngramError, match="is a Search, not a Check"):
        _ = record.check
    assert Record(record.folder).search == trained_search()


def test_row_that_answers_another_question_is_told(home: Path) -> None:
    """Rows are read as answers: those of another way of searching must not be taken for them."""
    spec = trained_search()
    rows = execute(spec, home).rows
    with pytest.raises(EngramError, match="another question"):
        list(search_rows(spec, "reference", [rows[0] | {"n": 1000}]))


def test_report_says_what_a_search_came_to(home: Path) -> None:
    record = execute(trained_search(), home)
    page = report("a search", [(record, [])], [])
    assert f"Stores n = {number(capacity(record))} at 99%." in page

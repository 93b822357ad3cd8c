"""Facts: prompts and bags say the same, and the kernel has the gradients of the readable model."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.learning import Adam, FreshBatch, Plan, fast_facts, reference
from engram.learning.fast_facts import flatten, measure, take_adam_steps, unflatten
from engram.models.factual import Factual
from engram.native import kernel
from engram.runner.execute import execute
from engram.specs import Search, Train
from engram.tasks import Association
from engram.tasks.book import MISSING
from engram.tasks.facts import Facts, FactsOfSize, OwnFacts

needs_kernel = pytest.mark.skipif(kernel() is None, reason="no C++ compiler")


def test_a_prompt_holds_its_fact_and_ends_with_eos() -> None:
    task = Facts(S=5, R=3, D=4, T=9)
    book, batch = task.book(7), task.sample(7, 2, 400)
    s, r, answers = book.asked(7, 2, 400)
    assert (batch.tokens[:, -1] == book.EOS).all()
    assert ((batch.tokens < 5).sum(1) == 1).all()
    assert (((batch.tokens >= 5) & (batch.tokens < 8)).sum(1) == 1).all()
    assert np.array_equal(batch.tokens.min(1), s)
    assert np.array_equal(batch.targets[:, -1], answers)
    assert np.array_equal(answers, book.table[s, r])
    assert np.array_equal(answers // 4, r)  # answer sets are disjoint
    places = (batch.tokens < 5).argmax(1)
    assert set(places) == set(range(8))


@pytest.mark.parametrize("T", [4, 9, 200])
def test_bags_are_the_prompts_without_places(T: int) -> None:
    task = Facts(S=5, R=3, D=4, T=T)
    prompts, bags = task.sample(1, 3, 50), task.bags(1, [3], 50)
    counts = np.stack([np.bincount(row, minlength=task.N) for row in prompts.tokens])
    bag = bags.tokens if bags.tokens is not None else np.empty((0, 0), dtype=int)
    found = bags.counts if bags.counts is not None else [np.bincount(row, minlength=task.N) for row in bag]
    assert np.array_equal(counts, found)
    assert np.array_equal(prompts.targets[:, -1], bags.answers)


def test_facts_come_as_often_as_they_should() -> None:
    task = Facts(S=4, R=3, D=2, facts=9, subject_power=1.0, relation_power=0.5)
    book, n = task.book(0), 60_000
    s, r, _ = book.asked(0, 0, n)
    assert (book.table != MISSING).sum() == 9
    share = np.bincount(s * 3 + r, minlength=12).reshape(4, 3) / n
    assert np.all(np.abs(share - book.p) <= 4 * np.sqrt(book.p / n) + 1e-12)
    known = book.table[:, 0] != MISSING
    assert np.allclose(np.diff(np.log(book.p[known, 0])), -np.diff(np.log(np.arange(1, 5.0)[known])))


def test_a_structured_dictionary_gives_neighbours_the_same_answer() -> None:
    table = Facts(S=16, R=4, D=8, dictionary="structured").book(0).table
    assert np.array_equal(table, 8 * np.arange(4) + np.arange(16)[:, None] // 2)


ROWS = (("France", "capital", "Paris"), ("Japan", "capital", "Tokyo"), ("France", "currency", "euro"))


def test_own_facts_keep_their_names() -> None:
    task = OwnFacts(facts=ROWS)
    names, book = task.names, task.book(0)
    assert (book.S, book.R, book.answers) == (2, 2, 3)
    for s, r, a in book.known:
        assert (names["subject"][s], names["relation"][r], names["answer"][a]) in ROWS
    assert len(book.known) == 3


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("France", "capital", "Paris"), r"row 4 \(France, capital, Paris\): repeats row 1"),
        (("France", "capital", "Lyon"), "row 4 .*: contradicts row 1"),
        (("Spain", "currency", "Paris"), "row 4 .*: 'Paris' answers another relation in row 1"),
        (("capital", "currency", "yen"), "'capital' is a subject here and a relation in row 1"),
        (("Spain", "capital", ""), "row 4 .*: its answer is empty"),
    ],
)
def test_facts_that_make_no_sense_are_refused_by_row(row: tuple[str, str, str], message: str) -> None:
    with pytest.raises(EngramError, match=message):
        OwnFacts(facts=(*ROWS, row))


def test_too_many_answers_and_too_short_prompts_are_refused() -> None:
    with pytest.raises(EngramError, match=r"row 2 .*: 'Tokyo' is one answer too many for 'capital', which has D=1"):
        OwnFacts(facts=ROWS, D=1)
    with pytest.raises(EngramError, match="greater than or equal to 4"):
        Facts(T=3)
    with pytest.raises(EngramError, match="must be at most S·R = 6; got "):
        Facts(S=2, R=3, facts=7)


def test_a_csv_is_read_and_bad_ones_say_why(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("subject,relation,answer\n" + "\n".join(",".join(row) for row in ROWS), encoding="utf-8")
    assert OwnFacts.read(path, T=8) == OwnFacts(facts=ROWS, T=8)
    path.write_text("subject,answer\na,b\n")
    with pytest.raises(EngramError, match="no column relation"):
        OwnFacts.read(path)
    path.write_text("subject,relation,answer\na,b\n")
    with pytest.raises(EngramError, match=r"line 2 \(a, b\): three values are needed"):
        OwnFacts.read(path)
    with pytest.raises(EngramError, match="cannot be read"):
        OwnFacts.read(tmp_path / "none.csv")


SHAPES = st.fixed_dictionaries(
    {"d": st.integers(1, 20), "heads": st.integers(1, 5), "d_h": st.integers(1, 18), "m": st.integers(0, 19)}
)


def small(shape: dict[str, int], task: Facts, seed: int, dtype: torch.dtype) -> tuple[Factual, dict[str, torch.Tensor]]:
    model = Factual(**shape, answers=task.answers)  # type: ignore[arg-type]
    return model, {name: value.to(dtype) for name, value in model.init(task.N, task.T, seed).items()}


@needs_kernel
@settings(max_examples=40, deadline=None)
@given(SHAPES, st.integers(4, 12), st.integers(1, 70), st.integers(0, 9))
def test_the_kernel_has_the_gradients_of_the_model(shape: dict[str, int], T: int, batch: int, seed: int) -> None:
    task = Facts(S=3, R=2, D=3, T=T)
    model, w = small(shape, task, seed, torch.float64)
    prompts = task.sample(seed, 0, batch)
    slow = reference.gradients(model, w, prompts, "answer", model.trainable)
    fast = fast_facts.gradients(model, w, prompts, "answer", model.trainable)
    for name in model.trainable:
        assert torch.allclose(fast.gradients[name], slow.gradients[name], rtol=1e-10, atol=1e-10), name
    assert fast.metrics == pytest.approx(slow.metrics, abs=1e-10)


@needs_kernel
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("T", [4, 40])
def test_prompts_that_score_far_below_the_best_token_are_attended_to_alike(T: int, dtype: torch.dtype) -> None:
    task = Facts(S=3, R=2, D=3, T=T, noise=30)
    model, w = small({"d": 8, "heads": 2, "d_h": 4, "m": 5}, task, 0, dtype)
    EOS = w["E"][-1] / w["E"][-1].norm()
    w["W_Q"][:] = EOS / w["E"][-1].norm()
    w["W_K"][:] = -3000 * EOS
    w["E"][:-1] -= w["E"][:-1] @ torch.outer(EOS, EOS)
    w["E"][-2] -= EOS  # a noise token that many prompts do not hold scores 6000, all others at most 0
    prompts = task.sample(0, 0, 50)
    slow = reference.gradients(model, w, prompts, "answer", model.trainable)
    fast = fast_facts.gradients(model, w, prompts, "answer", model.trainable)
    close = 1e-9 if dtype == torch.float64 else 1e-3
    for name in model.trainable:
        size = slow.gradients[name].abs().max()
        assert (fast.gradients[name] - slow.gradients[name]).abs().max() <= close * (1 + size), name


@needs_kernel
@pytest.mark.parametrize("T", [12, 60])
def test_bags_and_counts_give_the_same_gradient(T: int) -> None:
    task = Facts(S=3, R=2, D=3, T=T)
    model, w = small({"d": 8, "heads": 2, "d_h": 3, "m": 5}, task, 0, torch.float64)
    by_tokens = fast_facts.gradients(model, w, task.sample(0, 0, 33), "answer", model.trainable)
    found, gradient = measure(model, w, flatten(model, w), task.bags(0, [0], 33), learn=True)
    assert gradient is not None
    for name, part in unflatten(model, w, gradient).items():
        assert torch.allclose(part, by_tokens.gradients[name], atol=1e-12)
    assert found.loss / 33 == pytest.approx(by_tokens.metrics["loss"])


@needs_kernel
def test_steps_of_the_kernel_are_those_of_torch() -> None:
    task, steps, batch = Facts(S=3, R=2, D=3, T=6), 5, 40
    model, w = small({"d": 8, "heads": 2, "d_h": 3, "m": 5}, task, 0, torch.float64)
    adam, leaves = Adam(lr=0.01), {name: w[name].clone() for name in model.trainable}
    optimiser = adam.over(leaves)
    for step in range(steps):
        found = reference.gradients(model, w | leaves, task.sample(0, step, batch), "answer", model.trainable)
        for name, leaf in leaves.items():
            leaf.grad = found.gradients[name]
        optimiser.step()
    row = flatten(model, w)
    state = [row, torch.zeros_like(row), torch.zeros_like(row)]
    for start, end in ((0, 2), (2, steps)):
        together = task.bags(0, range(start, end), batch)
        assert take_adam_steps(model, w, state, adam, together, range(start, end)).steps == end - start
    for name, part in unflatten(model, w, row).items():
        assert torch.allclose(part, leaves[name], atol=1e-12), name


@needs_kernel
def test_float_agrees_and_threads_change_only_rounding() -> None:
    task = Facts(S=8, R=8, D=4, T=16)
    model, w = small({"d": 24, "heads": 4, "d_h": 6, "m": 30}, task, 0, torch.float32)
    prompts = task.sample(0, 0, 200)
    exact = fast_facts.gradients(
        model, {k: v.double() for k, v in w.items()}, prompts, "answer", model.trainable
    ).gradients
    for threads in (1, 2, 3):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            found = [fast_facts.gradients(model, w, prompts, "answer", model.trainable) for _ in range(2)]
        finally:
            torch.set_num_threads(before)
        for name, gradient in found[0].gradients.items():
            assert torch.equal(gradient, found[1].gradients[name])
            assert torch.allclose(gradient.double(), exact[name], atol=1e-4 * float(exact[name].abs().max()))


@needs_kernel
def test_numbers_beyond_all_bounds_are_told() -> None:
    task = Facts(S=3, R=2, D=3, T=6)
    model, w = small({"d": 4, "heads": 1, "d_h": 2, "m": 0}, task, 0, torch.float32)
    w["W_O"] *= 1e38
    w["W_V"] *= 1e38
    found = fast_facts.gradients(model, w, task.sample(0, 0, 8), "answer", model.trainable)
    assert np.isnan(found.metrics["loss"])


def test_a_book_knows_everything_and_another_book_nothing() -> None:
    task = Facts(S=16, R=4, D=8, T=12)
    batch = task.sample(3, 0, 2000)
    tokens, answers = batch.tokens, batch.targets[:, -1]
    s, r = tokens[tokens < 16], tokens[(tokens >= 16) & (tokens < 20)] - 16  # one of each in every prompt
    assert np.array_equal(task.book(3).table[s, r], answers)
    assert (task.book(4).table[s, r] == answers).mean() == pytest.approx(1 / 8, abs=0.06)


def test_long_prompts_take_no_more_room_than_the_vocabulary() -> None:
    short, long = (Facts(S=3, R=2, D=3, T=T).bags(0, [0], 8) for T in (100, 20_000))
    assert short.counts is not None
    assert long.counts is not None
    assert short.counts.nbytes == long.counts.nbytes == 8 * 11 * 8
    assert long.counts.sum(1).tolist() == [20_000.0] * 8


def test_matrices_of_other_heads_are_refused() -> None:
    task = Facts(S=3, R=2, D=3, T=6)
    model, w = small({"d": 8, "heads": 2, "d_h": 3, "m": 0}, task, 0, torch.float32)
    other = model.model_copy(update={"heads": 3})
    with pytest.raises(EngramError, match=r"W_Q: must have shape \(9, 8\), since H·d_h = 3·3 and d = 8; got \(6, 8\)"):
        other.forward(w, torch.from_numpy(task.sample(0, 0, 2).tokens))


def test_a_training_wants_the_answers_of_its_task_and_no_other_loss() -> None:
    task = Facts(S=3, R=2, D=8, T=6)  # 16 answers, 11 tokens
    plan = Plan(optimiser=Adam(lr=0.01), steps=2, batch=4, trained=("W_O",), loss="answer")
    assert Train(task=task, model=Factual(answers=16), plan=plan).steps == 2
    with pytest.raises(EngramError, match=r"model.answers: the task has 16 answers to choose from; got 6"):
        Train(task=task, model=Factual(answers=6), plan=plan)
    with pytest.raises(EngramError, match="a task of facts needs loss='answer'"):
        Train(task=task, model=Factual(answers=16), plan=plan.model_copy(update={"loss": "all"}))


@needs_kernel
def test_both_paths_of_a_search_train_alike(home: Path) -> None:
    plan = FreshBatch(rates=(0.003, 0.03), steps=40, batch=32, check_every=20, tests=64)
    spec = Search(
        task=FactsOfSize(D=2, T=6), model=Factual(d=8, heads=2, d_h=3, m=8), plan=plan, target=0.6, bracket=(2, 8)
    )
    fast, slow = (execute(spec, home / path, path=path).rows for path in ("fast", "reference"))
    assert [row["n"] for row in fast] == [row["n"] for row in slow]
    assert [row["accuracy"] for row in fast] == pytest.approx([row["accuracy"] for row in slow], abs=0.05)


def test_more_answers_than_tokens_can_be_trained(home: Path) -> None:
    task = Facts(S=3, R=2, D=8, T=6)
    plan = Plan(optimiser=Adam(lr=0.01), steps=3, batch=16, trained=("W_O", "W_V"), loss="answer")
    record = execute(Train(task=task, model=Factual(d=8, heads=2, d_h=3, m=4, answers=16), plan=plan), home)
    assert {"all.loss", "all.loss.relation", "all.accuracy"} <= set(record.columns)


def test_searches_put_together_what_belongs_together() -> None:
    model, plan = Factual(d=8, heads=2, d_h=3, m=8), FreshBatch()
    with pytest.raises(EngramError, match="belong together"):
        Search(task=Association(), model=model, plan=plan, bracket=(2, 8))
    with pytest.raises(EngramError, match="follows from the size"):
        Search(task=FactsOfSize(), model=Factual(answers=8), plan=plan, bracket=(2, 8))
    with pytest.raises(EngramError, match="scaling='subset'"):
        FactsOfSize(scaling="subset")
    assert len(FactsOfSize(scaling="subset", S=9).of(20).book(0).known) == 20
    assert (FactsOfSize(scaling="R=√S").of(17).R, FactsOfSize(scaling="D=S").of(5).D) == (4, 5)

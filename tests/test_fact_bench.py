"""The facts bench: what the panel shows is what the command line says; interference; facts that join a training."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engram.api import load, recheck
from engram.asking import see_fact
from engram.errors import EngramError
from engram.facts.bench import Bench, interference
from engram.facts.edit import AFTER_STEP
from engram.facts.learn import spec_of_file
from engram.learning import Adam, Plan
from engram.models.factual import Factual, LinearHead
from engram.models.trace import Architecture
from engram.probes.facts import log_probabilities
from engram.records import Record
from engram.records.files import line_of
from engram.records.weights import initial_weights
from engram.runner.execute import execute, fresh_rows, path_of
from engram.specs import Train
from engram.specs.encode import build, decode, encode
from engram.specs.more_facts import AddFacts
from engram.tasks.facts import Facts, FactTask, OwnFacts
from engram.tasks.grown import drawn_facts, grown
from lab import Page, Served

ROWS = (("a", "is", "x"), ("b", "is", "y"), ("c", "is", "z"), ("a", "has", "u"), ("b", "has", "v"))
COUNTRIES = Path(__file__).parent.parent / "examples" / "countries.csv"


def own(*events: AddFacts, steps: int = 14, model: Architecture | None = None, task: FactTask | None = None) -> Train:
    task = task or OwnFacts(facts=ROWS, T=8)
    model = model or Factual(d=8, heads=2, d_h=4, m=8, answers=task.answers)
    plan = Plan(
        optimiser=Adam(lr=0.02),
        steps=steps,
        batch=16,
        trained=getattr(model, "trainable", model.names),
        loss="answer",
        snapshot_every=4,
    )
    return Train(task=task, model=model, plan=plan, events=events)


# What the panel shows


@pytest.fixture(scope="module")
def learned(lab: Served) -> Iterator[Record]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENGRAM_HOME", str(lab.home))
        yield execute(spec_of_file(COUNTRIES, steps=300, width=32), lab.home)


def asked(page: Page, run: str, **fields: Any) -> dict[str, Any]:
    """The table, once all stored steps were looked at."""
    while True:
        page.say("facts", id=7, run=run, look_back=1.0, **fields)
        if not (told := page.hear("facts"))["pending"]:
            return told


def test_the_bench_is_what_fact_see_says(
    page: Page, learned: Record, said: Callable[..., tuple[int, str, str]]
) -> None:
    for step in (100, 300):
        told = asked(page, learned.id, step=step)
        for i in (0, 17, 83):
            of = {name: column[i] for name, column in told["facts"].items()}
            s, r, a = (of[kind] for kind in ("subject", "relation", "answer"))
            out = said("fact", "see", learned.id, s, r, "--all", "--json")[1]
            rows = {row["step"]: row for row in json.loads(out)["beliefs"]}
            row = rows[told["step"]]
            assert of["guess"] == row["guess"]
            assert told["stages"][of["stage"]] == row["stage"]
            assert of["p"] == pytest.approx(row["right"], abs=2e-4)
            assert of["p_relation"] == pytest.approx(row["same relation"], abs=2e-4)
            assert (of["margin"] > 0) == (row["guess"] == a)
            assert [of["after"], of["learned"]] == (first_for_good(rows) or [None, None])


def first_for_good(rows: dict[int, dict[str, Any]]) -> list[int | None] | None:
    """[the stored step before, the first from which it is right to the end], read off the command line."""
    steps = sorted(rows)
    wrong = [i for i, step in enumerate(steps) if rows[step]["stage"] != "right"]
    if wrong and wrong[-1] == len(steps) - 1:
        return None
    return [steps[wrong[-1]], steps[wrong[-1] + 1]] if wrong else [None, steps[0]]


def test_what_is_known_so_far_bounds_when_a_fact_was_learned(page: Page, learned: Record) -> None:
    page.say("facts", id=1, run=learned.id)
    first = page.hear("facts")
    known = asked(page, learned.id)
    bounds = ([told["facts"][name] for name in ("after", "learned")] for told in (first, known))
    for (low, high), (after, by) in zip(*(zip(*of, strict=True) for of in bounds), strict=True):
        if high is not None and by is not None:
            assert (low or 0) <= (after or 0)
            assert by <= high


def test_the_weakest_is_the_learned_fact_with_the_smallest_margin(page: Page, learned: Record) -> None:
    told = asked(page, learned.id)
    right = [told["facts"]["margin"][i] for i, stage in enumerate(told["facts"]["stage"]) if stage == 3]
    assert told["stages"][3] == "right"
    assert told["facts"]["margin"][told["weakest"]] == min(right)
    assert sum(told["facts"]["frequency"]) == pytest.approx(1, abs=1e-3)


def test_runs_that_have_no_facts_say_so(page: Page) -> None:
    run = page.start(**{"plan.steps": 2})
    page.finish(run)
    assert not page.about[run]["facts"]
    for question, more in (("facts", {}), ("fact_edit", {"subject": "a", "relation": "b", "answer": "c"})):
        answer = page.ask(question, run=run, **more)
        assert "is about Bigram, not about facts" in answer["error"]
    assert "no run" in page.ask("facts", run="nobody")["error"]


# Interference


def test_own_part_and_interference_are_the_lead() -> None:
    rng = torch.Generator().manual_seed(0)
    W, keys, c = (torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in ((5, 9), (9, 9), (9, 5)))
    own_part, others = interference(W, keys, c, ridge=0)
    assert torch.allclose(own_part + others, (c * (keys @ W.T)).sum(1), atol=1e-8)


def test_a_hebbian_memory_is_taken_apart_into_what_was_written() -> None:
    """W = Σ v_j k_jᵀ: own c·v_i‖k_i‖², the crosstalk of the others; with orthogonal keys there is none."""
    rng = torch.Generator().manual_seed(1)
    V, keys, c = (torch.randn(*shape, generator=rng, dtype=torch.float64) for shape in ((6, 5), (6, 12), (6, 5)))
    own_part, others = interference(V.T @ keys, keys, c, ridge=1e-9)
    overlaps = keys @ keys.T
    assert torch.allclose(own_part, (c * V).sum(1) * overlaps.diagonal(), rtol=1e-5)
    crosstalk = c @ V.T * overlaps
    assert torch.allclose(others, crosstalk.sum(1) - crosstalk.diagonal(), atol=1e-5)
    orthogonal = torch.linalg.qr(keys.T)[0].T
    assert interference(V.T @ orthogonal, orthogonal, c, ridge=1e-9)[1].abs().max() < 1e-6


def test_before_the_first_step_nothing_is_stored() -> None:
    spec = own()
    w = initial_weights(spec)
    for one in Bench(spec.model, spec.task.book(0), 0).measured(w, w):  # type: ignore[attr-defined]
        assert (one.own, one.interference) == (0, 0)


def test_a_table_that_is_too_large_is_refused() -> None:
    spec = own(model=LinearHead(answers=8 * 100), task=Facts(S=100, R=100, D=8, T=8))
    with pytest.raises(EngramError, match=r"the table has 10000 facts, and at most 5000 .*engram fact see"):
        Bench(spec.model, spec.task.book(0), 0)  # type: ignore[attr-defined]


# Edits


def test_an_edit_tells_which_facts_broke(page: Page, learned: Record) -> None:
    page.say("fact_edit", id=3, run=learned.id, subject="France", relation="capital", answer="Rome")
    told = page.hear("fact_edit")
    assert (told["was"], told["step"], told["learned"]) == ("Paris", 300, 1.0)
    assert sum(one["n"] for one in told["changed"]) == len(told["others"])
    assert told["broke"] == sum(one["broke"] for one in told["others"])
    refused = page.ask("fact_edit", run=learned.id, subject="France", relation="capital", answer="<b>Lyon</b>")
    assert "unknown '<b>Lyon</b>'" in refused["error"]


def test_a_rewritten_fact_is_an_event_that_is_replayed(page: Page, lab: Served, learned: Record) -> None:
    """In the past of a run: the fork has the edit at its step, and goes on."""
    fields = {"subject": "Japan", "relation": "capital", "answer": "Rome"}
    page.say("fact_edit", id=3, run=learned.id, step=210, **fields)
    told = page.hear("fact_edit")
    answer = page.ask("fact_write", run=learned.id, step=210, **fields)
    assert (answer["ok"], answer["step"]) == (True, told["step"]), answer
    page.finish(answer["run"])
    fork = Record(lab.home / answer["run"])
    (event,) = fork.train.events
    assert event.sentence.startswith(f"rewrite (Japan, capital): {told['was']} → Rome in W_F")
    assert recheck(fork, len(fork.rows))["ok"]
    book = learned.train.task.book(0)  # type: ignore[attr-defined]
    names = learned.train.task.names_of(0)  # type: ignore[attr-defined]
    after, before = (
        log_probabilities(fork.train.model, one.model(told["step"]).weights, book.every(0, AFTER_STEP)).argmax(1)
        for one in (fork, learned)
    )
    moved = {
        (names["subject"][s], names["relation"][r], names["answer"][i])
        for (s, r, _), i, j in zip(book.known.tolist(), after.tolist(), before.tolist(), strict=True)
        if i != j and (names["subject"][s], names["relation"][r]) != ("Japan", "capital")
    }
    assert {(o["subject"], o["relation"], o["now"]) for o in told["others"]} == moved


# Facts that join


def test_facts_join_a_run_and_are_learned(page: Page, lab: Served, learned: Record) -> None:
    facts = [["Narnia", "capital", "Rome"], ["France", "capital", "Berlin"], ["<i>x</i>", "currency", "euro"]]
    answer = page.ask("add_facts", run=learned.id, at=100, facts=facts)
    assert answer["ok"], answer
    page.finish(run := answer["run"])
    told = asked(page, run)
    facts = told["facts"]
    narnia = facts["subject"].index("Narnia")
    assert told["stages"][facts["stage"][narnia]] == "right"
    assert facts["learned"][narnia] > 100
    assert len(facts["subject"]) == 86
    page.say("facts", id=1, run=run, step=50)
    assert page.hear("facts")["facts"]["frequency"][narnia] == 0
    assert "add 3 facts: (Narnia, capital) → Rome, (France, capital) → Berlin" in page.about[run]["events"][0]["what"]
    assert recheck(Record(lab.home / run), 10_000)["ok"]
    out = see_fact(run, "Narnia", "capital")
    assert (out[0].answer, out[1][-1][1].words) == ("Rome", "right")


def test_drawn_facts_are_named_in_their_event(page: Page, lab: Served, learned: Record) -> None:
    answer = page.ask("add_facts", run=learned.id, at=299, draw=5)
    page.finish(answer["run"])
    (event,) = Record(lab.home / answer["run"]).train.events
    assert isinstance(event, AddFacts)
    assert len(event.facts) == 5
    for facts, draw in (([], 0), ([["a", "b", "c"]], 3)):
        assert "and not both" in page.ask("add_facts", run=learned.id, at=9, facts=facts, draw=draw)["error"]


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ((("b", "has", "v"),), r"\(b, has\) is v already"),
        ((("b", "has", "x"),), "'x' is not an answer of 'has'"),
        ((("b", "haz", "v"),), "unknown relation 'haz'; did you mean has"),
        ((("b", "has", "w"),), "unknown answer 'w'.*the model has no row for another one"),
        ((("c", "has", " "),), "lacks its subject, relation or answer"),
        ((("d", "has", "u"), ("d", "has", "v")), r"\(d, has\) comes twice"),
        (tuple((f"new{i}", "has", "u") for i in range(9)), "9 new subjects do not fit.* and 4 are to spare"),
    ],
)
def test_facts_that_cannot_join_are_refused_in_words(facts: Any, why: str) -> None:
    with pytest.raises(EngramError, match=why):
        build(
            Train,
            {name: getattr(own(), name) for name in Train.model_fields} | {"events": (AddFacts(step=3, facts=facts),)},
        )


def test_only_tasks_of_facts_grow(tiny: Callable[..., Train]) -> None:
    spec = tiny()
    with pytest.raises(EngramError, match="Bigram is no task of facts"):
        build(
            Train,
            {name: getattr(spec, name) for name in Train.model_fields} | {"events": (AddFacts(step=3, facts=ROWS),)},
        )


MORE = (
    AddFacts(step=4, facts=(("c", "has", "u"), ("d", "is", "x"))),
    AddFacts(step=9, facts=(("e", "is", "y"), ("d", "is", "z"))),
)


def test_a_run_that_grew_has_the_rows_of_its_spec(home: Path) -> None:
    """And those before are the rows of a run that did not grow."""
    spec = own(*MORE)
    rows = execute(spec, home).rows
    assert rows == [json.loads(line_of(row)) for row in fresh_rows(spec, path_of(spec))]
    assert rows[:4] == execute(own(), home).rows[:4]
    assert decode(json.loads(json.dumps(encode(spec)))) == spec
    grew = spec.at(14).task.names_of(0)  # type: ignore[attr-defined]
    assert grew["subject"] == ["a", "b", "c", "d", "e"]


def test_words_of_old_facts_stay_what_they_were() -> None:
    """New subjects are tokens that were noise; all others are seen as before."""
    task = OwnFacts(facts=ROWS, T=8)
    once = grown(task, (("d", "is", "x"),))
    twice = grown(once, (("e", "is", "y"), ("a", "has", "v")))
    old, new = task.book(0), twice.book(0)
    assert (twice.N, twice.answers, new.noise) == (task.N, task.answers, old.noise - 2)
    tokens = new.every(3, 5)
    for (s, r, _), prompt in zip(new.known.tolist(), tokens, strict=True):
        assert new.wired(np.array([s]))[0] in prompt
        assert old.S + r in prompt
        assert prompt[-1] == old.EOS
    assert new.wired(np.array([3]))[0] == once.book(0).wired(np.array([3]))[0] == old.EOS - 1
    assert sorted(new.wired(np.arange(new.N)).tolist()) == list(range(old.N))
    assert twice.marks(0)[: old.S + old.R] == task.marks(0)[: old.S + old.R]
    assert twice.marks(0)[old.EOS - 1] == "d"
    assert new.table[0, 1] == task.names["answer"].index("v")
    assert np.isclose(new.p.sum(), 1)


@pytest.mark.parametrize("T", [4, 9, 60])
def test_bags_of_a_grown_table_are_its_prompts(T: int) -> None:
    task = grown(OwnFacts(facts=ROWS, T=T), (("d", "is", "x"),))
    prompts, bags = task.sample(1, 3, 50), task.bags(1, [3], 50)
    counts = np.stack([np.bincount(row, minlength=task.N) for row in prompts.tokens])
    of_bags = bags.counts if bags.tokens is None else [np.bincount(row, minlength=task.N) for row in bags.tokens]
    assert np.array_equal(counts, of_bags)  # type: ignore[arg-type]


@pytest.mark.parametrize("task", [Facts(S=5, R=3, D=4, T=9), grown(OwnFacts(facts=ROWS, T=9), (("d", "is", "x"),))])
def test_prompts_about_each_are_those_about_one(task: FactTask) -> None:
    book = task.book(0)
    every = book.about_each(book.known, 2, 7, 6)
    for (s, r, _), prompts in zip(book.known.tolist(), every, strict=True):
        assert np.array_equal(prompts, book.about(s, r, 2, 7, 6))


def test_drawn_facts_that_were_left_out_come_with_their_own_answers() -> None:
    whole, part = (Facts(S=6, R=4, D=5, facts=n).book(0).table for n in (None, 15))
    task = Facts(S=6, R=4, D=5, facts=15)
    found, names = drawn_facts(task, 0, 12), task.names_of(0)
    assert len(set(found)) == 12
    for s, r, a in found[:9]:
        at = names["subject"].index(s), names["relation"].index(r)
        assert part[at] == -1
        assert whole[at] == names["answer"].index(a)
    assert {s for s, _, _ in found[9:]} == {"new1"}
    assert found == drawn_facts(task, 0, 12)
    steered = own(AddFacts(step=2, facts=found), task=task, model=Factual(d=8, heads=2, d_h=4, m=8, answers=20))
    assert len(steered.at(2).task.book(0).known) == 27  # type: ignore[attr-defined]


def test_loading_by_name_finds_joined_facts(home: Path) -> None:
    run = execute(own(*MORE), home).id
    assert load(run).train.at(14).task.N == own().task.N

"""Facts of one's own: learned from a CSV file, answered by name, seen being learned, rewritten."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engram.api import load, recheck
from engram.asking import edit_fact, keep_edit, learn_facts, see_fact
from engram.errors import EngramError
from engram.facts.ask import Asked
from engram.models.factual import Factual, LinearHead, SoftmaxHead
from engram.records import Record
from engram.tasks.facts import Facts

COUNTRIES = Path(__file__).parent.parent / "examples" / "countries.csv"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Record:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENGRAM_HOME", str(tmp_path_factory.mktemp("facts")))
        return learn_facts(COUNTRIES, steps=600)


@pytest.fixture
def at_home(learned: Record, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.setenv("ENGRAM_HOME", str(learned.folder.parent))
    return learned


def test_real_facts_are_all_learned_and_answered_by_name(at_home: Record) -> None:
    assert at_home.rows[-1]["all.accuracy"] == 1.0
    for country, capital in (("France", "Paris"), ("Japan", "Tokyo"), ("Brazil", "Brasília")):
        asked, beliefs, _ = see_fact(at_home.id, country, "capital")
        assert asked.answer == capital
        assert asked.names["answer"][beliefs[-1][1].guess] == capital
        assert beliefs[-1][1].words == "right"


def test_the_figure_of_a_fact_is_written(at_home: Record) -> None:
    _, beliefs, figures = see_fact(at_home.id, "Italy", "currency")
    assert {path.suffix for path in figures} >= {".png", ".pdf", ".svg", ".csv"}
    assert all(path.exists() for path in figures)
    steps = [step for step, _ in beliefs]
    assert steps[0] == 0
    assert steps[-1] == 600
    assert all(belief.right + belief.relation + belief.rest == pytest.approx(1) for _, belief in beliefs)


def test_unknown_names_are_told(at_home: Record) -> None:
    with pytest.raises(EngramError, match=r"subject: unknown 'Frence'.*France"):
        Asked.of(at_home, "Frence", "capital")
    with pytest.raises(EngramError, match="relation: unknown 'river'"):
        Asked.of(at_home, "France", "river")


def test_a_fact_is_rewritten_and_few_others_move(at_home: Record) -> None:
    asked, found = edit_fact(at_home.id, "France", "capital", "Rome")
    assert asked.answer == "Paris"
    assert found.learned == 1.0
    assert {kind: of for kind, (_, of) in found.changed.items()} == {
        "same subject": 1,
        "same relation": 41,
        "neither": 41,
    }
    assert sum(n for n, _ in found.changed.values()) <= 8
    before = at_home.model().weights[found.matrix].double()
    assert int(torch.linalg.matrix_rank(found.weights[found.matrix] - before)) == 1


@pytest.mark.parametrize(
    "model",
    [Factual(d=8, heads=2, d_h=3, m=5, answers=6), Factual(d=8, heads=2, d_h=3, m=0, answers=6),
     LinearHead(answers=6, alpha=0.3), SoftmaxHead(answers=6, d=8)],
    ids=["mlp", "attention", "linear", "softmax"],
)  # fmt: skip
def test_the_last_store_is_what_the_logits_read(model: Factual | LinearHead | SoftmaxHead) -> None:
    task = Facts(S=3, R=2, D=3, T=6)
    w = {name: value.double() for name, value in model.init(task.N, task.T, 0).items()}
    tokens = torch.from_numpy(task.sample(0, 0, 9).tokens)
    name, keys = model.last_store(w, tokens)
    change = torch.randn(w[name].shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    before, after = (model.forward(v, tokens).logits[:, -1] for v in (w, w | {name: w[name] + change}))
    readout = w.get("U", torch.eye(6, dtype=torch.float64))
    assert torch.allclose(after - before, keys @ change.T @ readout.T, atol=1e-12)


def test_the_command_line_sees_and_edits(at_home: Record, said: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = said("fact", "see", at_home.id, "Japan", "currency")
    assert code == 0
    assert "(Japan, currency) is yen in the table" in out
    code, out, _ = said("fact", "edit", at_home.id, "Japan", "capital", "Seoul", "--json")
    assert code == 0
    assert json.loads(out)["learned"] == 1.0
    assert said("fact", "edit", at_home.id, "Japan", "capital", "Tokyo")[2].startswith(
        "engram: (Japan, capital) is already Tokyo"
    )


def test_the_facts_that_an_edit_changed_are_named(at_home: Record, said: Callable[..., tuple[int, str, str]]) -> None:
    """All of them with --json, five of them to a person."""
    words = ("fact", "edit", at_home.id, "France", "capital", "Rome")
    answer, told = json.loads(said(*words, "--json")[1]), said(*words)[1]
    others = answer["others"]
    assert len(others) == sum(row["changed"] for row in answer["changed"])
    assert all(re.fullmatch(r"\(.+, (capital|currency)\)", one["fact"]) for one in others)
    assert all(one["was"] != one["now"] for one in others)
    lines = [f"  {one['fact']}: {one['was']} → {one['now']}" for one in others]
    assert [line for line in told.splitlines() if line in lines] == lines[:5]


def test_an_unknown_answer_says_what_to_do(at_home: Record) -> None:
    with pytest.raises(EngramError, match=r"answer: unknown 'Lyon'; .*of capital: Paris, Berlin, .*engram fact learn"):
        edit_fact(at_home.id, "France", "capital", "Lyon")
    with pytest.raises(EngramError, match=r"answer: unknown 'rome'; did you mean Rome\?"):
        edit_fact(at_home.id, "France", "capital", "rome")


def test_an_edited_model_is_kept_and_edited_again(at_home: Record, said: Callable[..., tuple[int, str, str]]) -> None:
    """As a fork that takes no step: the same rows up to its end, the new answer there, and the way back."""
    code, out, _ = said("fact", "edit", at_home.id, "France", "capital", "Rome", "--keep", "--json")
    kept = load(json.loads(out)["run"])
    assert (code, kept.finished, kept.id != at_home.id) == (0, True, True)
    assert kept.rows[:-1] == at_home.rows[:-1]
    clocks = [(record.folder / "timing.jsonl").read_text().splitlines()[:600] for record in (at_home, kept)]
    assert clocks[0] == clocks[1]  # nothing was trained again
    asked, beliefs, _ = see_fact(kept.id, "France", "capital")
    assert [asked.names["answer"][belief.guess] for _, belief in beliefs[-2:]] == ["Paris", "Rome"]
    code, out, _ = said("fact", "see", kept.id, "France", "capital")
    assert "(France, capital) is Paris in the table\nstep 600: rewrite (France, capital): Paris → Rome in W_F" in out
    _, back = edit_fact(kept.id, "France", "capital", "Paris")
    assert (back.was, back.learned) == ("Rome", 1.0)
    assert at_home.model().weights["W_F"].equal(load(at_home.id).model().weights["W_F"])


def test_a_kept_edit_is_the_training_that_its_spec_describes(at_home: Record) -> None:
    asked, found = edit_fact(at_home.id, "Italy", "currency", "yen")
    kept = keep_edit(asked, found)
    assert kept.train.events == (found.change,)
    assert recheck(kept, steps=1)["ok"]
    changed = kept.model().weights["W_F"].double()
    assert torch.allclose(changed, found.weights["W_F"], atol=1e-5)


def test_before_training_the_calculator_is_asked(
    tmp_path: Path, home: Path, said: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("Subject;Relation;Answer\na;is;x\nb;is;y\na;has;u\nb;has;v\n")
    code, out, err = said("fact", "learn", str(path), "--steps", "2")
    assert code == 0
    assert err.startswith("4 facts: 2 subjects, 2 relations, 4 answers\n4 facts in a one-layer transformer:\n")
    assert "\nto train  d = 8, 8 heads of width 1, MLP of 8 units (384 parameters), proposed for 8 times" in err
    assert err.index("to train") < err.index("facts of mine.csv, 1 run")
    assert out.startswith("4 facts, ")
    err = said("fact", "learn", str(path), "--steps", "2", "--width", "16", "--json")[2]
    assert "parameters 1,536: it fits" in err
    assert "(1,536 parameters), as you said; 2 steps" in err


def test_a_bad_file_is_told_by_line(tmp_path: Path, said: Callable[..., tuple[int, str, str]]) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("subject,relation,answer\nFrance,capital,Paris\nFrance,capital,Lyon\n")
    code, _, err = said("fact", "learn", str(path))
    assert code == 2
    assert "line 3 (France, capital, Lyon): contradicts line 2; keep one" in err
    path.write_text("subject,relation,answer\n")
    assert said("fact", "learn", str(path))[0] == 2

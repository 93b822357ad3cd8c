"""What Python users reach for: text in and out, causal tools, tables, short reprs, displays in a notebook."""

import re
import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from types import FunctionType

import matplotlib
import numpy as np
import pytest
import torch

import engram
from engram.claims import Claim, Measure
from engram.errors import EngramError
from engram.experiments import find
from engram.memory.stored import Stored
from engram.models import Model, Simplified
from engram.models.own_network import network_of
from engram.probes.causal import patch
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from engram.tasks import Bigram, Hops
from engram.tasks.text import decode, encode

ROOT = Path(__file__).parent.parent
LISTED, NOTEBOOK = ROOT / "docs" / "python.md", ROOT / "examples" / "notebook.py"


@pytest.fixture
def record(tiny: Callable[..., Train], home: Path) -> Record:
    return execute(tiny(), home)


def test_text_is_encoded_and_decoded_by_the_task() -> None:
    task = Bigram()
    ids = encode(task, "hello")
    assert [task.alphabet[z] for z in ids] == list("hello")
    assert decode(task, ids) == "hello"
    hops = Hops(letters=4, length=8, most=2)
    assert decode(hops, encode(hops, "2 a b c a")) == "2 a b c a"


@pytest.mark.parametrize(
    ("task", "text", "why"),
    [
        (Bigram(), "é", "'é' is not in the vocabulary"),
        (Bigram(), "", "at least one"),
        (Hops(length=8), "2 x", "'x' is not in the vocabulary"),
        (Bigram(T=4), "hello", "at most 4 tokens"),
    ],
)
def test_text_that_a_task_cannot_read_is_refused(task: Bigram | Hops, text: str, why: str) -> None:
    with pytest.raises(EngramError, match=why):
        encode(task, text)


def test_a_model_of_a_record_reads_text(record: Record) -> None:
    model = record.model()
    assert torch.equal(model("hello").logits, model(record.encode("hello")).logits)
    assert record.decode(record.encode("hello")) == "hello"


def test_text_needs_a_task() -> None:
    model = Simplified(d=8)
    with pytest.raises(EngramError, match="no task"):
        Model(model, model.init(5, 4, 0))("hello")


def test_without_a_matrix_and_without_a_head(record: Record) -> None:
    model = record.model()
    assert torch.equal(model.without("W_O2").weights["W_O2"], torch.zeros_like(model.weights["W_O2"]))
    silent = model.ablate(2, 1)("hello")
    assert float(silent.written["head2"].abs().max()) == 0
    with pytest.raises(EngramError, match=r"w_o2: no such matrix; did you mean W_O2\? allowed: "):
        model.without("w_o2")
    with pytest.raises(EngramError, match=r"W_02: no such memory; did you mean W_O2\? allowed: W_O2, "):
        model.memories["W_02"]
    assert repr(model.without("W_O2").ablate(1, 1)).endswith("; without W_O2, head 1 of layer 1>")
    with pytest.raises(EngramError, match="layer 3, head 1: no such head"):
        model.ablate(3, 1)


def test_a_patched_run_is_the_source_where_everything_is_patched(record: Record) -> None:
    """The stream that enters layer 2, taken from another text or model, makes this model answer as that one."""
    model, other = record.model(), record.model(0)
    mine, theirs = record.encode("hello ther"), record.encode("a rose is ")
    assert torch.allclose(patch(model, mine, [("resid", 2)], source_tokens=theirs), model(theirs).logits, atol=1e-6)
    assert torch.equal(patch(model, mine, [("head", 1)]), network_of(model).stream(mine))
    text = patch(model, "hello ther", [("resid", 2)], source_tokens="a rose is ")
    assert torch.equal(text, patch(model, mine, [("resid", 2)], source_tokens=theirs))
    with pytest.raises(EngramError, match="a Network reads no text"):
        patch(network_of(model), "hello", [("head", 1)])
    crossed = patch(model, mine, [("head", 1)], source=other)
    assert not torch.allclose(crossed, model(mine).logits, atol=1e-6)


def test_memories_of_a_model_are_those_of_its_record(record: Record) -> None:
    by_name = record.model().memories
    assert list(by_name) == [stored.name for stored in record.memories()]
    assert all(torch.equal(by_name[stored.name].W, stored.W) for stored in record.memories())


def test_a_frame_has_every_row_and_column(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = record.frame()
    assert next(iter(frame)) == "step"
    assert len(frame["step"]) == len(record.rows)
    for name in record.columns:
        np.testing.assert_array_equal(np.asarray(frame[name]), record.column(name))
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(record.frame(), dict)
    assert re.fullmatch(r"<\d+ rows of \d+ columns: step, loss, .*; with pandas .*>", repr(record.frame()))


def test_run_takes_a_spec_and_a_list(tiny: Callable[..., Train], home: Path) -> None:
    spec = tiny(steps=2)
    record = engram.run(spec)
    assert isinstance(record, Record)
    assert record.finished
    assert [one.id for one in engram.run([spec])] == [record.id]
    with pytest.raises(EngramError, match="an experiment's name, a Spec"):
        engram.run([])


def test_reprs_are_short(record: Record) -> None:
    model = record.model()
    for thing in (record, record.table, model, model("hello"), *record.memories()):
        assert len(repr(thing)) < 150, repr(thing)
        assert "tensor(" not in repr(thing)


def test_a_result_says_verdicts_and_what_it_holds(home: Path) -> None:
    said = repr(engram.run("memory.margin", scale="smoke"))
    assert said.startswith("<Result of memory.margin, smoke scale: .records 2, .figures ")
    assert all(len(line) < 120 for line in said.splitlines())
    assert len(said.splitlines()) == 1 + len(find("memory.margin").statements)


def test_a_record_says_what_it_is_and_completes_what_users_need(record: Record) -> None:
    assert repr(record).startswith(f"<Record {record.id}: ")
    assert "finished; accuracy.in_context " in repr(record)
    assert {"column", "frame", "model", "memories", "spec"} <= set(dir(record))
    assert not {"is_plain", "may_run", "sealed", "stale", "texts", "trust", "of", "place"} & set(dir(record))


def test_the_likeliest_tokens_have_their_letters(record: Record) -> None:
    trace = record.model()("hello")
    (first, p), *others = trace.top(5)
    assert first == record.decode([int(trace.logits[0, -1].argmax())]).replace(" ", "␣").replace("\n", "⏎")
    assert 0 < others[-1][1] <= p < 1
    assert len(others) == 4
    model = Simplified(d=8)
    assert all(mark.isdecimal() for mark, _ in Model(model, model.init(5, 4, 0))([1, 2]).top(3))


def test_signatures_and_answers_can_be_read() -> None:
    assert "<function" not in str(signature(engram.run))
    assert len(str(signature(engram.run))) < 600
    for name in signature(engram.run).parameters:
        assert re.search(rf"^    {name} ", engram.run.__doc__ or "", re.M), name
    assert repr(engram.predict("hebb", pairs=1000)).startswith("1,000 pairs in a Hebbian matrix")
    assert repr(engram.predict("zipf", alpha=2, samples=100)).startswith("1,000 tokens with p(z)")


def test_errors_speak_of_parameters_not_of_options() -> None:
    for call in (engram.run, engram.figure):
        with pytest.raises(EngramError, match=r"^scale 'big': the allowed scales are"):
            call("birth.joint", scale="big")
    with pytest.raises(EngramError, match=r"^scale 'big'"):
        engram.sweep("birth.joint", {"task.K": [1]}, scale="big")


def test_a_sweep_is_a_table_and_a_picture(tiny: Callable[..., Train], home: Path) -> None:
    swept = engram.sweep(tiny(steps=2), {"task.K": [1, 2]}, seeds=3)
    assert [line["task.K"] for line in swept.table] == [1, 2]
    assert {"loss", "loss, low", "loss, high", "seeds"} <= set(swept.table[0])
    assert list(swept.frame()["task.K"]) == [1, 2]
    assert len(repr(swept).splitlines()) == 4
    assert '<img alt="figure: sweep of' in swept._repr_html_()


def test_births_are_the_first_steps_above_a_level(record: Record) -> None:
    births = record.births(level=-1.0)
    assert births == {name.removeprefix("recall."): 0 for name in record.columns if name.startswith("recall.")}
    assert record.births(2.0) == dict.fromkeys(births)
    assert record.births()["W_O2"] == record.birth("recall.W_O2")


def test_everything_public_is_listed_and_described() -> None:
    page = LISTED.read_text()
    assert set(engram.__all__) <= set(dir(engram))
    assert [name for name in engram.__all__ if f"`engram.{name}" not in page] == []
    described = [name for name in engram.__all__ if isinstance(getattr(engram, name), type | FunctionType)]
    assert [name for name in described if not getattr(engram, name).__doc__] == []


def test_displays_of_a_notebook(record: Record) -> None:
    """HTML with a picture; nothing in it is taken for markup that a record could have brought along."""
    claim = Claim("a.b", "x < y", "here", (Measure.over_seeds("loss", [1.0, 1.1, 1.2], low=0.5),))
    stored: Stored = record.memories()[0]
    result = engram.run("memory.margin", scale="smoke")
    for thing in (record, record.model(), stored, record.model()("hello"), result):
        html = thing._repr_html_()
        assert re.search(r'<img alt="[^"]+" [^>]*src="data:image/png;base64,', html)
    assert "x &lt; y" in claim._repr_html_()
    assert "agrees" in claim._repr_html_()


def test_the_notebook_runs_from_its_first_cell_to_its_figure(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With fewer steps; in the order in which a reader runs the cells."""
    matplotlib.use("agg")
    text = NOTEBOOK.read_text()
    cells = [cell for cell in text.split("# %%")[1:] if not cell.startswith(" [markdown]")]
    assert len(cells) == 10
    assert "steps=300" in cells[0]
    assert "seeds=2" in cells[7]
    small = text.replace("steps=300", "steps=6").replace("seeds=2", "seeds=1").replace("[32, 64, 128]", "[16]")
    exec(compile(small, str(NOTEBOOK), "exec"), {"__name__": "__main__"})
    assert Path("memories.pdf").stat().st_size > 1000
    assert "without W_O2" in capsys.readouterr().out

"""`engram probe`: on folders and on runs, in JSON and as a page; what cannot be done is said in one line."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import engram
from engram.claims import checks
from engram.cli.envelopes import ANSWERS
from engram.errors import EngramError
from engram.runner.execute import execute
from engram.show.probe_page import page
from engram.specs import Train
from llamas import LLAMA, llama_tensors
from networks import CONFIG, tensors, write_folder
from planted_heads import INDUCTION, PREVIOUS, planted

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    """A made-up Llama whose six heads share two groups of keys and values."""
    config = LLAMA | {"vocab_size": 40}
    return write_folder(tmp_path / "llama", config, llama_tensors(config))


@pytest.fixture
def trunk(tmp_path: Path) -> Path:
    """A GPT-2 without an output matrix."""
    config = CONFIG | {"vocab_size": 40, "n_positions": 24}
    return write_folder(tmp_path / "trunk", config, tensors(config))


def test_all_parts_find_a_planted_circuit() -> None:
    found = engram.probe(planted(), seeds=2)
    assert found.composition
    assert found.ablation
    assert found.copying
    assert found.lens
    (_, reader), best = found.composition.partners, found.composition.partners[0]
    assert (best.reader, best.best) == (INDUCTION, PREVIOUS)
    assert reader.reader == (2, 2)
    cut = {one.writer: one for one in found.composition.cuts}
    assert cut[PREVIOUS].induction[INDUCTION] < 0.1 < 0.9 < found.scores.mean("induction")[INDUCTION]
    assert max(found.ablation.left) < 0.1 < 0.9 < min(found.ablation.left_random)
    assert set(found.ablation.heads) == {(INDUCTION,)}
    assert found.copying.recall[INDUCTION][0] > 0.9
    assert found.lens.losses[-1][1] < 0.5


def test_heads_that_share_keys_are_probed_one_by_one(llama: Path) -> None:
    """A network with its groups written out has the same scores, partners and copies."""
    config = LLAMA | {"vocab_size": 40}
    weights = llama_tensors(config)
    for name in (name for name in weights if "k_proj" in name or "v_proj" in name):
        shared = weights[name].reshape(2, 4, 24)  # groups, d_h, d
        weights[name] = np.repeat(shared, 3, axis=0).reshape(24, 24)
    written_out = write_folder(llama.parent / "all", config | {"num_key_value_heads": 6}, weights)
    one, other = (engram.probe(where, seeds=1) for where in (llama, written_out))
    assert one.subject.network.sizes.groups == 2
    for kind in ("previous", "induction"):
        assert one.scores.mean(kind) == pytest.approx(other.scores.mean(kind), abs=1e-6)
    assert one.composition
    assert other.composition
    assert one.copying
    assert other.copying
    assert [p.recalls for p in one.composition.partners] == [p.recalls for p in other.composition.partners]
    assert one.copying.score == pytest.approx(other.copying.score, abs=1e-5)


def test_the_command_answers_in_json(said: Said, llama: Path, tmp_path: Path) -> None:
    report = tmp_path / "page.html"
    code, out, err = said("probe", str(llama), "--seeds", "2", "-o", str(report), "--json")
    assert code == 0, err
    ANSWERS["probe"].model_validate_json(out)
    found = json.loads(out)
    assert found["report"] == str(report)
    assert [row["head"] for row in found["heads"]][:2] == ["L1H1", "L1H2"]
    assert len(found["heads"]) == 18
    assert len(found["lens"]) == 4
    assert "llama" in report.read_text()
    assert "heads: 2 seeds" in err


def test_the_same_probes_on_a_run(said: Said, home: Path, tiny: Callable[..., Train]) -> None:
    record = execute(tiny(), home)
    code, out, err = said("probe", record.id, "heads", "lens", "--seeds", "1", "--prompt", "hello")
    assert code == 0, err
    assert "L2H1" in out
    assert "share of tokens recalled" not in out
    assert "no other heads" in said("probe", record.id, "ablation", "--seeds", "1")[1], (
        "one head a layer: none is random"
    )
    assert engram.probe(record, "heads", seeds=1).provenance.name == record.id


def test_a_trunk_has_heads_and_composition_only(said: Said, trunk: Path) -> None:
    code, out, err = said("probe", str(trunk), "--seeds", "1")
    assert code == 0, err
    assert "no output matrix U" in out
    assert json.loads(said("probe", str(trunk), "--seeds", "1", "--json")[1])["losses"] == {
        "first": [None],
        "repeat": [None],
    }


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--prompt", "hello"], "has no tokenizer"),
        (["hedas"], "no part 'hedas'; did you mean heads"),
        (["--seeds", "0"], "seeds"),
        (["--start", "99"], "must be one token, as text or as a number from 0 to 39"),
        (["--start", "hello"], "must be one token"),
        (["-o", "."], "is a folder"),
    ],
)
def test_what_cannot_be_done_is_said(said: Said, llama: Path, words: list[str], why: str) -> None:
    code, _, err = said("probe", str(llama), *words)
    assert code == 2
    assert why in err.splitlines()[-1]


def test_unknown_models_are_named(said: Said, home: Path) -> None:
    code, _, err = said("probe", "smollm3")
    assert (code, err.count("\n")) == (2, 1)
    assert "no folder, no file, none of smollm2, and no run" in err
    assert "--yes" in said("probe", "some/where")[2]  # nothing is fetched from the hub unasked


def test_a_prompt_longer_than_the_context_is_refused(home: Path, tiny: Callable[..., Train]) -> None:
    record = execute(tiny(), home)
    with pytest.raises(EngramError, match="at most"):
        engram.probe(record, "heads", seeds=1, prompt="a" * 1000)


def test_a_context_in_which_nothing_comes_twice_is_refused(tmp_path: Path) -> None:
    config = CONFIG | {"n_positions": 5}
    folder = write_folder(tmp_path / "short", config, tensors(config))
    with pytest.raises(EngramError, match="nothing comes twice in short, whose context is 5"):
        engram.probe(folder)


def test_hostile_names_are_text_on_the_page(tmp_path: Path) -> None:
    config = LLAMA | {"vocab_size": 40}
    folder = write_folder(tmp_path / "<img src=x onerror=alert(1)>", config, llama_tensors(config))
    found = engram.probe(folder, "heads", seeds=1, report=tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    assert html == page(found)
    assert "<img" not in html
    assert "&lt;img src=x" in html
    assert html.count("<script>") == html.count("</script>") == 1


def test_a_run_of_another_kind_of_model_is_named_as_what_it_is(said: Said, home: Path, llama: Path) -> None:
    record = execute(checks("real.stand_in_dropped", [0], first=1, last=1)[0], home)
    code, _, err = said("probe", record.id)
    assert (code, err) == (2, f"engram: probe: {record.id} is no training, and has no model\n")

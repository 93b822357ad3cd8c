"""The lab on a model of others: heads, composition, truncation and edits over the protocol, and in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Metaspace

from engram.lab.watched_model import WatchedModel
from engram.probing import probe
from lab import Page, Served, served
from llamas import LLAMA, llama_tensors
from networks import write_folder
from pages import opened, wait

WORDS = [
    "<|endoftext|>",
    *(f"▁{w}" for w in ["the", "capital", "of", "France", "is", "Paris", "Rome", "a", "big", "city"]),
]
CONFIG = LLAMA | {"vocab_size": len(WORDS), "max_position_embeddings": 64, "bos_token_id": 0}
PROMPT = "the capital of France is"


def folder_of(place: Path, seed: int = 0) -> Path:
    """A Llama with random weights that speaks eleven words."""
    found = write_folder(place, CONFIG, llama_tensors(CONFIG, seed))
    words = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="▁a"))
    words.pre_tokenizer = Metaspace()  # type: ignore[assignment]
    words.save(str(found / "tokenizer.json"))
    return found


@pytest.fixture
def text(tmp_path: Path) -> Path:
    spoken = [word.lstrip("▁") for word in WORDS[1:]]
    path = tmp_path / "text.txt"
    path.write_text(" ".join(np.random.default_rng(0).choice(spoken, 64 * 40)))
    return path


@pytest.fixture
def model(tmp_path: Path, text: Path) -> WatchedModel:
    return WatchedModel(str(folder_of(tmp_path / "tiny")), text=text)


@pytest.fixture
def lab_of_model(home: Path, model: WatchedModel) -> Iterator[Served]:
    with served(home, model=model) as lab:
        yield lab


def asked(page: Page, t: str, **fields: Any) -> dict[str, Any]:
    """The answer to a question about the model, or why it is refused."""
    page.say(t, id=7, run="model:tiny", **fields)
    while True:
        told = page.hear_any()
        if told.get("id") == 7:
            return told


def test_scores_are_those_of_the_probe(lab_of_model: Served, tmp_path: Path) -> None:
    with lab_of_model.page() as page:
        told, composed, copied = (asked(page, t) for t in ("heads", "compose", "copying"))
    whole = probe(str(tmp_path / "tiny"), seeds=3).to_json()
    assert told["heads"] == whole["heads"]
    assert {name: composed[name] for name in ("readers", "keys_without")} == {
        name: whole["composition"][name] for name in ("readers", "keys_without")
    }
    assert copied["scores"] == whole["copying"]["scores"]


def test_an_edit_is_in_force_until_it_is_undone(lab_of_model: Served) -> None:
    with lab_of_model.page() as page:
        before = asked(page, "heads")
        done = asked(page, "edit", prompt=PROMPT, answer="Rome")
        assert done["after"]["p_new"] > done["before"]["p_new"]
        (edit,) = done["edits"]
        assert (edit["prompt"], edit["answer"]) == (PROMPT, "Rome")
        with_it = asked(page, "truncate", layer=3, matrix="Q", share=1.0, prompt=PROMPT, answer="Rome")
        assert with_it["before"]["p_answer"] == pytest.approx(done["after"]["p_new"], rel=1e-4)
        assert asked(page, "undo", edit=edit["edit"])["edits"] == []
        assert asked(page, "heads")["heads"] == before["heads"]
        assert "none of the edits in force" in asked(page, "undo", edit=edit["edit"])["error"]


def test_truncation_keeps_a_share_of_singular_values(lab_of_model: Served) -> None:
    about = {"layer": 2, "matrix": "F", "prompt": PROMPT, "answer": "Paris", "rival": "Rome"}
    with lab_of_model.page() as page:
        all_of_it, none = (asked(page, "truncate", share=share, **about) for share in (1.0, 0.0))
    assert (none["rank"], all_of_it["rank"]) == (0, all_of_it["of"])
    assert all_of_it["after"]["p_answer"] == pytest.approx(all_of_it["before"]["p_answer"], rel=1e-3)
    assert none["after"]["p_answer"] != pytest.approx(none["before"]["p_answer"], rel=1e-3)
    assert none["loss"][0] == all_of_it["loss"][0] != none["loss"][1]


@pytest.mark.parametrize(
    ("t", "fields", "why"),
    [
        ("truncate", {"layer": 9, "matrix": "F", "share": 0.5, "prompt": PROMPT, "answer": "Paris"}, "layers 1 to 3"),
        ("edit", {"prompt": PROMPT, "answer": "big city"}, "is 2 tokens"),
        ("edit", {"prompt": "a " * 80, "answer": "Rome"}, "reads at most 64"),
        ("edit", {"prompt": " ", "answer": "Rome"}, "prompt: it is empty"),
        ("heads", {"run": "nobody"}, "no run 'nobody' here"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(lab_of_model: Served, t: str, fields: Any, why: str) -> None:
    with lab_of_model.page() as page:
        page.say(t, **({"id": 7, "run": "model:tiny"} | fields))
        while (told := page.hear_any()).get("id") != 7:
            pass
    assert told["ok"] is False
    assert why in told["error"]


def test_attention_of_one_head_on_a_text_and_no_unknown_one(lab_of_model: Served) -> None:
    with lab_of_model.page() as page:
        tokens = page.ask("tokens", run="model:tiny", text=PROMPT)["tokens"]
        page.say("view", run="model:tiny", pictures=["attention:2.4"], tokens=tokens, reads=True)
        reading = page.hear("reading")
        header, values = page.frames[-1]
        assert [mark[1:] for mark in reading["marks"]][1:] == PROMPT.split()
        assert header["picture"] == "attention:2.4"
        assert values.sum(axis=1) == pytest.approx(1, abs=0.02)
        page.say("view", run="model:tiny", pictures=["attention:9.9"], reads=False)
        assert "no picture 'attention:9.9'" in page.hear("error")["message"]


def test_revisions_are_steps(tmp_path: Path, home: Path) -> None:
    """The scrubber goes over them, and each has scores of its own."""
    for step in (0, 2, 10):
        folder_of(tmp_path / "series" / f"step{step}", seed=step)
    with served(home, model=WatchedModel(str(tmp_path / "series"))) as lab, lab.page() as page:
        page.say("view", run="model:series", hz=20.0)
        while len(page.rows.get("model:series", {})) < 3:
            page.hear("rows")
        assert page.state["snapshots"] == [0, 2, 10]
        page.say("heads", id=1, run="model:series", step=5)
        at_two = page.hear("heads")
    own = probe(str(tmp_path / "series" / "step2"), "heads", seeds=3).to_json()
    assert (at_two["step"], at_two["heads"]) == (2, own["heads"])


def test_a_head_is_clicked_and_a_fact_edited(browser: Browser, lab_of_model: Served) -> None:
    with opened(browser, f"{lab_of_model.url}#run=model:tiny") as page:
        page.get_by_test_id("induction-L3H5").click()
        wait(lambda: page.evaluate("window.engramLab.drawn('attention:3.5')"))
        expect(page.get_by_test_id("head-told")).to_contain_text("layer 3, head 5")
        page.get_by_test_id("sequence-input").fill(PROMPT)
        wait(lambda: (page.evaluate("window.engramLab.drawn('attention:3.5')") or {}).get("shape") == [6, 6])
        page.get_by_test_id("edit-prompt").fill(PROMPT)
        page.get_by_test_id("edit-answer").fill("big city")
        page.get_by_test_id("edit").click()
        expect(page.get_by_test_id("edit-wrong")).to_contain_text("is 2 tokens")
        page.get_by_test_id("edit-answer").fill("Rome")
        page.get_by_test_id("edit").click()
        expect(page.get_by_test_id("edits")).to_contain_text("Rome")
        expect(page.get_by_test_id("provenance")).to_contain_text("1 edit in force")
        page.get_by_test_id("undo-1").click()
        expect(page.get_by_test_id("no-edits")).to_be_visible()
        expect(page.get_by_test_id("provenance")).not_to_contain_text("in force")

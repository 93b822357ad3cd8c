"""`engram fact edit --model` and `engram probe MODEL laser` on a made-up GPT-2 that reads words; what they refuse."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save
from tokenizers import Tokenizer, models, pre_tokenizers

from engram.adapters import read_model
from engram.errors import EngramError
from engram.facts.difference import edit_bytes, read_edit, save_edit
from engram.facts.rewrite import edit, rewrite
from engram.probes.edits import Edits
from engram.probes.words import Speaker
from networks import CONFIG, tensors, write_folder

Said = Callable[..., tuple[int, str, str]]
SENTENCE = """[UNK] <s> The the capital city official language currency used country continent of in is on France
Italy Paris Rome Spain Madrid Norway Oslo most people speak and it was there"""
WORDS = SENTENCE.split()
LM = CONFIG | {"architectures": ["GPT2LMHeadModel"], "vocab_size": len(WORDS), "n_positions": 24, "n_embd": 24}
PROMPT = "The capital of France is"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("models") / "small"
    weights = tensors(LM, prefix="transformer.") | {"transformer.ln_f.weight": np.ones(24, np.float32)}
    write_folder(here, LM, weights)
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.save(str(here / "tokenizer.json"))
    (here / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>"}))
    return here


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A text of its words; what is kept lies in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    drawn = np.random.default_rng(0).integers(2, len(WORDS), 3000)
    (tmp_path / "text.txt").write_text(" ".join(WORDS[i] for i in drawn))
    return tmp_path / "text.txt"


def new_answer(folder: Path) -> str:
    """A word that a step towards it makes the answer."""
    read = read_model(folder)
    speaker = Speaker.of(read.network, read.tokenizer)
    old = int(read.network.stream([speaker.tokens(PROMPT)], read="last")[0, -1].argmax())
    U = read.network.matrices()["U"]
    far = read.network.normed("logits", 3, 1e6 * (U - U[old])) @ U.T
    return next(WORDS[a] for a in range(2, len(WORDS)) if a != old and int(far[a].argmax()) == a)


def test_a_fact_is_rewritten_kept_applied_and_undone(folder: Path, text: Path, said: Said, tmp_path: Path) -> None:
    new, others = new_answer(folder), tmp_path / "others.csv"
    others.write_text("Kind;Prompt\nneighbour;The capital of Italy is\nParaphrase;the city of France is\n")
    options = ("--model", str(folder), "--text", str(text), "--layer", "3")
    code, out, err = said("fact", "edit", *options, "--size", "least", "--others", str(others), PROMPT, new)
    assert (code, err) == (0, "")
    assert f"→ {new}, by a rank-one change of W_F3 (write)" in out
    assert "neighbours that stay" in out
    (file,) = tmp_path.glob("edit-*.safetensors")
    code, out, _ = said("fact", "edit", *options, "--size", "least", "--json", PROMPT, new)
    found = json.loads(out)
    assert found["after"]["top"] == new != found["before"]["top"] == found["was"]
    assert Path(found["file"]).read_bytes() == file.read_bytes()  # made again it is the same
    code, out, _ = said("fact", "edit", "--model", str(folder), "--apply", str(file), "--json")
    (row,) = json.loads(out)["changed"]
    assert (row["before"], row["after"]) == (found["was"], new)
    network = read_model(folder).network
    stack = Edits(network).plus(read_edit(file))
    assert stack.minus(stack.stack[0]).network is network
    code, out, _ = said(
        "fact", "edit", *options, "--apply", str(file), "--json", "--output", "b.safetensors", "the city is", new
    )
    assert code == 0
    assert Edits(network).plus(read_edit(file), read_edit(Path("b.safetensors"))).network is not network


def test_python_says_the_same(folder: Path, text: Path) -> None:
    read, new = read_model(folder), new_answer(folder)
    one = edit(read.network, read.tokenizer, PROMPT, new, text=text, layer=3)
    done = rewrite(Edits(read.network), read.tokenizer, PROMPT, new, text=text, layer=3)
    assert edit_bytes(one) == edit_bytes(done.edit)
    assert done.loss[0] != done.loss[1]
    optimised = edit(read.network, read.tokenizer, PROMPT, new, text=text, layer=1, how="rome", subject="France")
    assert (optimised.how, optimised.layer) == ("rome", 1)


def test_a_fact_that_the_model_does_not_know_is_told(folder: Path, text: Path, said: Said) -> None:
    new, read = new_answer(folder), read_model(folder)
    speaker = Speaker.of(read.network, read.tokenizer)
    told = read.network.stream([speaker.tokens(PROMPT)], read="last")[0, -1]
    was = WORDS[int(told.argsort()[-3:][told.argsort()[-3:] != speaker.token(new)][0])]
    _, _, err = said("fact", "edit", "--model", str(folder), "--text", str(text), "--was", was, PROMPT, new)
    assert "The model does not know this fact: it answers" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((PROMPT, "Paris Rome"), "answer: 'Paris Rome' is 2 tokens ('Paris' + 'Rome'); give one that is a token"),
        ((PROMPT, " "), "answer: it is empty"),
        (("", "Rome"), "prompt: it is empty"),
        (("the " * 30, "Rome"), "prompt: it has 31 tokens, and this model reads at most 24; shorten it"),
        ((PROMPT,), "give a prompt and an answer"),
        ((PROMPT, "Rome", "--size", "-1"), "size: a number above 0"),
        ((PROMPT, "Rome", "--size", "nan"), "size: a number above 0"),
        ((PROMPT, "Rome", "--layer", "9"), "layer: layers count from 1 to 3; got 9"),
        ((PROMPT, "Rome", "--how", "magic"), "how: unknown 'magic'"),
        ((PROMPT, "Rome", "--how", "rome"), "say it with --subject"),
        ((PROMPT, "Rome", "--how", "rome", "--subject", "Peru"), "subject: 'Peru' does not stand in the prompt"),
        ((PROMPT, "Rome", "--others", "none.csv"), "none.csv: cannot be read"),
        ((PROMPT, "Rome", "--apply", "none.safetensors"), "none.safetensors: cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_edited(folder: Path, text: Path, said: Said, words: tuple[str, ...], says: str) -> None:
    code, out, err = said("fact", "edit", "--model", str(folder), "--text", str(text), *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err


def test_words_of_a_run_are_four(said: Said) -> None:
    code, _, err = said("fact", "edit", "run", "Paris")
    assert code == 2
    assert "RUN SUBJECT RELATION ANSWER are needed; got 2 words" in err


def test_no_tokenizer(folder: Path, text: Path, tmp_path: Path, said: Said) -> None:
    bare = write_folder(tmp_path / "bare", LM, tensors(LM, prefix="transformer."))
    code, _, err = said("fact", "edit", "--model", str(bare), PROMPT, "Rome")
    assert code == 2
    assert "bare: it has no tokenizer" in err
    (tmp_path / "p.csv").write_text("prompt,answer\nThe,Rome\n")
    code, _, err = said("probe", str(bare), "laser", "--prompts", str(tmp_path / "p.csv"))
    assert "bare: it has no tokenizer" in err


def test_without_bos_a_word_alone_is_a_sink(folder: Path, text: Path, tmp_path: Path, said: Said) -> None:
    other = write_folder(tmp_path / "no-bos", LM, tensors(LM, prefix="transformer."))
    (other / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    code, _, err = said("fact", "edit", "--model", str(other), "--text", str(text), "France", "Rome")
    assert code == 2
    assert "position 0" in err
    rome = ("--how", "rome", "--subject", "France", "France is in", "Rome")
    code, _, err = said("fact", "edit", "--model", str(other), "--text", str(text), *rome)
    assert "must stand behind position 0" in err


def about(**changed: Any) -> dict[str, str]:
    usual = {"format": "engram edit 1", "layer": "3", "model": "0" * 64, "prompt": "p", "was": "a", "answer": "b"}
    return {"engram": json.dumps(usual | {"how": "write"} | changed)}


GOOD = {"u": torch.zeros(24), "v": torch.zeros(96)}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "it is cut off"),
        (b"\xff" * 40, "it is cut off"),
        (save(GOOD, about())[:-8], "it is cut off"),
        (save(GOOD), "its format is 'none'"),
        (save(GOOD, about(format="engram edit 9")), "its format is 'engram edit 9'"),
        (save(GOOD | {"w": torch.zeros(2)}, about()), "two vectors"),
        (save({"u": torch.zeros(2, 2), "v": torch.zeros(2)}, about()), "two vectors"),
        (save({"u": torch.zeros(2, dtype=torch.int64), "v": torch.zeros(2)}, about()), "two vectors"),
        (save(GOOD | {"u": torch.full((24,), torch.nan)}, about()), "finite"),
        (save(GOOD, {"engram": '{"format": "engram edit 1"}'}), "does not say its prompt"),
        (save(GOOD, about(layer="-1")), "its layer must be"),
        (save(GOOD, about(layer=3)), "its format is 'none'"),
        (save(GOOD, {"engram": "[" * 100000}), "it is cut off"),
        (save(GOOD, about(layer="../x")), "its layer must be"),
        (save(GOOD, about(model="short")), "its layer must be"),
        (save(GOOD, about(prompt="x" * 9999)), "longer than 4096"),
    ],
)
def test_hostile_files(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "edit").write_bytes(content)
    with pytest.raises(EngramError, match=says) as error:
        read_edit(tmp_path / "edit")
    assert "make it anew" in str(error.value)


def test_an_edit_of_another_model(folder: Path, tmp_path: Path, said: Said) -> None:
    (tmp_path / "edit").write_bytes(save(GOOD, about()))
    code, _, err = said("fact", "edit", "--model", str(folder), "--apply", str(tmp_path / "edit"))
    assert code == 2
    assert "was made for the model with SHA-256 000000000000…" in err
    with pytest.raises(EngramError, match="something else has this name"):
        save_edit(
            read_edit(tmp_path / "edit").scaled(2.0).__class__(3, torch.ones(1), torch.ones(1), "1" * 64),
            tmp_path / "edit",
        )


def test_laser_chooses_and_reports(folder: Path, text: Path, said: Said, home: Path, tmp_path: Path) -> None:
    lines = [f"The capital of {c} is\t{a}\t the" for c, a in zip(WORDS[18:], WORDS[20:], strict=False)]
    (tmp_path / "my.csv").write_text("PROMPT\tAnswer\tRival\n" + "\n".join(lines[:9]) + "\nThe\tParis Rome\tthe\n")
    command = ("probe", str(folder), "laser", "--prompts", str(tmp_path / "my.csv"), "--text", str(text))
    code, out, err = said(*command)
    assert code == 0
    assert "Of answers of several tokens the first token counts: Paris Rome ('Paris')." in err
    assert "best of 48 cuts on the 2 prompts that choose" in out
    code, out, _ = said(*command, "--matrices", "all", "--json")
    found = json.loads(out)
    assert (found["chosen_on"], found["reported_on"], len(found["cuts"])) == (2, 8, 3 * 6 * 8)
    assert {"p_answer", "p_rival", "lead", "beats", "text_loss"} <= set(found["best"])
    assert all(Path(path).exists() for path in found["figures"])


@pytest.mark.parametrize(
    ("table", "more", "says"),
    [
        ("prompt,answer,rival\nThe,Rome,the\nThe,Rome,\n", (), "listed above"),
        ("prompt,answers\nThe,Rome\n", (), "listed above"),
        ("prompt,answer\nThe,\n", (), "listed above"),
        ("prompt,answer\nThe,Rome\n", (), "at least 5 are needed"),
        ("prompt,answer\n" + "The,Rome\n" * 5, ("--matrices", "mpl"), "did you mean mlp"),
        ("prompt,answer\n" + "the " * 40 + ",Rome\n", (), "line 2: prompt: it has 41 tokens"),
    ],
)
def test_what_laser_refuses(
    folder: Path, text: Path, said: Said, tmp_path: Path, table: str, more: tuple[str, ...], says: str
) -> None:
    (tmp_path / "my.csv").write_text(table)
    code, out, err = said(
        "probe", str(folder), "laser", "--prompts", str(tmp_path / "my.csv"), "--text", str(text), *more
    )
    assert (code, out) == (2, "")
    assert says in err
    code, _, err = said("probe", str(folder), "laser", "heads")
    assert "laser goes by itself" in err

"""Tokenizers: from a folder, from the vocabulary of a GGUF file; what is not known is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers.pre_tokenizers import ByteLevel

from engram.adapters import Tokenizer, read_model
from engram.adapters.gguf import parse
from engram.adapters.tokenizer import tokenizer_of_folder, tokenizer_of_gguf
from engram.errors import EngramError
from ggufs import gguf
from llamas import LLAMA, llama_tensors
from networks import write_folder

MERGES = ["h e", "l l", "he ll", "hell o", "Ġ hello", "1 2"]
TOKENS = ["<|start|>", *sorted(ByteLevel.alphabet()), "he", "ll", "hell", "hello", "Ġhello", "12"]
GIVEN: dict[str, Any] = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.token_type": [3] + [1] * (len(TOKENS) - 1),
    "tokenizer.ggml.bos_token_id": 0,
}


def made(**new: Any) -> Tokenizer:
    found = tokenizer_of_gguf(
        parse("made-up.gguf", gguf(GIVEN | {f"tokenizer.ggml.{n}": v for n, v in new.items()}, {}))
    )
    assert found is not None
    return found


def test_merges_are_done_in_their_order() -> None:
    tokenizer = made()
    ids = tokenizer.encode("hello hello<|start|>he")
    assert [TOKENS[i] for i in ids] == ["hello", "Ġhello", "<|start|>", "he"]
    assert tokenizer.pieces(ids) == ["hello", " hello", "<|start|>", "he"]
    assert tokenizer.bos == 0


@pytest.mark.parametrize(("pre", "pieces"), [("smollm", ["1", "2"]), ("gpt-2", ["12"])])
def test_digits_stand_alone_or_not(pre: str, pieces: list[str]) -> None:
    tokenizer = made(pre=pre)
    assert tokenizer.pieces(tokenizer.encode("12")) == pieces


@pytest.mark.parametrize("text", ["", " ", "ö\n\t∀🙂", "a" * 5000, "\x00"])
def test_every_text_comes_back(text: str) -> None:
    tokenizer = made()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_half_a_character() -> None:
    tokenizer = made()
    assert tokenizer.pieces(tokenizer.encode("ö")) == ["�", "�"]
    with pytest.raises(EngramError, match="text: it holds half a character"):
        tokenizer.encode("\ud800")


@pytest.mark.parametrize("token", [-1, len(TOKENS), 1 << 70])
def test_no_such_token(token: int) -> None:
    with pytest.raises(EngramError, match=rf"ids: tokens count from 0 to {len(TOKENS) - 1}"):
        made().decode([token])


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ({"model": "llama"}, "tokenizer.ggml.model: should be gpt2; got 'llama'; read_network reads the model without"),
        ({"pre": "qwen2"}, "tokenizer.ggml.pre: should be gpt-2 or smollm; got 'qwen2'"),
        ({"pre": 3}, "tokenizer.ggml.pre has another type"),
        ({"tokens": [1, 2]}, "tokenizer.ggml.tokens must be a list of texts"),
        ({"tokens": ["a", "a"]}, "its vocabulary holds a token twice"),
        ({"merges": ["h e l"]}, "or a merge that is no pair"),
        ({"merges": ["q q"]}, "its vocabulary does not fit its merges"),
        ({"bos_token_id": len(TOKENS)}, "tokenizer.ggml.bos_token_id: tokens count from 0"),
    ],
)
def test_what_it_does_not_know_is_refused(new: dict[str, Any], says: str) -> None:
    with pytest.raises(EngramError, match=says) as error:
        made(**new)
    assert "\n" not in str(error.value)


def test_a_file_without_a_vocabulary() -> None:
    assert tokenizer_of_gguf(parse("x", gguf({"general.architecture": "llama"}, {}))) is None


@pytest.mark.parametrize("bos", ["<|start|>", {"content": "<|start|>"}, None, "nothing"])
def test_the_tokenizer_of_a_folder(tmp_path: Path, bos: Any) -> None:
    folder = write_folder(tmp_path / "model", LLAMA, llama_tensors(LLAMA))
    made().inner.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": bos}))
    tokenizer = read_model(folder).tokenizer
    assert tokenizer is not None
    assert tokenizer.encode("hello 12") == made().encode("hello 12")
    assert tokenizer.bos == (0 if bos and bos != "nothing" else None)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"model": {"type": "BPE", "vocab": 3}}'])
def test_no_tokenizer(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(
        EngramError, match=r"tokenizer\.json: no tokenizer .*; read_network reads the model without"
    ) as error:
        tokenizer_of_folder(tmp_path)
    assert "\n" not in str(error.value)

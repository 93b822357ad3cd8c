"""Text as the tokens of a model of others: from tokenizer.json of a folder, or from the vocabulary of a GGUF file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from engram.adapters.gguf import Gguf
from engram.errors import EngramError
from engram.plain import read_plain

FILE, MORE = "tokenizer.json", "tokenizer_config.json"
MOST = 1 << 26  # bytes
CONTROL, USER_DEFINED = 3, 4  # types of tokens that are found in a text before anything else
WORDS = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
PRE_TOKENIZERS = {
    "gpt-2": WORDS,
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), WORDS]),
}
WITHOUT = "read_network reads the model without its tokenizer"


@dataclass(frozen=True)
class Tokenizer:
    """Text to tokens and back; `bos` is the token that begins a text, where a model has one. It is never added."""

    inner: tokenizers.Tokenizer = field(repr=False)
    bos: int | None = None

    def encode(self, text: str) -> list[int]:
        try:
            return self.inner.encode(text, add_special_tokens=False).ids
        except (UnicodeEncodeError, TypeError):  # what the library says of it differs by version
            raise EngramError(f"text: it holds half a character (a lone surrogate); got {text!r:.60}") from None

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these tokens; a character of which only some bytes are there is �."""
        N = self.inner.get_vocab_size()
        for i in ids:
            if not 0 <= i < N:
                raise EngramError(f"ids: tokens count from 0 to {N - 1}; got {i}")
        return self.inner.decode(list(ids), skip_special_tokens=False)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text of each token by itself."""
        return [self.decode([i]) for i in ids]


def tokenizer_of_folder(folder: Path) -> Tokenizer | None:
    """That of tokenizer.json, where there is one."""
    if not (folder / FILE).exists():
        return None
    try:
        inner = tokenizers.Tokenizer.from_str(_read(folder, FILE).decode())
    except EngramError:
        raise
    except Exception as error:  # the library raises nothing more special
        raise EngramError(f"{folder.name}/{FILE}: no tokenizer ({str(error)!r:.100}); {WITHOUT}") from None
    inner.no_truncation()
    inner.no_padding()
    return Tokenizer(inner, _bos(folder, inner))


def _bos(folder: Path, inner: tokenizers.Tokenizer) -> int | None:
    """The token that tokenizer_config.json calls bos_token."""
    try:
        more = json.loads(_read(folder, MORE)) if (folder / MORE).exists() else {}
    except (ValueError, RecursionError):
        raise EngramError(f"{folder.name}/{MORE}: it is not a JSON object; {WITHOUT}") from None
    bos = more.get("bos_token") if isinstance(more, dict) else None
    bos = bos.get("content") if isinstance(bos, dict) else bos
    return inner.token_to_id(bos) if isinstance(bos, str) else None


def _read(folder: Path, name: str) -> bytes:
    try:
        return read_plain(folder / name, MOST, follow=True)
    except OSError as error:
        raise EngramError(f"{folder}: {name} cannot be read ({error.strerror}); {WITHOUT}") from None


def tokenizer_of_gguf(file: Gguf) -> Tokenizer | None:
    """Byte pairs merged as the file lists them; None where it has no vocabulary."""
    if "tokenizer.ggml.model" not in file.settings:
        return None
    words = _one_of(file, "tokenizer.ggml.model", {"gpt2": ""}), _one_of(file, "tokenizer.ggml.pre", PRE_TOKENIZERS)
    tokens, merges = (_texts(file, f"tokenizer.ggml.{name}") for name in ("tokens", "merges"))
    inner = tokenizers.Tokenizer(_bpe(file.name, tokens, merges))
    inner.pre_tokenizer, inner.decoder = words[1], decoders.ByteLevel()
    kinds = file.settings.get("tokenizer.ggml.token_type", [])
    special = [t for t, kind in zip(tokens, kinds, strict=False) if kind in (CONTROL, USER_DEFINED)]
    inner.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    return Tokenizer(inner, _bos_of_gguf(file, len(tokens)))


def _bpe(name: str, tokens: list[str], merges: list[str]) -> models.BPE:
    vocabulary = {token: i for i, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    if len(vocabulary) < len(tokens) or any(len(pair) != 2 for pair in pairs):
        raise EngramError(f"{name}: its vocabulary holds a token twice, or a merge that is no pair; {WITHOUT}")
    try:
        return models.BPE(vocab=vocabulary, merges=pairs)  # type: ignore[arg-type]  # pairs have two entries
    except Exception as error:  # the library raises nothing more special
        raise EngramError(f"{name}: its vocabulary does not fit its merges ({str(error)!r:.100}); {WITHOUT}") from None


def _one_of(file: Gguf, name: str, known: dict[str, Any]) -> Any:
    given = file.setting(name, str)
    if given not in known:
        raise EngramError(f"{file.name}: {name}: should be {' or '.join(known)}; got {given!r:.60}; {WITHOUT}")
    return known[given]


def _texts(file: Gguf, name: str) -> list[str]:
    found = file.setting(name, list)
    if not found or not all(isinstance(text, str) for text in found):
        raise EngramError(f"{file.name}: {name} must be a list of texts; {WITHOUT}")
    return found


def _bos_of_gguf(file: Gguf, N: int) -> int | None:
    bos = file.settings.get("tokenizer.ggml.bos_token_id")
    if bos is not None and (type(bos) is not int or not 0 <= bos < N):
        raise EngramError(f"{file.name}: tokenizer.ggml.bos_token_id: tokens count from 0 to {N - 1}; got {bos!r:.60}")
    return bos

"""The reader of GGUF files: numbers as written by hand, the same model as the folder, and nothing is believed."""

import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.adapters import read_model, read_network
from engram.adapters.gguf import parse
from engram.errors import EngramError
from ggufs import FORMATS, Tensor, as_llama_cpp_orders, block_by_hand, gguf, plain, random_blocks, setting, text
from llamas import LLAMA, llama_by_hand, llama_tensors

TOKENS = np.array([[1, 4, 7, 1, 10, 0], [3, 3, 9, 2, 5, 8]])
INSIDE = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": 3,
    "llama.context_length": 32,
    "llama.embedding_length": 24,
    "llama.feed_forward_length": 20,
    "llama.attention.head_count": 6,
    "llama.attention.head_count_kv": 2,
    "llama.rope.freq_base": 100.0,
    "llama.rope.dimension_count": 4,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}
BLOCKS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")


def their_name(name: str) -> str:
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    stem, _, kind = name.rpartition(".")
    if stem in whole:
        return f"{whole[stem]}.{kind}"
    layer, _, inside = stem.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{INSIDE[inside]}.{kind}"


def stored(config: dict[str, Any], form: str = "F32") -> dict[str, Tensor]:
    found = {}
    for name, array in llama_tensors(config).items():
        heads = {"q_proj": 6, "k_proj": 2}.get(name.split(".")[-2])
        found[their_name(name)] = plain(as_llama_cpp_orders(array, heads) if heads else array, form)
    return found


def file(folder: Path, content: bytes) -> Path:
    (folder / "made-up.gguf").write_bytes(content)
    return folder / "made-up.gguf"


@pytest.mark.parametrize("new", [{}, {"tie_word_embeddings": False}, {"attention_bias": True, "mlp_bias": True}])
def test_it_is_the_model_of_the_folder(tmp_path: Path, new: dict[str, Any]) -> None:
    network = read_network(file(tmp_path, gguf(SETTINGS, stored(LLAMA | new))), torch.float64)
    expected = llama_by_hand(LLAMA | new, llama_tensors(LLAMA | new), TOKENS)
    eps = 1e-5 - float(np.float32(1e-5))  # the file has it in float32
    assert abs(eps) < 1e-12
    assert np.allclose(network.stream(TOKENS).numpy(), expected, rtol=0, atol=1e-9)
    origin = network.provenance
    assert (origin.name, origin.family, len(origin.sha256), origin.note) == ("made-up.gguf", "llama", 64, "")


def test_half_precision(tmp_path: Path) -> None:
    half = {name: array.astype(np.float16) for name, array in llama_tensors(LLAMA).items()}
    network = read_network(file(tmp_path, gguf(SETTINGS, stored(LLAMA, "F16"))), torch.float64)
    assert np.allclose(network.stream(TOKENS).numpy(), llama_by_hand(LLAMA, half, TOKENS), rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", BLOCKS)
def test_blocks_are_read_as_by_hand(form: str) -> None:
    content = random_blocks(form, 6)
    size = len(content) // 6
    expected = [block_by_hand(form, content[i : i + size]) for i in range(0, len(content), size)]
    found = parse("x", gguf({}, {"W": ((2, 96), form, content)})).tensors(torch.float32)["W"]
    assert np.allclose(found.numpy().reshape(6, 32), np.array(expected), rtol=1e-6, atol=1e-6)


def test_brain_floats_are_the_upper_half() -> None:
    numbers = np.array([1.0, -2.5, 3.140625, 0.0], dtype=np.float32)
    upper = (numbers.view(np.uint32) >> 16).astype("<u2").tobytes()
    assert parse("x", gguf({}, {"b": ((4,), "BF16", upper)})).tensors(torch.float64)["b"].tolist() == numbers.tolist()


@pytest.mark.parametrize("form", BLOCKS)
def test_blocks_are_those_of_the_package_gguf(form: str) -> None:
    theirs = pytest.importorskip("gguf", reason="the package gguf is not installed")
    content = random_blocks(form, 8, seed=1)
    blocks = np.frombuffer(content, dtype=np.uint8).reshape(2, -1)
    expected = theirs.quants.dequantize(blocks, theirs.GGMLQuantizationType(FORMATS[form]))
    found = parse("x", gguf({}, {"W": ((2, 128), form, content)})).tensors(torch.float32)["W"]
    assert np.array_equal(found.numpy(), expected)


def test_rounded_weights_are_told(tmp_path: Path) -> None:
    """32 coordinates, so that rows fill blocks; the coarsest format of a matrix is the note."""
    config = LLAMA | {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 32, "num_hidden_layers": 1}
    given = SETTINGS | {
        "llama.block_count": 1, "llama.embedding_length": 64, "llama.feed_forward_length": 32,
        "llama.attention.head_count": 4, "llama.rope.dimension_count": 16,
    }  # fmt: skip
    tensors = {their_name(name): plain(array) for name, array in llama_tensors(config).items()}
    tensors["token_embd.weight"] = (11, 64), "Q8_0", random_blocks("Q8_0", 22)
    tensors["blk.0.ffn_up.weight"] = (32, 64), "Q4_1", random_blocks("Q4_1", 64)
    model = read_model(file(tmp_path, gguf(given, tensors)))
    assert str(model.network.provenance) == "made-up.gguf (llama, 4-bit-derived)"
    assert model.tokenizer is None
    assert model.network.stream(TOKENS).isfinite().all()


def changed(**new: Any) -> Callable[[], bytes]:
    return lambda: gguf(SETTINGS | {name.replace("__", "."): value for name, value in new.items()}, stored(LLAMA))


def with_tensors(**new: Tensor | None) -> Callable[[], bytes]:
    given = {name.replace("__", "."): value for name, value in new.items()}
    return lambda: gguf(SETTINGS, {n: t for n, t in (stored(LLAMA) | given).items() if t is not None})


def head(tensors: int, settings: int, rest: bytes = b"", version: int = 3) -> Callable[[], bytes]:
    return lambda: b"GGUF" + struct.pack("<IQQ", version, tensors, settings) + rest


def announced(axes: int, *sizes: int) -> bytes:
    """One tensor, whose sizes are what they like."""
    return text("W") + struct.pack(f"<I{len(sizes)}QIQ", axes, *sizes, 0, 0)


NAN: Tensor = ((24,), "F32", np.full(24, np.nan, dtype="<f4").tobytes())
CUT = "it is cut off, or is no GGUF file"
REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "it is no GGUF file"),
    "something else": (lambda: b"PK\x03\x04" * 50, "it is no GGUF file"),
    "only its name": (lambda: b"GGUF", CUT),
    "old": (head(0, 0, version=1), "GGUF version 1 is not read; allowed: 2, 3"),
    "other end first": (head(0, 0, version=3 << 24), "GGUF version 50331648 is not read"),
    "endless tensors": (head(1 << 62, 0), rf"{CUT} \(it announces 4611686018427387904 entries\)"),
    "endless settings": (head(0, 1 << 62), rf"{CUT} \(it announces"),
    "endless text": (head(0, 1, struct.pack("<Q", 1 << 63) + bytes(40)), CUT),
    "endless list": (head(0, 1, text("a") + struct.pack("<IIQ", 9, 4, 1 << 61) + bytes(40)), rf"{CUT} \(it announces"),
    "list of lists": (head(0, 1, text("a") + struct.pack("<IIQ", 9, 9, 1) + bytes(40)), "a list of the unknown type 9"),
    "odd type": (head(0, 1, text("a") + struct.pack("<I", 77) + bytes(40)), "a setting has the unknown type 77"),
    "a setting twice": (head(0, 2, (text("a") + setting(1)) * 2 + bytes(40)), "the setting 'a' is there twice"),
    "a tensor twice": (head(2, 0, announced(1, 1) * 2 + bytes(64)), "the tensor 'W' is there twice"),
    "many axes": (head(1, 0, announced(2**31, 1)), "has 2147483648 axes; allowed: 1 to 4"),
    "huge axes": (head(1, 0, announced(4, *[1 << 60] * 4)), "lies outside the file"),
    "no rows": (head(1, 0, announced(2, 1 << 60, 0)), r"has the shape \(0, 1152921504606846976\)"),
    "half": (lambda: gguf(SETTINGS, stored(LLAMA))[:-3000], "lies outside the file, or between its places"),
    "overlap": (lambda: gguf(SETTINGS, stored(LLAMA), output_norm__weight=0), "overlap"),
    "between places": (lambda: gguf(SETTINGS, stored(LLAMA), output_norm__weight=7), "between its places"),
    "alignment": (changed(general__alignment=0), "general.alignment must be a multiple of 8"),
    "alignment, a text": (changed(general__alignment="32"), "general.alignment must be a multiple of 8"),
    "odd row": (
        with_tensors(token_embd__weight=((11, 24), "Q8_0", bytes(300))),
        r"\(11, 24\), which does not fit Q8_0",
    ),
    "other format": (with_tensors(output_norm__weight=((24,), "Q4_K", bytes(96))), "stored as Q4_K, which is not read"),
    "family": (changed(general__architecture="qwen2"), "no GGUF reader for the architecture 'qwen2'; known: llama"),
    "no family": (lambda: gguf({}, {}), "the setting general.architecture is missing"),
    "family, a number": (changed(general__architecture=3), "general.architecture has another type than it should"),
    "heads, a text": (changed(llama__attention__head_count="6"), "head_count has another type than it should; got '6'"),
    "heads, a list": (changed(llama__attention__head_count=[6, 6, 6]), "head_count has another type"),
    "no heads": (
        changed(llama__attention__head_count=0, llama__rope__dimension_count=24),
        "num_attention_heads: should be greater than or equal to 1",
    ),
    "scaling": (changed(llama__rope__scaling__type="yarn"), "llama.rope.scaling.type: should be none; got 'yarn'"),
    "part turns": (changed(llama__rope__dimension_count=2), "llama.rope.dimension_count: should be 4; got 2"),
    "experts": (changed(llama__expert_count=8), "'llama.expert_count': this reader does not know it"),
    "angles": (
        with_tensors(rope_freqs__weight=((2,), "F32", bytes(8))),
        "'rope_freqs.weight' is not one of this family",
    ),
    "missing": (with_tensors(output_norm__weight=None), r"the tensor norm\.weight is missing"),
    "NaN": (with_tensors(output_norm__weight=NAN), r"norm\.weight holds something other than finite numbers"),
    "other rows": (
        with_tensors(blk__0__attn_q__weight=plain(np.ones((23, 24)))),
        r"q_proj\.weight must have the shape",
    ),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_hostile_files_are_refused_by_name(tmp_path: Path, what: str) -> None:
    content, says = REFUSED[what]
    with pytest.raises(EngramError, match=says) as error:
        read_network(file(tmp_path, content()))
    assert "\n" not in str(error.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(EngramError, match=r"nothing\.gguf: it cannot be read \(No such file or directory\)"):
        read_network(tmp_path / "nothing.gguf")


WHOLE = gguf(SETTINGS | {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm"}, stored(LLAMA))


@given(st.integers(0, len(WHOLE)), st.integers(0, 900), st.binary(min_size=1, max_size=9))
@settings(max_examples=200, deadline=None, database=None)
def test_damage_is_read_or_refused(end: int, at: int, noise: bytes) -> None:
    """A file cut off anywhere, or with other bytes in its head: it is read, or refused."""
    for content in (WHOLE[:end], WHOLE[:at] + noise + WHOLE[at + len(noise) :]):
        with suppress(EngramError):
            parse("x", content).tensors(torch.float32)

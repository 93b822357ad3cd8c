"""GGUF files written for tests, by a writer that shares nothing with the reader, and numbers read by hand."""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

FORMATS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "BF16": 30, "Q4_K": 12}
Tensor = tuple[tuple[int, ...], str, bytes]  # shape with rows first, format, what is stored


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def setting(value: Any) -> bytes:
    """Its type and itself, as llama.cpp writes settings of a model."""
    match value:
        case bool():
            return struct.pack("<IB", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + text(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        case _:
            return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)


def gguf(settings: Mapping[str, Any], tensors: Mapping[str, Tensor], version: int = 3, **places: int) -> bytes:
    """A whole file; `places` puts the numbers of a tensor elsewhere, dots in its name written as two underscores."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(settings))
    head += b"".join(text(name) + setting(value) for name, value in settings.items())
    numbers = b""
    for name, (shape, form, stored) in tensors.items():
        at = places.get(name.replace(".", "__"), len(numbers))
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        head += struct.pack("<IQ", FORMATS[form], at)
        numbers += stored + bytes(-len(stored) % 32)
    return head + bytes(-len(head) % 32) + numbers


def plain(array: np.ndarray, form: str = "F32") -> Tensor:
    return array.shape, form, array.astype({"F32": "<f4", "F16": "<f2"}[form]).tobytes()


def random_blocks(form: str, blocks: int, seed: int = 0) -> bytes:
    """Blocks with moderate scales; every other byte is random."""
    rng, size = np.random.default_rng(seed), {"Q4_0": 16, "Q4_1": 16, "Q5_0": 20, "Q5_1": 20, "Q8_0": 32}[form]
    scales = 2 if form.endswith("_1") else 1
    parts = [rng.normal(size=scales).astype("<f2").tobytes() + rng.bytes(size) for _ in range(blocks)]
    return b"".join(parts)


def block_by_hand(form: str, block: bytes) -> list[float]:
    """The 32 numbers of a block, one at a time."""
    scale = struct.unpack_from("<e", block)[0]
    offset = struct.unpack_from("<e", block, 2)[0] if form.endswith("_1") else 0.0
    packed = block[4:] if form.endswith("_1") else block[2:]
    if form == "Q8_0":
        return [scale * q for q in struct.unpack("<32b", packed)]
    fifths = struct.unpack_from("<I", packed)[0] if form.startswith("Q5") else 0
    packed = packed[4:] if form.startswith("Q5") else packed
    middle = {"Q4_0": 8, "Q5_0": 16}.get(form, 0)
    halves = [byte & 15 for byte in packed] + [byte >> 4 for byte in packed]
    return [scale * (q + 16 * (fifths >> j & 1) - middle) + offset for j, q in enumerate(halves)]


def as_llama_cpp_orders(W: np.ndarray, heads: int) -> np.ndarray:
    """Rows of W_Q or W_K as llama.cpp stores them: coordinates that turn together are neighbours."""
    d_h = len(W) // heads
    order = [h * d_h + j + half for h in range(heads) for j in range(d_h // 2) for half in (0, d_h // 2)]
    return W[order]

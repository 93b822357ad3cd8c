r"""Numbers as GGUF files store them: plain, or in blocks of 32 with a shared scale.

    name    bytes of a block                         value of number j
    Q8_0    scale δ, 32 signed bytes q               δ q_j
    Q4_0    δ, 16 bytes of two halves each           δ (q_j − 8)
    Q4_1    δ, offset μ, 16 bytes                    δ q_j + μ
    Q5_0    δ, 32 fifth bits, 16 bytes               δ (q_j − 16)
    Q5_1    δ, μ, 32 fifth bits, 16 bytes            δ q_j + μ

δ and μ are float16. The lower half of byte j is q_j, its upper half q_{j+16}. Other formats are refused by name.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.models.unread import empty

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.float32]
IN_A_BLOCK = 32
AT_ONCE = 1 << 17  # numbers


@dataclass(frozen=True)
class Format:
    """How numbers are stored: bits that each was rounded to, numbers and bytes of a block, and how to read blocks."""

    name: str
    bits: int
    numbers: int
    bytes: int
    read: Callable[[Bytes], Numbers]
    scales: int = 0  # float16 at the beginning of a block, which alone can be infinite or no numbers

    def is_finite(self, stored: Bytes) -> bool:
        blocks = stored.reshape(-1, self.bytes)
        own = [_half(blocks, 2 * i) for i in range(self.scales)] or [self.read(blocks)]
        return all(bool(np.isfinite(numbers).all()) for numbers in own)


def _halves(packed: Bytes) -> Numbers:
    """Two numbers from 0 to 15 of each byte: blocks×16 → blocks×32."""
    q = np.empty((len(packed), IN_A_BLOCK), dtype=np.float32)
    q[:, :16], q[:, 16:] = packed & 15, packed >> 4
    return q


def _fifths(bits: Bytes) -> Numbers:
    """0 or 16 for each number of a block: blocks×4 → blocks×32."""
    return np.unpackbits(bits, axis=1, bitorder="little").astype(np.float32) * 16


def _half(blocks: Bytes, at: int) -> Numbers:
    """The float16 at this byte of each block, as a column."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _q8_0(blocks: Bytes) -> Numbers:
    q = blocks[:, 2:].view(np.int8).astype(np.float32)
    return np.multiply(q, _half(blocks, 0), out=q)


def _q4_0(blocks: Bytes) -> Numbers:
    q = _halves(blocks[:, 2:])
    q -= 8
    return np.multiply(q, _half(blocks, 0), out=q)


def _q4_1(blocks: Bytes) -> Numbers:
    q = _halves(blocks[:, 4:])
    q *= _half(blocks, 0)
    return np.add(q, _half(blocks, 2), out=q)


def _q5_0(blocks: Bytes) -> Numbers:
    q = _halves(blocks[:, 6:]) + _fifths(blocks[:, 2:6]) - 16
    return q * _half(blocks, 0)


def _q5_1(blocks: Bytes) -> Numbers:
    q = _halves(blocks[:, 8:]) + _fifths(blocks[:, 4:8])
    return q * _half(blocks, 0) + _half(blocks, 2)


def _bf16(blocks: Bytes) -> Numbers:
    """The upper half of a float32."""
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


FORMATS = {
    0: Format("F32", 32, 1, 4, lambda blocks: blocks.view("<f4")),
    1: Format("F16", 16, 1, 2, lambda blocks: blocks.view("<f2").astype(np.float32)),
    2: Format("Q4_0", 4, IN_A_BLOCK, 18, _q4_0, 1),
    3: Format("Q4_1", 4, IN_A_BLOCK, 20, _q4_1, 2),
    6: Format("Q5_0", 5, IN_A_BLOCK, 22, _q5_0, 1),
    7: Format("Q5_1", 5, IN_A_BLOCK, 24, _q5_1, 2),
    8: Format("Q8_0", 8, IN_A_BLOCK, 34, _q8_0, 1),
    30: Format("BF16", 16, 1, 2, _bf16),
}
NOT_READ = {9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 28: "F64"}


def dequantised(kind: Format, stored: Bytes, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """The numbers of a tensor, in a memory of their own, some blocks after the other: little else is needed beside."""
    tensor, blocks = empty(shape, dtype), stored.reshape(-1, kind.bytes)
    at_once = AT_ONCE // kind.numbers
    for place, part in zip(tensor.view(-1).split(AT_ONCE), range(0, len(blocks), at_once), strict=True):
        numbers = kind.read(blocks[part : part + at_once]).reshape(-1)
        place.copy_(torch.from_numpy(numbers if numbers.flags.writeable else numbers.copy()))
    return tensor

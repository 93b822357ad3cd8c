"""Tensors that carry their own digest: what was written comes back, and no flipped bit goes unnoticed."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

from engram.records.sealed import Damaged, seal, unseal

TENSORS = {"weights/W": torch.arange(6.0).reshape(2, 3), "n": torch.ones(1, dtype=torch.float64), "e": torch.zeros(0)}


def test_what_was_written_comes_back() -> None:
    found, about = unseal(seal(TENSORS, {"step": "4"}))
    assert about == {"step": "4"}
    assert {name: (value.dtype, value.tolist()) for name, value in found.items()} == {
        name: (value.dtype, value.tolist()) for name, value in TENSORS.items()
    }


def test_any_reader_of_safetensors_can_read_it() -> None:
    assert set(load(seal(TENSORS, {"step": "4"}))) == set(TENSORS)


def test_a_state_may_hold_no_tensor() -> None:
    assert unseal(seal({}, {"step": "4"})) == ({}, {"step": "4"})


@settings(deadline=None, max_examples=300)
@given(at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_every_flipped_bit_is_noticed(at: int, bit: int) -> None:
    """But for the spaces between header and data, which say nothing."""
    content = bytearray(seal(TENSORS, {"step": "4"}))
    place = at % len(content)
    content[place] ^= 1 << bit
    try:
        found, about = unseal(bytes(content))
    except Damaged:
        return
    assert about == {"step": "4"}
    assert all(torch.equal(found[name], TENSORS[name]) for name in TENSORS)


def test_every_cut_is_noticed() -> None:
    content = seal(TENSORS, {})
    for length in range(len(content)):
        with pytest.raises(Damaged):
            unseal(content[:length])
    with pytest.raises(Damaged):
        unseal(content + b"\0")


def test_nonsense_is_refused() -> None:
    chance = random.Random(0)
    for content in (b"", b"\0" * 8, b"\xff" * 100, (10**6).to_bytes(8, "little") + b"[" * 10**6, save(TENSORS)):
        with pytest.raises(Damaged):
            unseal(content)
    for _ in range(100):
        with pytest.raises(Damaged):
            unseal(chance.randbytes(200))

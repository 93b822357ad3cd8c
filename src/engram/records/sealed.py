"""Tensors in a file that carries the digest of all that is in it, so that damage is noticed and never computed with."""

import hashlib
import json
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as tensor_bytes

from engram.models import Weights

MOST_HEADER = 1 << 20  # bytes: a state of a hundred matrices has a header of ten thousand
About = dict[str, str]


class Damaged(ValueError):
    """What a file holds is not what was written; says in a few words what is wrong."""


def seal(tensors: Weights, about: About) -> bytes:
    """The file of these tensors: safetensors, with `about` and the digest of everything in its header."""
    header, data = _parts(tensor_bytes(tensors, about))
    header["__metadata__"] = about | {"digest": _digest(header, data)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # data begin at a multiple of eight
    return len(text).to_bytes(8, "little") + text + data


def unseal(content: bytes) -> tuple[Weights, About]:
    """Tensors and what is said about them, if the digest holds."""
    header, data = _parts(content)
    about = header["__metadata__"] = dict(header.get("__metadata__", {}))
    written = about.pop("digest", None)
    if written is None:
        raise Damaged("carries no digest")
    if written != _digest(header, data):
        raise Damaged("does not match its own digest")
    return load(content), about


def load(content: bytes) -> Weights:
    """Tensors of a file that is known to be what was written, or whose numbers are only looked at."""
    _parts(content)
    try:
        return load_tensors(content)
    except (SafetensorError, ValueError):
        raise Damaged("is unreadable") from None


def _parts(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and data."""
    length = int.from_bytes(content[:8], "little")
    if not 2 <= length <= min(MOST_HEADER, len(content) - 8):
        raise Damaged("is unreadable")
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError):
        raise Damaged("is unreadable") from None
    if not isinstance(header, dict):
        raise Damaged("is unreadable")
    return header, content[8 + length :]


def _digest(header: dict[str, Any], data: bytes) -> str:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode() + data).hexdigest()

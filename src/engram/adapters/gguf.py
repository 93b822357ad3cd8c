"""GGUF files: one file with settings, vocabulary and (mostly rounded) weights, as llama.cpp has them.

    "GGUF" · version · how many tensors, how many settings · settings · names, sizes, places of tensors · numbers

Whoever wrote it is not believed: every count is compared with the bytes that are left before anything is made of it.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch

from engram.adapters.quantised import FORMATS, NOT_READ, Format, dequantised
from engram.errors import EngramError
from engram.models.unread import Later, Unread

MAGIC, VERSIONS = b"GGUF", (2, 3)
MOST_AXES, MOST_ALIGNMENT = 4, 1 << 16
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, LIST = 8, 9
SMALLEST_SETTING, SMALLEST_TENSOR = 8 + 4 + 1, 8 + 4 + 8 + 4 + 8  # bytes


@dataclass(frozen=True)
class Stored:
    """Where the numbers of a tensor are, and how they are stored; the shape is ours, rows first."""

    shape: tuple[int, ...]
    kind: Format
    start: int
    end: int


@dataclass(frozen=True)
class Gguf:
    """A file that was looked through: its settings, and its tensors, which are not computed yet."""

    name: str
    content: bytes = field(repr=False)
    settings: Mapping[str, Any] = field(repr=False)
    stored: Mapping[str, Stored] = field(repr=False)

    def tensors(self, dtype: torch.dtype) -> Unread:
        """All of them; the numbers of each are computed when they are asked for."""
        return Unread({name: self._later(at, dtype) for name, at in self.stored.items()})

    def _later(self, at: Stored, dtype: torch.dtype) -> Later:
        numbers = np.frombuffer(self.content, np.uint8, at.end - at.start, at.start)
        return Later(
            at.shape,
            dtype,
            partial(dequantised, at.kind, numbers, at.shape, dtype),
            partial(at.kind.is_finite, numbers),
        )

    def bits(self) -> int:
        """To how many the matrices were rounded, at the coarsest."""
        return min((t.kind.bits for t in self.stored.values() if len(t.shape) > 1), default=32)

    def setting(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """A setting that must be there, of this type."""
        if name not in self.settings:
            raise EngramError(f"{self.name}: the setting {name} is missing")
        value = self.settings[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise EngramError(f"{self.name}: the setting {name} has another type than it should; got {value!r:.60}")
        return value


def parse(name: str, content: bytes) -> Gguf:
    """What a file says of itself, if it is whole and consistent."""
    cursor = Cursor(name, content)
    if content[:4] != MAGIC:
        raise EngramError(f"{name}: it is no GGUF file")
    version, tensors, settings = cursor.skip(4).scalar("<I"), cursor.scalar("<Q"), cursor.scalar("<Q")
    if version not in VERSIONS:
        raise EngramError(f"{name}: GGUF version {version} is not read; allowed: {', '.join(map(str, VERSIONS))}")
    found = _settings(cursor, cursor.count(settings, SMALLEST_SETTING))
    stored = _tensors(cursor, cursor.count(tensors, SMALLEST_TENSOR), _alignment(name, found))
    _refuse_overlaps(name, stored)
    return Gguf(name, content, found, stored)


@dataclass
class Cursor:
    """Reads a file from its beginning on; whatever would reach beyond its end is refused."""

    name: str
    content: bytes
    at: int = 0

    def skip(self, n: int) -> "Cursor":
        if n > len(self.content) - self.at:
            raise EngramError(f"{self.name}: it is cut off, or is no GGUF file")
        self.at += n
        return self

    def scalar(self, form: str) -> Any:
        at = self.at
        self.skip(struct.calcsize(form))
        return struct.unpack_from(form, self.content, at)[0]

    def count(self, n: int, smallest: int) -> int:
        """A number of things that have at least so many bytes each."""
        if n > (len(self.content) - self.at) // smallest:
            raise EngramError(f"{self.name}: it is cut off, or is no GGUF file (it announces {n} entries)")
        return n

    def text(self) -> str:
        n, at = self.scalar("<Q"), self.at
        return self.skip(n).content[at : at + n].decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        if kind == TEXT:
            return self.text()
        if kind == LIST:
            return self._list(self.scalar("<I"))
        if kind not in SCALARS:
            raise EngramError(f"{self.name}: a setting has the unknown type {kind}")
        return self.scalar(SCALARS[kind])

    def _list(self, kind: int) -> list[Any]:
        if kind == TEXT:
            return [self.text() for _ in range(self.count(self.scalar("<Q"), 8))]
        if kind not in SCALARS:
            raise EngramError(f"{self.name}: a setting is a list of the unknown type {kind}")
        size = struct.calcsize(SCALARS[kind])
        n, at = self.count(self.scalar("<Q"), size), self.at
        return np.frombuffer(self.skip(n * size).content, SCALARS[kind], n, at).tolist()


def _settings(cursor: Cursor, n: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(n):
        name = cursor.text()
        if name in found:
            raise EngramError(f"{cursor.name}: the setting {name!r:.80} is there twice")
        found[name] = cursor.value(cursor.scalar("<I"))
    return found


def _alignment(name: str, settings: Mapping[str, Any]) -> int:
    """Every tensor begins at a multiple of it."""
    found = settings.get("general.alignment", 32)
    if type(found) is not int or not 8 <= found <= MOST_ALIGNMENT or found % 8:
        raise EngramError(
            f"{name}: general.alignment must be a multiple of 8 up to {MOST_ALIGNMENT}; got {found!r:.60}"
        )
    return found


def _tensors(cursor: Cursor, n: int, alignment: int) -> dict[str, Stored]:
    listed: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for _ in range(n):
        name = cursor.text()
        if name in listed:
            raise EngramError(f"{cursor.name}: the tensor {name!r:.80} is there twice")
        axes = cursor.scalar("<I")
        if not 1 <= axes <= MOST_AXES:
            raise EngramError(f"{cursor.name}: the tensor {name!r:.80} has {axes} axes; allowed: 1 to {MOST_AXES}")
        shape = tuple(cursor.scalar("<Q") for _ in range(axes))[::-1]  # the file counts columns first
        listed[name] = shape, cursor.scalar("<I"), cursor.scalar("<Q")
    start = -(-cursor.at // alignment) * alignment
    return {name: _stored(cursor, name, *about, start, alignment) for name, about in listed.items()}


def _stored(
    cursor: Cursor, name: str, shape: tuple[int, ...], kind: int, offset: int, start: int, alignment: int
) -> Stored:
    here = f"{cursor.name}: the tensor {name!r:.80}"
    if kind not in FORMATS:
        known = ", ".join(form.name for form in FORMATS.values())
        raise EngramError(
            f"{here} is stored as {NOT_READ.get(kind, f'format {kind}')}, which is not read; known: {known}"
        )
    form = FORMATS[kind]
    if 0 in shape or shape[-1] % form.numbers:
        raise EngramError(f"{here} has the shape {shape}, which does not fit {form.name}")
    end = start + offset + prod(shape) // form.numbers * form.bytes
    if offset % alignment or end > len(cursor.content):
        raise EngramError(f"{here} lies outside the file, or between its places; it is cut off or damaged")
    return Stored(shape, form, start + offset, end)


def _refuse_overlaps(name: str, stored: Mapping[str, Stored]) -> None:
    before, end = "", 0
    for tensor, at in sorted(stored.items(), key=lambda item: item[1].start):
        if at.start < end:
            raise EngramError(f"{name}: the tensors {before!r:.80} and {tensor!r:.80} overlap")
        before, end = tensor, at.end

"""Tensors that are read from a file when they are asked for, so that a model need not be in memory whole."""

import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import torch
from torch import Tensor

Tensors = Mapping[str, Tensor]  # a dict, or Unread
SMALL = 1 << 16  # bytes


class Later:
    """A tensor whose shape is known and whose numbers are computed when they are asked for.

    What is asked for a second time is kept: one pass through a model costs no memory, many passes cost no time. Its
    place is there from the beginning, which costs nothing until it is written to: whatever is made amid a pass, and
    stays, pins the memory of that pass.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: torch.dtype, make: Callable[[], Tensor], is_finite: Callable[[], bool]
    ):
        self.shape, self.is_finite, self._make = shape, is_finite, make
        self._place = empty(shape, dtype)
        self._asked = False
        self._kept: Tensor | None = None

    @classmethod
    def of(cls, tensor: Tensor) -> "Later":
        """One that is there already."""
        later = cls(tuple(tensor.shape), tensor.dtype, lambda: tensor, lambda: bool(tensor.isfinite().all()))
        later._kept = tensor
        return later

    def __call__(self) -> Tensor:
        if self._kept is not None:
            return self._kept
        tensor = self._make()
        if self._asked:
            self._kept = tensor = self._place.copy_(tensor)
        self._asked = True
        return tensor

    def then(self, change: Callable[[Tensor], Tensor]) -> "Later":
        """The same numbers in another order, of the same shape."""
        return Later(self.shape, self._place.dtype, lambda: change(self._make()), self.is_finite)


class Unread(Mapping[str, Tensor]):
    """Weights by name, each computed when it is asked for; two names may share one tensor."""

    def __init__(self, later: Mapping[str, Later]):
        self.later = dict(later)

    def __getitem__(self, name: str) -> Tensor:
        return self.later[name]()

    def __contains__(self, name: object) -> bool:
        return name in self.later

    def __iter__(self) -> Iterator[str]:
        return iter(self.later)

    def __len__(self) -> int:
        return len(self.later)


def empty(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """In pages of its own: among what comes and goes during a pass weights would leave holes, as large as a model."""
    size = prod(shape) * dtype.itemsize
    if size < SMALL:
        return torch.empty(*shape, dtype=dtype)
    return torch.frombuffer(mmap.mmap(-1, size), dtype=dtype).view(*shape)


def shape_of(tensors: Tensors, name: str) -> tuple[int, ...]:
    """Without computing its numbers, if they were not yet."""
    return tensors.later[name].shape if isinstance(tensors, Unread) else tuple(tensors[name].shape)


def holds_finite_numbers(tensors: Tensors, name: str) -> bool:
    if isinstance(tensors, Unread):
        return tensors.later[name].is_finite()
    return tensors[name].is_floating_point() and bool(tensors[name].isfinite().all())


def renamed(tensors: Tensors, names: Mapping[str, str]) -> Tensors:
    """Those of these names, new name first."""
    if isinstance(tensors, Unread):
        return Unread({new: tensors.later[old] for new, old in names.items()})
    return {new: tensors[old] for new, old in names.items()}


def joined(tensors: Tensors, new: Mapping[str, Tensor]) -> Tensors:
    """With some of them in the place of those that were there."""
    if isinstance(tensors, Unread):
        return Unread(tensors.later | {name: Later.of(tensor) for name, tensor in new.items()})
    return {**tensors, **new}

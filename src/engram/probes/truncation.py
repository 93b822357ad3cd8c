r"""What a model says with one matrix truncated: for every matrix W and share ρ, the metrics of the model with W_ρ.

    W_ρ keeps the ⌊ρ · min(shape)⌋ largest singular values of W        (engram.memory.truncation)

Metrics are means over the positions of a group: accuracy, loss (nats), p_correct, the probability of the right token,
and p_noise, that of one more token if it is given.

**Passes.** The cost of a sweep is counted in passes while it is made. One pass is what `model.forward` multiplies on
the same sequences, in all its matrix products; a partial computation counts by the multiplications that it makes. Not
counted are sums, norms, softmax and the decomposition of each matrix, which is made once and does not grow with the
sequences. ρ = 1 is the model itself and free.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.overrides import TorchFunctionMode

from engram.errors import EngramError, did_you_mean
from engram.memory.truncation import Factors, rank_of_share
from engram.models import Architecture, Weights
from engram.models.cuts import WHOLE, Asked, general, truncations
from engram.models.simplified import Simplified
from engram.models.transformer import Transformer
from engram.probes.answers import Metrics, recall_in_context
from engram.probes.probe import UNSEEN, Look, Probe, tensor_of
from engram.tasks import Batch, Task

SHARES = tuple(i / 10 for i in range(11))
SEQUENCES = 512  # unseen ones, for a map
TOKENS_AT_ONCE = 2**13  # so that the units of wide layers stay small beside the weights
PRODUCTS = (torch.matmul, Tensor.matmul, Tensor.__matmul__)
Cell = tuple[str, int]  # a matrix and its rank
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Map:
    """The metrics of a model with each of its matrices truncated to each share.

    cells           by matrix and rank; several shares of a small matrix may be the same rank
    full            the metrics of the model itself, which are those of every matrix at ρ = 1
    positions       over how many the metrics are means; without any, they are NaN
    passes          what the sweep cost, in forward passes of the whole model
    plain_passes    what it would have cost to run the model for each matrix and share
    """

    matrices: tuple[str, ...]
    shares: tuple[float, ...]
    ranks: dict[str, tuple[int, ...]]
    cells: dict[Cell, Metrics]
    full: Metrics
    positions: int
    passes: float

    @property
    def plain_passes(self) -> int:
        return len(self.matrices) * len(self.shares)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(self.full)

    def at(self, matrix: str, share: float) -> Metrics:
        """The metrics with this matrix truncated to this share."""
        return self.cells[matrix, self.ranks[matrix][self.shares.index(share)]]

    def table(self) -> list[dict[str, Any]]:
        """A row for each matrix and share."""
        places = [(name, share, rank) for name in self.matrices for share, rank in self._by_share(name)]
        return [{"matrix": name, "share": share, "rank": rank} | self.cells[name, rank] for name, share, rank in places]

    def _by_share(self, name: str) -> Iterator[tuple[float, int]]:
        return zip(self.shares, self.ranks[name], strict=True)

    def columns(self) -> Metrics:
        """The same as columns of a record: W_I2.10%.loss."""
        return {
            f"{row['matrix']}.{percent(row['share'])}.{metric}": row[metric]
            for row in self.table()
            for metric in self.metrics
        }


def percent(share: float) -> str:
    """0.1 is 10%: a point would end a part of a column's name, and only odd shares need one."""
    return f"{100 * share:.6g}%"


def matrices_of(model: Architecture) -> tuple[str, ...]:
    """The matrices of all layers, in the order of the model; none of a model that cannot be taken apart."""
    return tuple(n for n in model.names if n.startswith("W_")) if isinstance(model, Transformer | Simplified) else ()


@torch.no_grad()
def sweep(
    model: Architecture,
    w: Weights,
    batch: Batch,
    group: str = "in_context",
    shares: Sequence[float] = SHARES,
    matrices: Sequence[str] | None = None,
    noise: int | None = None,
) -> Map:
    """The metrics at the positions of a group with each matrix, all unless some are named, truncated to each share."""
    chosen = matrices_of(model) if matrices is None else tuple(matrices)
    _check(model, w, batch, group, chosen, noise)
    ranks = {name: tuple(rank_of_share(share, w[name].shape) for share in shares) for name in chosen}
    factors = {name: Factors.of(w[name]) for name in chosen}
    positions = int(batch.groups[group].sum())
    with Products() as products:
        cells = _cells(model, w, batch, group, factors, ranks, noise)
    whole = cells.pop((WHOLE, 0), _of_nothing(w, noise))
    found = {(name, rank): cells.get((name, rank), whole) for name in chosen for rank in ranks[name]}
    passes = products.multiplications / _one_pass(model, w, batch)
    return Map(chosen, tuple(shares), ranks, found, whole, positions, passes)


def _of_nothing(w: Weights, noise: int | None) -> Metrics:
    """The metrics without any position: NaN."""
    return recall_in_context(w["U"].new_zeros(0, len(w["U"])), torch.zeros(0, dtype=torch.long), noise)


def _cells(
    model: Architecture,
    w: Weights,
    batch: Batch,
    group: str,
    factors: dict[str, Factors],
    ranks: dict[str, tuple[int, ...]],
    noise: int | None,
) -> dict[Cell, Metrics]:
    """The metrics of each matrix and rank below the full one, and of the model itself; means over all portions."""
    below = {name: sorted({*ranks[name]} - {min(w[name].shape)}) for name in ranks}
    found: dict[Cell, Metrics] = {}
    for part in _portions(batch):
        rows = torch.from_numpy(part.groups[group]).to(w["E"].device)
        asked, weight = Asked.of(rows), float(rows.sum() / batch.groups[group].sum()) if rows.any() else 0.0
        if weight:
            right = tensor_of(part.targets, w).gather(1, asked.at)[asked.real]
            for name, rank, logits in truncations(model, w, tensor_of(part.tokens, w), asked, factors, below):
                _add(found.setdefault((name, rank), {}), recall_in_context(logits, right, noise), weight)
    return found


def _portions(batch: Batch) -> Iterator[Batch]:
    """A few sequences at a time."""
    B, T = batch.tokens.shape
    many = max(1, TOKENS_AT_ONCE // T)
    return (_rows(batch, slice(begun, begun + many)) for begun in range(0, B, many))


def _rows(batch: Batch, rows: slice | np.ndarray) -> Batch:
    return Batch(batch.tokens[rows], batch.targets[rows], {name: g[rows] for name, g in batch.groups.items()})


def _add(total: Metrics, metrics: Metrics, weight: float) -> None:
    for name, value in metrics.items():
        total[name] = total.get(name, 0.0) + weight * value


def _one_pass(model: Architecture, w: Weights, batch: Batch) -> int:
    """What model.forward multiplies on these sequences: on each of them the same."""
    with Products() as products:
        model.forward(w, tensor_of(batch.tokens[:1], w))
    return len(batch.tokens) * products.multiplications


def _check(
    model: Architecture, w: Weights, batch: Batch, group: str, matrices: Sequence[str], noise: int | None
) -> None:
    general(model, w)  # refuses a model that cannot be taken apart
    for field, names, allowed in (("matrices", matrices, matrices_of(model)), ("group", [group], [*batch.groups])):
        for name in names:
            if name not in allowed:
                hint = did_you_mean(name, allowed)
                raise EngramError(f"{field}: unknown {name!r}; {hint}allowed: {', '.join(allowed)}")
    if noise is not None and not 0 <= noise < len(w["U"]):
        raise EngramError(f"noise: must be a token in 0 … {len(w['U']) - 1}; got {noise}")


class Products(TorchFunctionMode):
    """Counts the multiplications of all products x @ y that are made while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.multiplications = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = func(*args, **(kwargs or {}))
        if func in PRODUCTS:
            self.multiplications += answer.numel() * args[0].shape[-1]
        return answer


def unseen_map(
    task: Task,
    model: Architecture,
    w: Weights,
    seed: int,
    group: str = "in_context",
    sequences: int = SEQUENCES,
    shares: Sequence[float] = SHARES,
    matrices: Sequence[str] | None = None,
) -> Map:
    """The map on unseen sequences: those of the task's `clean` form if it has one, and with its `noise_token`."""
    batch = _unseen(task, seed, sequences)
    return sweep(model, w, batch, group, shares, matrices, getattr(task, "noise_token", None))


def sorted_map(task: Task, model: Architecture, w: Weights, seed: int, group: str, sequences: int) -> Map:
    """The same at a lower cost, equal but for rounding: sequences with as many positions of the group stand together.

    A portion is filled up to its longest sequence, and one without any other token than the trigger has T positions.
    Probes take sequences as they come: records were made in this order, to the last digit.
    """
    batch = _unseen(task, seed, sequences)
    chosen = batch.groups.get(group)  # an unknown one is refused by the sweep
    if chosen is not None:
        batch = _rows(batch, np.argsort(chosen.sum(axis=1), kind="stable"))
    return sweep(model, w, batch, group, noise=getattr(task, "noise_token", None))


def _unseen(task: Task, seed: int, sequences: int) -> Batch:
    return getattr(task, "clean", task).sample(seed, UNSEEN, sequences)


def lacking(task: Task, model: Architecture, group: str) -> str | None:
    """In words, what is needed to truncate this model on this task; None if nothing is."""
    if not matrices_of(model):
        return "a Transformer or Simplified"
    return None if group in task.groups else f"a task with positions {group}"


class Truncation(Probe, name="probes.truncation.Truncation"):
    """The model with one matrix truncated, while it trains: the weights stay as they are.

    matrix       the matrix that is truncated
    shares       of its singular values that are kept; 1 is the model itself
    group        the positions that are read
    sequences    how many are read, none of them trained on
    """

    columns: ClassVar = ("cut.",)
    called: ClassVar = "truncation"
    matrix: str = "W_I2"
    shares: Annotated[tuple[Share, ...], Field(min_length=1)] = (0.0, 0.1, 0.2)
    group: str = "in_context"
    sequences: Annotated[int, Field(ge=1)] = SEQUENCES

    def missing(self, task: Task, model: Architecture) -> str | None:
        known = matrices_of(model)
        if known and self.matrix not in known:
            return f"a model with the matrix {self.matrix}; this one has {', '.join(known)}"
        return lacking(task, model, self.group)

    def measure(self, look: Look) -> dict[str, float]:
        training = look.task, look.model, look.w, look.seed
        found = unseen_map(*training, self.group, self.sequences, self.shares, (self.matrix,))
        return {f"cut.{name}": value for name, value in found.columns().items()}


class TruncationMap(Probe, name="probes.truncation.TruncationMap"):
    """The model with each of its matrices truncated to each of the shares 0, 0.1, …, 1.

    group        the positions that are read
    sequences    how many are read, none of them trained on
    """

    columns: ClassVar = ("map.",)
    called: ClassVar = "truncation_map"
    group: str = "in_context"
    sequences: Annotated[int, Field(ge=1)] = SEQUENCES

    def missing(self, task: Task, model: Architecture) -> str | None:
        return lacking(task, model, self.group)

    def measure(self, look: Look) -> dict[str, float]:
        found = unseen_map(look.task, look.model, look.w, look.seed, self.group, self.sequences)
        return {f"map.{name}": value for name, value in found.columns().items()}

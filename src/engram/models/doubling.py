r"""Weights written by hand that double their hops in every layer.

The residual stream has named blocks of one-hot coordinates. A layer is a table of scores between blocks of the query
and blocks of the key, W_K = β Σ score(q, k) q kᵀ, and a list of blocks that W_O copies, from where it looks, into other
blocks. One head, queries are x itself, W_V = I; no feed-forward layers, no norm.

hop_k, ⌊log₂k⌋ + 2 layers (`engram.theory.hops` has the algorithm):

    block      place: position t · letter: X_t · before: X_{t−1} · pointer_r, letter_r: find^c(t) after round r, X there
    layer 1    place t looks at place t − 1, copies letter → before
    round r    b = 0: pointer_{r−1} looks at its place;      b = 1: at what follows letter_{r−1}, up to pointer_{r−1}
               copies pointer_{r−1}, letter_{r−1} → pointer_r, letter_r          (pointer_0 = place, letter_0 = letter)

k hops of permutations, log₂k + 1 layers (`engram.tasks.composition` has the slots):

    block      place: position t, which says (a, b) · value: σ_a(b) · value_i: what 2^(i−1) hops make of b
    layer 1    (a, b) looks at (a + 1, π_{a+1}(b)), copies value → value_1
    layer i    (a, b) looks at (a + h, value_{i−1}), h = 2^(i−2), copies value_{i−1} → value_i

Where nothing is found they look at position 0, whose blocks but place and pointer are empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from engram.errors import EngramError
from engram.models.trace import Model, Weights
from engram.models.transformer import Layer, Transformer
from engram.tasks import Composition, Hops

SHARPNESS = 40.0  # β: a score that is 1 lower weighs e^{−40}
Table = Float[np.ndarray, "q k"]


@dataclass(frozen=True)
class Blocks:
    """Coordinates of the residual stream by name."""

    sizes: Mapping[str, int]

    @property
    def d(self) -> int:
        return sum(self.sizes.values())

    def __getitem__(self, name: str) -> slice:
        names = list(self.sizes)
        first = sum(self.sizes[other] for other in names[: names.index(name)])
        return slice(first, first + self.sizes[name])


def plant_hops(task: Hops, k: int) -> Model:
    """A transformer of ⌊log₂k⌋ + 2 layers that computes hop_k on every string of the task, whatever its hop token."""
    if not 0 <= k <= task.length:
        raise EngramError(f"k: a string of {task.length} letters has 0 … {task.length} hops; got {k}")
    bits, A, T = [int(bit) for bit in f"{k:b}"] if k else [], task.letters, task.T
    sizes = {"place": T, "letter": A, "before": A}
    for r in range(1, len(bits) + 1):
        sizes |= {f"pointer{r}": T, f"letter{r}": A}
    blocks = Blocks(sizes)
    model, w = _empty(blocks, 1 + len(bits), task)
    w["E"][task.first_letter : task.undefined, blocks["letter"]] = torch.eye(A, dtype=torch.float64)
    _write(w, 1, blocks, {("place", "place"): np.eye(T, k=-1)}, {"before": "letter"})
    pointer, letter = "place", "letter"
    for r, bit in enumerate(bits, 1):
        follow = {(pointer, "place"): np.eye(T)}
        seek = {(pointer, "place"): _sought(T), (letter, "before"): 2 * T * np.eye(A)}
        copies = {f"pointer{r}": pointer, f"letter{r}": letter}
        _write(w, r + 1, blocks, seek if bit else follow, copies)
        pointer, letter = f"pointer{r}", f"letter{r}"
    w["U"][task.first_letter : task.undefined, blocks[letter]] = torch.eye(A, dtype=torch.float64)
    w["U"][task.undefined, blocks[pointer].start] = 1  # it points at the sink
    w["U"][task.blank, blocks["place"].start] = 2  # it is the sink
    return Model(model, w)


def _sought(T: int) -> Table:
    """Score of place j for the pointer p where a letter is sought, for which a match adds 2T: the last j ≤ p wins.

    The sink lies between all places that match and all that do not; nothing is found after the pointer.
    """
    p, j = np.arange(T)[:, None], np.arange(T)[None, :]
    return np.where(j == 0, 1.5 * T, np.where(j <= p, j, -4.0 * T))


def plant_composition(task: Composition, hops: int) -> Model:
    """A transformer of log₂hops + 1 layers that composes so many maps, whatever the hop token of a sequence."""
    if hops not in task.powers:
        raise EngramError(f"hops: must be one of {', '.join(map(str, task.powers))}; got {hops}")
    depth, n = hops.bit_length(), task.n
    blocks = Blocks({"place": task.T, "value": n} | {f"value{i}": n for i in range(1, depth + 1)})
    model, w = _empty(blocks, depth, task)
    w["E"][task.first_value : task.blank, blocks["value"]] = torch.eye(n, dtype=torch.float64)
    _write(w, 1, blocks, {("place", "place"): _hidden(task)}, {"value1": "value"})
    for i in range(2, depth + 1):
        scores = {("place", "place"): _blocks_apart(task, 2 ** (i - 2)), (f"value{i - 1}", "place"): _slots(task)}
        _write(w, i, blocks, scores, {f"value{i}": f"value{i - 1}"})
    w["U"][task.first_value : task.blank, blocks[f"value{depth}"]] = torch.eye(n, dtype=torch.float64)
    w["U"][task.blank, blocks["place"]] = 0.5  # everywhere: it wins where no value was found
    return Model(model, w)


def _ab(task: Composition) -> tuple[np.ndarray, np.ndarray]:
    """a and b of every position after the first."""
    slot = np.arange(task.T - 1)
    return task.k - slot // task.n, slot % task.n


def _hidden(task: Composition) -> Table:
    """(a, b) looks at (a + 1, π_{a+1}(b)), and block k at the sink."""
    a, b = _ab(task)
    to_a, to_b = a + 1, task.permutations[np.minimum(a, task.k - 1), b]
    return _with_sink(2.0 * ((a[None, :] == to_a[:, None]) & (b[None, :] == to_b[:, None])), 1.0)


def _blocks_apart(task: Composition, h: int) -> Table:
    """2 for (a, ·) → (a + h, ·); the sink has 3, between one match and two."""
    a, _ = _ab(task)
    return _with_sink(2.0 * (a[None, :] == a[:, None] + h), 3.0)


def _slots(task: Composition) -> Table:
    """2 for value c → (·, c)."""
    _, b = _ab(task)
    return np.pad(2.0 * (b[None, :] == np.arange(task.n)[:, None]), ((0, 0), (1, 0)))


def _with_sink(scores: Float[np.ndarray, "slots slots"], sink: float) -> Float[np.ndarray, "T T"]:
    """The scores of all slots, with position 0 before them, which has the same score for every query."""
    table = np.pad(scores, ((1, 0), (1, 0)))
    table[:, 0] = sink
    return table


def _empty(blocks: Blocks, depth: int, task: Hops | Composition) -> tuple[Transformer, Weights]:
    """A model of so many layers of attention, all weights zero but P, which says the position, and W_V = I."""
    model = Transformer(d=blocks.d, layers=(Layer(queries="identity"),) * depth, hidden=1, scale="unit")
    w = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in model.init(task.N, task.T, 0).items()}
    w["P"][:, blocks["place"]] = torch.eye(task.T, dtype=torch.float64)
    for i in range(1, depth + 1):
        w[f"W_V{i}"] += torch.eye(blocks.d, dtype=torch.float64)
    return model, w


def _write(
    w: Weights, layer: int, blocks: Blocks, scores: Mapping[tuple[str, str], Table], copies: Mapping[str, str]
) -> None:
    """Scores by blocks of query and key, and what is copied: to which block, from which."""
    for (query, key), table in scores.items():
        w[f"W_K{layer}"][blocks[query], blocks[key]] = SHARPNESS * torch.from_numpy(table)
    for to, source in copies.items():
        w[f"W_O{layer}"][blocks[to], blocks[source]] = torch.eye(blocks.sizes[to], dtype=torch.float64)

r"""A transformer with one matrix truncated, for every matrix and many ranks, without running it anew for each.

    layer i    x ─► n(x) ─► Q, K, V ─► attention ─► mixed ─► W_O ─► x + head ─► n ─► W_I ─► units ─► W_F ─► x'

Whatever stands before a matrix does not depend on it: it is computed once, for all ranks of all matrices. What a matrix
of rank r makes of what it is shown is a sum of r terms, Σ_{i ≤ r} σ_i l_i (r_i · x), so that one rank continues another
(`Factors.products`). The last layer is computed only where logits are asked for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor

from engram.errors import EngramError
from engram.memory.truncation import Factors
from engram.models.simplified import Simplified
from engram.models.trace import Architecture, Weights
from engram.models.transformer import Layer, Transformer

WHOLE = ""  # the name under which the model appears with nothing truncated
SIMPLIFIED = {"W_F": "W_F2"}  # names that differ in the general transformer


@dataclass(frozen=True)
class Asked:
    """The positions at which logits are wanted: `at` of each sequence, filled up with others where `real` is false."""

    at: Int[Tensor, "B q"]
    real: Bool[Tensor, "B q"]

    @classmethod
    def of(cls, mask: Bool[Tensor, "B T"]) -> "Asked":
        most = int(mask.sum(dim=1).max())
        at = mask.int().argsort(dim=1, descending=True, stable=True)[:, :most]
        return cls(at, mask.gather(1, at))


class Matrix(NamedTuple):
    """A matrix in its layer: what it is shown, and what leaves the layer once it has answered."""

    shown: Float[Tensor, "B _t _in"]
    end: Callable[[Tensor], Tensor]


def general(model: Architecture, w: Weights) -> tuple[Transformer, Weights]:
    """The model as a `Transformer`; `Simplified` has layers without W_Q, and the name of W_F carries its layer."""
    if isinstance(model, Transformer):
        return model, w
    if not isinstance(model, Simplified):
        raise EngramError(f"model: a Transformer or Simplified is needed; got {type(model).__name__}")
    last = Layer(queries="identity", feed_forward="linear" if "W_F" in w else "none")
    layers = (Layer(queries="identity"), last)
    renamed = {SIMPLIFIED.get(name, name): value for name, value in w.items()}
    return Transformer(d=model.d, scale=model.scale, layers=layers), renamed


def truncations(
    model: Architecture,
    w: Weights,
    tokens: Int[Tensor, "B T"],
    asked: Asked,
    factors: Mapping[str, Factors],
    ranks: Mapping[str, Sequence[int]],
) -> Iterator[tuple[str, int, Float[Tensor, "n N"]]]:
    """Logits at the n positions that are asked for, with one matrix at a time truncated to each of its ranks.

    ranks    by the name of a matrix, increasing

    Yields (matrix, rank, logits); at last ("", 0, logits) of the model itself.
    """
    alike, renamed = general(model, w)
    back = {SIMPLIFIED.get(name, name): name for name in w}
    x = alike.embed(renamed, tokens)
    for i in range(1, len(alike.layers) + 1):
        whole, matrices = layer(alike, renamed, i, x, _places(alike, i, asked))
        for name, matrix in matrices.items():
            for rank, answer in _answers(matrix.shown, back[name], factors, ranks):
                yield back[name], rank, _logits(alike, renamed, i + 1, matrix.end(answer), asked)
        x = whole
    yield WHOLE, 0, _logits(alike, renamed, len(alike.layers) + 1, x, asked)


def _places(model: Transformer, i: int, asked: Asked) -> Int[Tensor, "B q"] | None:
    """Where the output of layer i is needed: everywhere, but of the last layer only where logits are asked for."""
    return asked.at if i == len(model.layers) else None


def _answers(
    shown: Tensor, name: str, factors: Mapping[str, Factors], ranks: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, Tensor]]:
    return factors[name].products(shown, ranks[name]) if ranks.get(name) else iter(())


def _logits(model: Transformer, w: Weights, i: int, x: Tensor, asked: Asked) -> Float[Tensor, "n N"]:
    """From what enters layer i, through all that is left."""
    for later in range(i, len(model.layers) + 1):
        x, _ = layer(model, w, later, x, _places(model, later, asked))
    return model.normed(x[asked.real]) @ w["U"].T


def layer(
    model: Transformer, w: Weights, i: int, x: Float[Tensor, "B T d"], at: Int[Tensor, "B q"] | None
) -> tuple[Float[Tensor, "B t d"], dict[str, Matrix]]:
    """What leaves layer i at the positions `at`, or everywhere; and each of its matrices as it stands there."""
    here = x if at is None else x.gather(1, at[:, :, None].expand(-1, -1, model.d))
    mixed, attending = _attention(model, w, i, x, here, at)
    whole, feeding = _feed_forward(model, w, i, here + model.biased(w, "O", i, mixed @ w[f"W_O{i}"].T))

    def end(mixed: Tensor) -> Tensor:
        return _feed_forward(model, w, i, here + model.biased(w, "O", i, mixed @ w[f"W_O{i}"].T))[0]

    matrices = {name: Matrix(shown, lambda y, mix=mix: end(mix(y))) for name, (shown, mix) in attending.items()}
    matrices[f"W_O{i}"] = Matrix(mixed, lambda y: _feed_forward(model, w, i, here + model.biased(w, "O", i, y))[0])
    return whole, {name: matrix for name, matrix in (matrices | feeding).items() if name in w}


def _attention(
    model: Transformer, w: Weights, i: int, x: Float[Tensor, "B T d"], here: Float[Tensor, "B t d"], at: Tensor | None
) -> tuple[Float[Tensor, "B t d"], dict[str, Matrix]]:
    """What W_O is shown, and the matrices before it, each with what W_O is shown once it has answered."""
    keys, queries = model.normed(x), model.normed(here)
    q = model.split(model.shown(w, "Q", i, queries), i)
    k, v = (model.split(model.shown(w, letter, i, keys), i) for letter in "KV")
    attention = model.scores(q, k, at).softmax(dim=-1)

    def by_head(letter: str, y: Tensor) -> Tensor:
        return model.split(model.biased(w, letter, i, y), i)

    matrices = {
        f"W_Q{i}": Matrix(queries, lambda y: model.mixed(model.scores(by_head("Q", y), k, at).softmax(dim=-1), v)),
        f"W_K{i}": Matrix(keys, lambda y: model.mixed(model.scores(q, by_head("K", y), at).softmax(dim=-1), v)),
        f"W_V{i}": Matrix(keys, lambda y: model.mixed(attention, by_head("V", y))),
    }
    return model.mixed(attention, v), matrices


def _feed_forward(
    model: Transformer, w: Weights, i: int, x: Float[Tensor, "B t d"]
) -> tuple[Float[Tensor, "B t d"], dict[str, Matrix]]:
    """What leaves the layer, and the matrices of its second half, where it has one."""
    if f"W_F{i}" not in w:
        return x, {}
    read, W_F = model.normed(x), w[f"W_F{i}"]
    units = model.units(w, i, read)

    def fed(y: Tensor) -> Tensor:
        return x + model.biased(w, "F", i, y)

    into = Matrix(read, lambda y: fed(model.biased(w, "I", i, y).relu() @ W_F.T))
    return fed(units @ W_F.T), {f"W_I{i}": into, f"W_F{i}": Matrix(units, fed)}

"""What exponential memories cost beside a matrix: arithmetic, and sensitivity to noise (talks on associative memories).

Keys are on the sphere, answers are z mod M. Memories are compared at the same width, or filled to the same share of
what they hold.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.overrides import TorchFunctionMode

from engram.memory import Exponential, Linear, Memory
from engram.memory.rules import hebb, targets
from engram.theory.margins import problems
from engram.values import Rows, law

Asked = Float[Tensor, "books asked d"]
Keys = Float[Tensor, "books N d"]
Values = Float[Tensor, "books M d"]

KINDS: dict[str, Callable[[int, int], Memory]] = {
    "linear": lambda d, seed: Linear(d, seed=seed),
    "exponential": lambda d, seed: Exponential(d, seed=seed),
}
ENOUGH = 0.99  # the recall of a memory that holds what it stores
ASKED = 256  # keys asked in every draw, of as many codebooks as this takes
SHARES = (1.0, 0.5)  # of what a memory holds


class Counted(TorchFunctionMode):
    """Counts the multiplications of all matrix products while it lasts."""

    def __init__(self) -> None:
        super().__init__()
        self.multiplications = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.__matmul__, Tensor.matmul, torch.matmul):
            self.multiplications += args[0].numel() * args[1].shape[-1]
        return func(*args, **(kwargs or {}))


def filled(kind: str, d: int, N: int, M: int, seed: int) -> Memory:
    """A memory of N pairs z → z mod M."""
    memory = KINDS[kind](d, seed)
    memory.store({z: z % M for z in range(N)})
    return memory


@law("costs.arithmetic")
def arithmetic(draws: int, seed: int, d: int = 64, N: int = 1000, M: int = 5) -> Rows:
    """The multiplications of one answer, counted while it is computed, for each kind of memory."""
    row = {}
    for kind in KINDS:
        memory = filled(kind, d, N, M, seed)
        asked = memory.inputs([0])
        with Counted() as counted:
            memory.respond(asked)
        row[kind] = float(counted.multiplications)
    yield row | {"ratio": row["exponential"] / row["linear"]}


@law("costs.noise")
def noise(draws: int, seed: int, d: int = 32, M: int = 5, size: float = 0.5, most: int = 2048) -> Rows:
    """For each kind the largest N = 2, 4, 8, … held at 99 %, and its recall there from keys without and with noise."""
    for i, kind in enumerate(KINDS):
        held, clean, noisy, asked = 0, 1.0, 1.0, 1
        for N in (2**k for k in range(1, most.bit_length())):
            right = torch.stack([_recall(kind, d, N, M, size, seed, f"costs.{N}.{draw}") for draw in range(draws)])
            if right[:, 0].mean() < ENOUGH:
                break
            held, (clean, noisy), asked = N, right.mean(0).tolist(), draws * max(1, ASKED // N) * min(N, ASKED)
        yield {"kind": i, "N": held, "clean": clean, "noisy": noisy, "error": 1 - noisy, "asked": asked}


@law("costs.fullness")
def fullness(draws: int, seed: int, *, kind: str, d: int, M: int = 5, size: float = 0.5, most: int = 2048) -> Rows:
    """A memory filled to shares of what it holds at 99 %: its recall from keys without and with noise."""
    held = _held(kind, d, M, draws, seed, most)
    for share in SHARES:
        N = max(1, round(share * held))
        right = [_recall(kind, d, N, M, size, seed, f"costs.full.{share}.{draw}") for draw in range(draws)]
        clean, noisy = torch.stack(right).mean(0).tolist()
        asked = draws * max(1, ASKED // N) * min(N, ASKED)
        yield {"share": share, "N": N, "clean": clean, "noisy": noisy, "error": 1 - noisy, "asked": asked}


def _held(kind: str, d: int, M: int, draws: int, seed: int, most: int) -> int:
    """The largest N of a grid of ratio 2^¼ that is held at 99 %, with all that are smaller."""
    held = 1
    for N in sorted({round(2 ** (k / 4)) for k in range(4, 4 * most.bit_length() - 3)}):
        right = [_recall(kind, d, N, M, 0.0, seed, f"costs.held.{N}.{draw}")[0] for draw in range(draws)]
        if torch.stack(right).mean() < ENOUGH:
            break
        held = N
    return held


def _recall(kind: str, d: int, N: int, M: int, size: float, seed: int, name: str) -> Tensor:
    """The share of keys that are recalled without noise, and with it, in as many codebooks as ASKED keys take."""
    books, asked, known = max(1, ASKED // N), min(N, ASKED), min(M, N)
    E, U = (problems("sphere", books, n, d, seed, f"{name}.{letter}") for letter, n in (("E", N), ("U", known)))
    moved = E[:, :asked] + size * problems("sphere", books, asked, d, seed, f"{name}.noise")
    right = torch.arange(asked) % M
    found = [batched(kind, x, E, U).argmax(-1) == right for x in (E[:, :asked], moved)]
    return torch.stack([hits.double().mean() for hits in found])


def batched(kind: str, x: Asked, E: Keys, U: Values) -> Float[Tensor, "books asked M"]:
    """The scores of the memories of KINDS, of many codebooks at once, when z → z mod M is stored."""
    M = U.shape[1]
    f = (torch.arange(E.shape[1]) % M).expand(E.shape[:2])
    if kind == "linear":
        return x @ hebb(E, targets(U, f)).mT @ U.mT
    exponents = E.shape[2] * x @ E.mT  # β = d
    return torch.stack([exponents[:, :, y::M].logsumexp(-1) for y in range(M)], dim=-1)

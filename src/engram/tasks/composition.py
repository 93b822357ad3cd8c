r"""k-fold composition: permutations that stand in the context, with hidden ones in between.

    f(σ, x) = (σ_k ∘ π_k ∘ … ∘ σ_1 ∘ π_1)(x)          π_a fixed by the task, σ_a new in every sequence

A sequence is a hop token, then the blocks a = k, k−1, …, 1, 0, each of n slots b = 0 … n−1. Slot (a, b) carries σ_a(b);
block 0 carries blanks. Position says (a, b). For n = 3, k = 2:

    tokens     2 | b a c | c b a | _ _ _        hop token | σ_2 | σ_1 | block 0
    targets    _ | _ _ _ | _ _ _ | f(σ, 0) f(σ, 1) f(σ, 2)

Asked for k' hops, the target at (a, b) is what the k' maps after block a make of b,

    (σ_{a+k'} ∘ π_{a+k'} ∘ … ∘ σ_{a+1} ∘ π_{a+1})(b),          blank where a + k' > k

so that f(σ, x) is the target at (0, x) for k' = k. All that a target depends on comes before it, and 2j hops at (a, b)
are j hops at (a, b), which give c, and then j hops at (a + j, c): a transformer can double its hops in every layer, the
first of which looks from (a, b) to (a + 1, π_{a+1}(b)).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
from jaxtyping import Int
from pydantic import Field, model_validator

from engram.errors import EngramError
from engram.tasks.batch import Batch, letter_marks
from engram.values import Value, generator

WORDS = {
    "owner": ("Anna", "Ben", "Clara", "David", "Eve"),
    "thing": ("apple", "ball", "coin", "drum", "egg"),
    "name": ("John", "Mary", "Paul", "Ruth", "Tom"),
    "role": ("doctor", "baker", "teacher", "pilot", "singer"),
    "room": ("kitchen", "garden", "hall", "cellar", "attic"),
}


class Composition(Value, name="tasks.composition.Composition"):
    """A hop token k', then k permutations of n values in context, then blanks; targets are k'-fold compositions.

    n         values that are permuted
    k         permutations in a sequence, a power of two
    hops      the numbers of hops that are asked for, equally often, among 1, 2, 4, …, k; empty: only k, the hardest
    hidden    the seed of the hidden permutations

    Ids are in the order hop tokens 1, 2, 4, …, k, values, _ (blank). The σ are the same for every `hops`.

    Wang et al. (2025), "Learning compositional functions with transformers from easy-to-hard data".
    """

    n: Annotated[int, Field(ge=2, le=4096)] = 5
    k: Annotated[int, Field(ge=1, le=1024)] = 4
    hops: tuple[int, ...] = ()
    hidden: Annotated[int, Field(ge=0, lt=2**63)] = 0

    @model_validator(mode="after")
    def _powers_of_two(self) -> "Composition":
        if self.k & (self.k - 1):
            raise ValueError(f"k: must be a power of two; got {self.k}")
        if not set(self.hops) <= set(self.powers) or list(self.hops) != sorted(set(self.hops)):
            known = ", ".join(map(str, self.powers))
            raise ValueError(f"hops: must be increasing numbers among {known}; got {list(self.hops)}")
        return self

    @property
    def powers(self) -> tuple[int, ...]:
        """1, 2, 4, …, k: the numbers of hops that have a token, whose id is their place here."""
        return tuple(2**i for i in range(self.k.bit_length()))

    @property
    def T(self) -> int:
        return 1 + (self.k + 1) * self.n

    @property
    def N(self) -> int:
        return len(self.powers) + self.n + 1

    @property
    def first_value(self) -> int:
        """The id of value 0; those below are hop tokens."""
        return len(self.powers)

    @property
    def blank(self) -> int:
        """_, the token of block 0 and the target where nothing is asked."""
        return self.N - 1

    @property
    def asked(self) -> tuple[int, ...]:
        """The numbers of hops that are asked for."""
        return self.hops or (self.k,)

    @property
    def groups(self) -> tuple[str, ...]:
        """The same for every `hops`."""
        return ("blank", *(f"hop{j}" for j in self.powers))

    @property
    def permutations(self) -> Int[np.ndarray, "k n"]:
        """The hidden π_1 … π_k: row a − 1 holds π_a(0) … π_a(n − 1)."""
        return _hidden(self.hidden, self.k, self.n)

    def marks(self, seed: int) -> list[str]:
        return [*map(str, self.powers), *letter_marks(self.n), "_"]

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        """A batch with the groups blank and hop1, hop2, hop4, …: values in a sequence that asks for so many.

        Hops are drawn last: the same seed and step give the same σ whatever is asked for.
        """
        rng = generator(seed, "data", step)
        sigma = np.argsort(rng.random((batch, self.k, self.n)), axis=2)
        hops = np.array(self.asked)[rng.integers(len(self.asked), size=batch)]
        return self.ask(sigma, hops)

    def ask(self, sigma: Int[np.ndarray, "B k n"], hops: Int[np.ndarray, " B"]) -> Batch:
        """The batch in which the permutations σ_1 … σ_k of sequence b are to be composed hops_b at a time."""
        B = len(sigma)
        first = np.searchsorted(self.powers, hops)[:, None]
        blocks = (sigma[:, ::-1] + self.first_value).reshape(B, -1)
        tokens = np.concatenate([first, blocks, np.full((B, self.n), self.blank)], axis=1)
        targets = self.oracle(tokens)
        defined = targets != self.blank
        return Batch(
            tokens, targets, {"blank": ~defined} | {f"hop{j}": defined & (hops == j)[:, None] for j in self.powers}
        )

    def sigma(self, tokens: Int[np.ndarray, "B T"]) -> Int[np.ndarray, "B k n"]:
        """The permutations σ_1 … σ_k that stand in the tokens."""
        return (tokens[:, 1 : -self.n] - self.first_value).reshape(-1, self.k, self.n)[:, ::-1]

    def has_answers(self, tokens: Int[np.ndarray, " t"]) -> bool:
        """Whether a sequence is one of the task: a hop token, k permutations, and blanks."""
        if len(tokens) != self.T or tokens[0] >= len(self.powers) or (tokens[-self.n :] != self.blank).any():
            return False
        blocks = np.sort(tokens[1 : -self.n].reshape(self.k, self.n), axis=1)
        return bool((blocks == self.first_value + np.arange(self.n)).all())

    def oracle(self, tokens: Int[np.ndarray, "B T"]) -> Int[np.ndarray, "B T"]:
        """What is to be predicted, from the tokens alone."""
        hops = np.array(self.powers)[tokens[:, 0]][:, None, None]
        maps = self.sigma(tokens)[:, np.arange(self.k)[:, None], self.permutations]  # σ_a ∘ π_a
        x = np.broadcast_to(np.arange(self.n), (len(tokens), self.k + 1, self.n)).copy()  # [a, b] begins at b
        for done in range(int(hops.max(initial=0))):
            going = x[:, : self.k - done]  # after `done` maps the next of block a is that of a + done + 1
            further = np.take_along_axis(maps[:, done:], going, axis=2)
            x[:, : self.k - done] = np.where(done < hops, further, going)
        asked = np.arange(self.k + 1)[:, None] + hops <= self.k
        slots = np.where(asked, x + self.first_value, self.blank)[:, ::-1].reshape(len(tokens), -1)
        return np.concatenate([np.full((len(tokens), 1), self.blank), slots], axis=1)


@lru_cache(maxsize=16)
def _hidden(hidden: int, k: int, n: int) -> Int[np.ndarray, "k n"]:
    rng = generator(hidden, "composition.hidden")
    drawn = np.stack([rng.permutation(n) for _ in range(k)])
    drawn.setflags(write=False)  # it is kept
    return drawn


@dataclass(frozen=True)
class Story:
    """A problem of two hops in English: what everyone knows (π), what is told (σ), the question x and its answer."""

    known: str
    told: str
    question: str
    answer: str


def story(task: Composition, seed: int = 0, x: int = 0) -> Story:
    """The first sequence of a seed as a story: things are held by people, who are in rooms.

    "John holds the apple. The doctor is in the kitchen. Where is what Anna owns?" needs what the story does not tell:
    that Anna owns the apple, and that John is the doctor. These are the hidden permutations.
    """
    if task.k != 2 or task.n > len(WORDS["thing"]) or not 0 <= x < task.n:
        most = len(WORDS["thing"])
        raise EngramError(f"story: needs k=2, n of at most {most} and x below n; got k={task.k}, n={task.n}, x={x}")
    sigma, (own, role) = task.sigma(task.sample(seed, 0, 1).tokens), task.permutations
    (holder, room), asked = sigma[0], task.ask(sigma, np.array([2]))
    every = range(task.n)
    known = [f"{WORDS['owner'][i]} owns the {WORDS['thing'][own[i]]}." for i in every]
    known += [f"{WORDS['name'][i]} is the {WORDS['role'][role[i]]}." for i in every]
    told = [f"{WORDS['name'][holder[i]]} holds the {WORDS['thing'][i]}." for i in every]
    told += [f"The {WORDS['role'][i]} is in the {WORDS['room'][room[i]]}." for i in every]
    answer = asked.targets[0, x - task.n] - task.first_value  # block 0 comes last
    return Story(" ".join(known), " ".join(told), f"Where is what {WORDS['owner'][x]} owns?", WORDS["room"][answer])

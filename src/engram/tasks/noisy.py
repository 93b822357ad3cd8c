r"""Noisy recall: the bigram task with one trigger q, whose output is often replaced by a noise token.

    z_1 ~ π_u;   z_t = q:  z_{t+1} = ν with probability α, else ō;      otherwise z_{t+1} ~ π_b(· | z_t)

    tokens     T h e _ z s o _ ! W h _ z …      q = _, ō = z in this sequence, ν = !
    group      g g g f g g g c g g g c g …      global, first, in_context

The noise token ν is the same in all sequences, the output ō is new in each: ν is global knowledge, which a feed-forward
layer can hold, and ō can be found only in context.
"""

from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import count
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field, model_validator

from engram.errors import EngramError
from engram.tasks.batch import Batch
from engram.tasks.bigram import OverText, batch_of, text_samplers, walk
from engram.tasks.corpus import Corpus, Sampler, Text, corpus_of, random_bits, unread, visible
from engram.values import generator

EXISTING = 2  # '!' in the bundled text, as in the published code
EXTRA = "✶"  # how an extra token is written


class NoisyRecall(OverText, name="tasks.noisy.NoisyRecall"):
    """After the trigger q comes the noise token ν with probability alpha, a coin at each visit, else the output ō.

    corpus    the text that gives π_u and π_b: shakespeare, or the path of a text file
    T         length of a sequence
    alpha     probability of the noise token at a visit of the trigger
    offset    the trigger is the token of frequency rank offset+1, the same in all sequences: 0 for the most frequent
    noise     existing: ν is the third letter of the alphabet, '!', followed by its row of π_b, as in the published
              code; extra: ν is a token of its own, which stands nowhere in the text and is followed by a draw from π_u

    ō is uniform on the letters of the text, new in every sequence. As in the published code no letter is excluded: ō
    may be the trigger, which is then followed by itself, or an existing noise token, which then comes at every visit.

    Chen, Bruna and Bietti (2025), "Distributional associations vs in-context reasoning".
    """

    corpus: Text = "shakespeare"
    T: Annotated[int, Field(ge=2, le=65536)] = 256
    alpha: Annotated[float, Field(ge=0, le=0.9)] = 0.5
    offset: Annotated[int, Field(ge=0)] = 0
    noise: Literal["existing", "extra"] = "existing"

    @model_validator(mode="after")
    def _tokens_exist(self) -> "NoisyRecall":
        wrong = None if unread(self) else self._lacking(corpus_of(self.corpus))
        if wrong is not None:
            raise ValueError(wrong)
        return self

    def _lacking(self, text: Corpus) -> str | None:
        """What is wrong if the text has no such trigger or no such noise token."""
        letters = len(text.alphabet)
        if self.offset >= letters:
            return f"offset: {self.offset} is beyond the {letters} tokens of the text; at most {letters - 1}"
        if self.noise == "existing" and letters <= EXISTING:
            return f"noise: 'existing' is the third letter of the text, which has {letters}; set noise='extra'"
        if self.noise == "existing" and text.ranks[self.offset] == EXISTING:
            mark = visible(text.alphabet[EXISTING])
            return f"offset: {self.offset} makes the noise token {mark!r} the trigger; choose another, or noise='extra'"
        return None

    @property
    def table(self) -> Corpus:
        """π_u and π_b of the corpus, and its alphabet. An extra token has no share of π_u; its row of π_b is π_u."""
        text = corpus_of(self.corpus)
        wrong = self._lacking(text)  # a task that a record holds is made before its text is read
        if wrong is not None:
            raise EngramError(f"task.{wrong}")
        return text if self.noise == "existing" else _with_extra(text)

    @property
    def trigger(self) -> int:
        """q."""
        return int(self.table.ranks[self.offset])

    @property
    def fixed_triggers(self) -> Int[np.ndarray, " 1"]:
        """q, under the name that it has in the bigram task."""
        return np.array([self.trigger])

    @property
    def noise_token(self) -> int:
        """ν."""
        return EXISTING if self.noise == "existing" else self.N - 1

    @property
    def letters(self) -> int:
        """Of how many tokens ō is drawn: all but an extra noise token, which is the last."""
        return self.N if self.noise == "existing" else self.N - 1

    @property
    def clean(self) -> "NoisyRecall":
        """The same task without noise, on which recall is tested: α = 0 over the same tokens."""
        return self.model_copy(update={"alpha": 0.0})

    @cached_property
    def _samplers(self) -> dict[str, Sampler]:
        return text_samplers(self.table) | {"output": Sampler.of(np.full((1, self.letters), 1 / self.letters))}

    def draw_outputs(self, rng: np.random.Generator, batch: int) -> Int[np.ndarray, " B"]:
        """ō of each sequence."""
        return self._samplers["output"].draw(np.zeros(batch, dtype=np.int64), random_bits(rng, (batch,)))

    def sample(self, seed: int, step: int, batch: int) -> Batch:
        """A batch with the groups in_context (second and later visits of the trigger), first (first visits), global.

        Coins are drawn last: the same seed and step give the same outputs, and the same draws of the text, for every α.
        """
        rng = generator(seed, "data", step)
        outputs, bits = self.draw_outputs(rng, batch), random_bits(rng, (self.T + 1, batch))
        answers = np.where(rng.random((self.T, batch)) < self.alpha, self.noise_token, outputs)
        q = self.trigger
        z = walk(self._samplers, bits, lambda t, now: np.where(now == q, answers[t], -1))
        visited = z[:, :-1] == q
        return batch_of(z, np.cumsum(visited, axis=1) * visited)


@lru_cache(maxsize=4)
def _with_extra(text: Corpus) -> Corpus:
    """One token more, the last: its letter is one that the text has not."""
    letter = next(c for c in map(chr, count(ord(EXTRA))) if c not in text.alphabet)
    bigram = np.pad(np.vstack([text.bigram, text.unigram]), ((0, 0), (0, 1)))
    return replace(text, alphabet=text.alphabet + letter, unigram=np.append(text.unigram, 0.0), bigram=bigram)

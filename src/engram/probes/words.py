"""A network that is asked in words: prompts and answers as its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from engram.errors import EngramError
from engram.models import Network

T = 128  # tokens of a row of text


@runtime_checkable
class Words(Protocol):
    """A tokenizer; bos is the token that begins a text, where a model has one."""

    @property
    def bos(self) -> int | None: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


@dataclass(frozen=True)
class Speaker:
    """A network with its tokenizer. A prompt begins with BOS where there is one: attention rests on the first token."""

    network: Network
    words: Words

    @classmethod
    def of(cls, network: Network, words: Words | None) -> "Speaker":
        if words is None:
            raise EngramError(
                f"{network.provenance.name}: it has no tokenizer, so it cannot be asked in words; "
                "put its tokenizer.json into the folder"
            )
        return cls(network, words)

    @property
    def begin(self) -> list[int]:
        return [] if self.words.bos is None else [self.words.bos]

    def tokens(self, prompt: str) -> list[int]:
        """BOS and the prompt; spaces at its end belong to the answer."""
        found = [*self.begin, *self.words.encode(prompt.rstrip())]
        if len(found) == len(self.begin):
            raise EngramError("prompt: it is empty; write the beginning of a sentence that the answer ends")
        if len(found) > self.network.sizes.T:
            limit = self.network.sizes.T
            raise EngramError(f"prompt: it has {len(found)} tokens, and this model reads at most {limit}; shorten it")
        return found

    def pieces(self, answer: str) -> list[int]:
        """The tokens of an answer, with the space before it."""
        found = self.words.encode(f" {answer.strip()}") if answer.strip() else []
        if not found:
            raise EngramError("answer: it is empty; give one word")
        return found

    def token(self, answer: str) -> int:
        """The one token that an answer is."""
        found = self.pieces(answer)
        if len(found) > 1:
            parts = " + ".join(repr(self.words.decode([one])) for one in found)
            raise EngramError(f"answer: {answer.strip()!r} is {len(found)} tokens ({parts}); give one that is a token")
        return found[0]

    def said(self, token: int) -> str:
        """A token for a person."""
        return self.words.decode([token]).strip() or repr(self.words.decode([token]))

    def end_of(self, subject: str, prompt: str) -> int:
        """The place of the last token of a subject in a prompt: the one with which its last letter is there."""
        at = prompt.find(subject)
        if at < 0 or not subject.strip():
            raise EngramError(
                f"subject: {subject!r} does not stand in the prompt {prompt!r}; write it as it stands there"
            )
        ids, text = self.tokens(prompt), prompt[: at + len(subject)]
        before = len(self.begin)
        return next(i for i in range(before, len(ids)) if len(self.words.decode(ids[before : i + 1])) >= len(text))

    def rows(self, text: str, most: int, T: int = T) -> Int[Tensor, "n T"]:
        """Rows of a text, each begun by BOS, as many as fit."""
        T, ids = min(T, self.network.sizes.T), self.words.encode(text)
        own = T - len(self.begin)
        n = min(most, len(ids) // own)
        if n < 2:
            raise EngramError(f"text: at least {2 * own} tokens are needed; got {len(ids)}; take a longer text")
        return torch.tensor([self.begin + ids[i * own : (i + 1) * own] for i in range(n)])

"""Real text as a task: pieces that are learned in one way, windows that are a pure function, texts that are checked."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.specs.encode import decode as built
from engram.specs.encode import digest_of, encode
from engram.tasks import sources
from engram.tasks.batch import UNSEEN
from engram.tasks.bpe import BYTES, Vocabulary, learn, words
from engram.tasks.sources import BLOCK, EVERY, Encoded, Folder, about_code, vocabulary_of
from engram.tasks.text import decode
from engram.tasks.text import encode as ids_of
from engram.tasks.windows import Windows, mark

SMALL = b"the cat sat on the mat; the cat ate the rat. " * 3


def naive(text: bytes, merges: int) -> list[tuple[int, int]]:
    """Counts every pair of every word anew for each merge."""
    spelled, found = [list(word) for word in words(text)], []
    for new in range(BYTES, BYTES + merges):
        pairs = Counter(pair for word in spelled for pair in pairwise(word))
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        found.append(best)
        for word in spelled:
            i = 0
            while i < len(word) - 1:
                if (word[i], word[i + 1]) == best:
                    word[i : i + 2] = [new]
                i += 1
    return found


@given(st.text(alphabet="ab \n.", max_size=60))
def test_merges_are_those_of_the_plain_way(text: str) -> None:
    content = text.encode()
    assert list(learn(Counter(words(content)), 12)) == naive(content, 12)


@given(st.binary(max_size=80))
def test_any_bytes_come_back(content: bytes) -> None:
    vocabulary = Vocabulary(learn(Counter(words(SMALL)), 30))
    assert b"".join(words(content)) == content
    assert b"".join(vocabulary.pieces[i] for i in vocabulary.encode([content])) == content


def test_words_are_spelled_as_they_were_learned() -> None:
    """Merges in their order give each word of the text the pieces that learning left it with."""
    merges = learn(Counter(words(SMALL)), 40)
    spelled = {word: list(word) for word in words(SMALL)}
    for new, pair in enumerate(merges, BYTES):
        for word in spelled.values():
            i = 0
            while i < len(word) - 1:
                if (word[i], word[i + 1]) == pair:
                    word[i : i + 2] = [new]
                i += 1
    assert all(Vocabulary(merges).spell(word) == tokens for word, tokens in spelled.items())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / "mine"
    (place / "deeper").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in ("b.txt", "a.txt", "deeper/c.py"):
        letters = rng.choice(list("abcdefgh \n"), 60_000)
        (place / name).write_text("".join(letters))
    (place / ".hidden").write_text("never read")
    (place / "picture.png").write_bytes(b"\x89PNG\0\xff")
    (place / "link.txt").symlink_to("/etc/passwd")
    return place


def test_a_folder_is_a_text(folder: Path) -> None:
    task = Windows.model_validate({"corpus": str(folder), "T": 32})
    assert isinstance(task.corpus, Folder)
    assert len(task.corpus.merges) == 768
    assert task.N == 1024
    assert task.text.train.max() < task.N
    assert len(task.text.held_out) >= BLOCK
    again = Windows.model_validate({"corpus": str(folder), "T": 32})
    assert again == task
    moved = task.corpus.model_copy(update={"path": "/elsewhere"})
    assert digest_of(task) == digest_of(task.model_copy(update={"corpus": moved}))
    assert built(encode(task)) == task  # the record has all that its tokens are


def test_a_text_that_changed_is_refused(folder: Path) -> None:
    task = Windows.model_validate({"corpus": str(folder), "T": 32})
    (folder / "a.txt").write_text("another text")
    with pytest.raises(EngramError, match="is not the text of this run"):
        task.sample(0, 0, 2)
    assert task.N == 1024
    assert len(task.marks(0)) == 1024


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "noise.bin").write_bytes(b"\0\xff\xfe")
    (tmp_path / "short.txt").write_text("too short")
    for name, said in {"empty": "no of UTF-8", "noise.bin": "not UTF-8", "nowhere": "cannot read"}.items():
        with pytest.raises(EngramError, match=said):
            Windows.model_validate({"corpus": str(tmp_path / name)})
    short = Windows.model_validate({"corpus": str(tmp_path / "short.txt")})
    with pytest.raises(EngramError, match="at least"):
        short.sample(0, 0, 1)


def test_windows_are_pieces_of_the_text_and_a_pure_function(folder: Path) -> None:
    task = Windows.model_validate({"corpus": str(folder), "T": 32})
    batch = task.sample(3, 5, 4)
    batch.check(task, 4, "all")
    assert np.array_equal(batch.tokens[:, 1:], batch.targets[:, :-1])
    assert np.array_equal(batch.tokens, task.sample(3, 5, 4).tokens)
    assert not np.array_equal(batch.tokens, task.sample(3, 6, 4).tokens)
    for step, ids in ((5, task.text.train), (UNSEEN, task.text.held_out)):
        whole = ids.astype("<i8").tobytes()
        assert all(row.astype("<i8").tobytes() in whole for row in task.sample(3, step, 4).tokens)


def test_every_twentieth_block_is_held_out() -> None:
    ids = np.arange(BLOCK * EVERY * 2 + 5)
    parts = Encoded.of(ids)
    assert sorted([*parts.train, *parts.held_out]) == ids.tolist()
    assert parts.held_out.tolist() == [*range(BLOCK), *range(BLOCK * EVERY, BLOCK * (EVERY + 1)), *ids[-5:]]


def test_groups_are_parts_of_the_window(folder: Path) -> None:
    groups = Windows.model_validate({"corpus": str(folder), "T": 64}).sample(0, 0, 1).groups
    assert [np.flatnonzero(groups[name][0])[[0, -1]].tolist() for name in ("early", "late")] == [[8, 15], [48, 63]]


def test_text_is_typed_and_read(folder: Path) -> None:
    task = Windows.model_validate({"corpus": str(folder), "T": 32})
    assert decode(task, ids_of(task, "ab é\n  cd")) == "ab é\n  cd"
    with pytest.raises(EngramError, match="at least one token"):
        ids_of(task, "")
    with pytest.raises(EngramError, match="at most 32 tokens"):
        ids_of(task, "x" * 40)


def test_marks_can_be_seen() -> None:
    marks = [mark(piece) for piece in (b" self", b"\n        ", b"\xe2", b"    ", b"\t")]
    assert marks == ["␣self", "⏎␣×8", "xe2", "␣␣␣␣", "⇥"]
    all_of_them = Windows().marks(0)
    assert len(set(all_of_them)) == len(all_of_them) == 1024


def test_code_is_the_pinned_package() -> None:
    """The vocabulary that comes with Engram is that of the sources that are installed."""
    about = about_code()
    assert sources.digest(sources._sources(about["package"])) == about["sha256"]
    assert len(vocabulary_of("code").pieces) == 1024

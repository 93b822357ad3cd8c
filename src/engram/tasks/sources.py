r"""Real texts as tokens: the sources of a pinned package, or a folder of one's own.

A text is its files in the order of their paths, each cut into pieces (engram.tasks.bpe). Its SHA-256, over paths and
contents, and its merges are its identity; where it lies is not. Of every twenty blocks of 4096 tokens the first is held
out: training never sees it.
"""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Int
from pydantic import BeforeValidator

from engram.errors import EngramError
from engram.folders import cache, private
from engram.plain import read_plain
from engram.tasks.bpe import Vocabulary, learn, words
from engram.tasks.corpus import MOST_TEXT, is_a_record_read
from engram.values import Value

MERGES = 768  # 1024 tokens
BLOCK, EVERY = 4096, 20
LEAST = 4 * BLOCK  # tokens of a text
MOST_FILES = 20_000
NAMED = ("code",)
Contents = list[tuple[str, bytes]]  # path in the text, and what stands there


class Folder(Value, name="tasks.sources.Folder"):
    """A text of the user's own: all UTF-8 files of a folder, or one file.

    path      where it was
    sha256    of the paths and contents of its files
    merges    the pairs of tokens that are joined, the first first
    """

    unhashed = frozenset({"path"})
    path: str
    sha256: str
    merges: tuple[tuple[int, int], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Folder) and (self.path, self.sha256, self.merges) == (
            other.path,
            other.sha256,
            other.merges,
        )

    def __hash__(self) -> int:
        return hash((self.path, self.sha256))

    @classmethod
    def at(cls, path: str) -> "Folder":
        """The text that a user names himself. It is read now, so that he is told at once."""
        if is_a_record_read():
            raise EngramError(f"task.corpus: a record names a folder with its SHA-256 and merges; got {path!r}")
        place = Path(path).resolve()
        contents = _own_files(place)
        counts = Counter[bytes]()
        for _, content in contents:
            counts.update(words(content))
        return cls(path=str(place), sha256=digest(contents), merges=learn(counts, MERGES))


def _named(source: Any) -> Any:
    return Folder.at(source) if isinstance(source, str) and source not in NAMED else source


Source = Annotated[Literal["code"] | Folder, BeforeValidator(_named)]  # what real text a task may be made of


def digest(contents: Contents) -> str:
    """SHA-256 over all paths and contents."""
    total = hashlib.sha256()
    for path, content in contents:
        total.update(f"{path}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


@lru_cache(maxsize=1)
def about_code() -> dict[str, Any]:
    """The package whose sources "code" is, their SHA-256 and merges; made by `engram.tasks.sources.describe`."""
    return json.loads((files("engram") / "data/texts/code.json").read_text(encoding="utf-8"))


def describe(package: str) -> dict[str, Any]:
    """What data/texts/code.json holds, of an installed package."""
    contents = _sources(package)
    counts = Counter[bytes]()
    for _, content in contents:
        counts.update(words(content))
    about = {"package": package, "version": version(package), "sha256": digest(contents)}
    return about | {"merges": learn(counts, MERGES)}


def vocabulary_of(source: str | Folder) -> Vocabulary:
    """Its tokens; no text is read for them."""
    return _vocabulary(source.merges if isinstance(source, Folder) else _tuples(about_code()["merges"]))


@lru_cache(maxsize=8)
def _vocabulary(merges: tuple[tuple[int, int], ...]) -> Vocabulary:
    return Vocabulary(merges)


def _tuples(pairs: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((a, b) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Encoded:
    """A text as tokens, in its two parts."""

    train: Int[np.ndarray, " n"]
    held_out: Int[np.ndarray, " m"]

    @classmethod
    def of(cls, ids: Int[np.ndarray, " n"]) -> "Encoded":
        out = np.arange(len(ids)) // BLOCK % EVERY == 0
        return cls(ids[~out], ids[out])


@lru_cache(maxsize=4)
def encoded(source: str | Folder) -> Encoded:
    """The tokens of a text: of the files that are there now, if they are those that it was made of."""
    contents = _checked(source)
    vocabulary = vocabulary_of(source)
    key = hashlib.sha256(json.dumps([digest(contents), vocabulary.merges]).encode()).hexdigest()
    ids = _kept(key)
    if ids is None:
        ids = vocabulary.encode(content for _, content in contents).astype(np.int64)
        _keep(key, ids)
    if len(ids) < LEAST:
        raise EngramError(f"task.corpus: a text needs at least {LEAST:,} tokens; this one has {len(ids):,}")
    return Encoded.of(ids)


def _checked(source: str | Folder) -> Contents:
    if isinstance(source, Folder):
        contents, wanted = _own_files(Path(source.path)), source.sha256
        fix = "restore its files, or start a new run"
    else:
        about = about_code()
        contents, wanted = _sources(about["package"]), about["sha256"]
        fix = f"install it again: pip install --force-reinstall {about['package']}=={about['version']}"
    if digest(contents) != wanted:
        name = source.path if isinstance(source, Folder) else about_code()["package"]
        raise EngramError(f"task.corpus: {name} is not the text of this run, SHA-256 {wanted[:12]}…; {fix}")
    return contents


def _sources(package: str) -> Contents:
    """The Python files of an installed package without its tests."""
    found = find_spec(package)
    try:
        there = version(package)
    except PackageNotFoundError:
        there = "none"
    if found is None or found.origin is None or there == "none":
        raise EngramError(f"task.corpus: 'code' is the source of {package}, which is not installed; pip install it")
    root = Path(found.origin).parent
    paths = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.py"))
    return [(path, (root / path).read_bytes()) for path in paths if "tests" not in path.split("/")]


def _own_files(place: Path) -> Contents:
    """Every plain UTF-8 file below a folder in the order of paths; hidden ones and links are left out."""
    try:
        if not place.is_dir():
            return [_utf8(place.name, read_plain(place, MOST_TEXT, follow=True), place)]
        paths = sorted(p.relative_to(place).as_posix() for p in place.rglob("*") if p.is_file() and not p.is_symlink())
        seen = [path for path in paths if not any(part.startswith(".") for part in path.split("/"))]
        if len(seen) > MOST_FILES:
            raise EngramError(f"task.corpus: {place} has more than {MOST_FILES:,} files; name a smaller folder")
        read = [(path, read_plain(place / path, MOST_TEXT)) for path in seen]
    except OSError as error:
        raise EngramError(
            f"task.corpus: cannot read {str(place)!r} ({error.strerror}); name a folder of texts, or {NAMED[0]!r}"
        ) from None
    texts = [(path, content) for path, content in read if _is_text(content)]
    if not texts or sum(len(content) for _, content in texts) > MOST_TEXT:
        what = f"more than {MOST_TEXT >> 20} MB" if texts else "no"
        raise EngramError(f"task.corpus: {place} has {what} of UTF-8 text; name another folder")
    return texts


def _utf8(name: str, content: bytes, place: Path) -> tuple[str, bytes]:
    if not _is_text(content):
        raise EngramError(f"task.corpus: {place} is not UTF-8 text; convert it first")
    return name, content


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in content and bool(content)


def _file(key: str) -> Path:
    return private(cache() / "texts") / f"{key}.npy"


def _kept(key: str) -> Int[np.ndarray, " n"] | None:
    """What was encoded here before; a damaged file is made again."""
    try:
        return np.load(_file(key), allow_pickle=False).astype(np.int64)
    except (OSError, ValueError, RuntimeError, EOFError):
        return None


def _keep(key: str, ids: Int[np.ndarray, " n"]) -> None:
    try:
        part = _file(key).with_suffix(".part.npy")
        np.save(part, ids.astype(np.uint16))
        part.replace(_file(key))
    except (OSError, RuntimeError):
        return  # a cache only

"""English prose that is installed anyway: paragraphs from the docstrings of sympy, which torch needs.

Paragraphs have at least forty words and no signs of code or formulas; each occurs once, in the order of the files.
"""

import ast
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile

from engram.errors import EngramError
from engram.folders import cache, private
from engram.plain import read_plain

PACKAGE = "sympy"
SIGNS = re.compile(r"[`\\{}=_|<>*:]")  # of code, formulas and markup
LEAST = 40  # words
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
REMEDY = "name a text of yours with --text"
MOST = 1 << 24  # bytes of a text of the user


def installed_prose() -> str:
    """All paragraphs, with an empty line between them; once found they are kept, by the version of the package."""
    try:
        place = cache() / "prose" / f"{PACKAGE}-{version(PACKAGE)}.txt"
    except PackageNotFoundError:
        raise EngramError(f"text: {PACKAGE}, from whose docstrings it is taken, is not installed; {REMEDY}") from None
    with suppress(OSError, UnicodeDecodeError):
        return read_plain(place, MOST).decode()
    found = _found()
    with suppress(OSError, RuntimeError):  # what cannot be kept is looked for again
        with NamedTemporaryFile(dir=private(place.parent), delete=False) as file:
            file.write(found.encode())
        os.replace(file.name, place)
    return found


def _found() -> str:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EngramError(f"text: {PACKAGE} is not installed as files; {REMEDY}")
    root = Path(next(iter(spec.submodule_search_locations)))
    files = (file for file in sorted(root.rglob("*.py")) if "tests" not in file.relative_to(root).parts)
    return "\n\n".join(dict.fromkeys(p for file in files for p in _paragraphs(file)))


def _paragraphs(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        for words in map(str.split, re.split(r"\n\s*\n", text or "")):
            if len(words) >= LEAST and not SIGNS.search(" ".join(words)):
                yield " ".join(words)


def prose_of(path: Path | None) -> str:
    """A text of the user in UTF-8, or the installed one."""
    if path is None:
        return installed_prose()
    try:
        return read_plain(path, MOST, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EngramError(f"text: {path} is not UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise EngramError(f"text: {path} cannot be read ({error.strerror}); give a text file in UTF-8") from None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

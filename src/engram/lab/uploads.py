"""A run on data that a page sends: a text whose letters a task takes its statistics from, or a table of facts.

The record carries what it needs of them (engram.records.writer): no file of this machine is read or kept.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engram.errors import EngramError
from engram.facts.learn import spec_of_file
from engram.lab.presets import chosen, preset_called, takes_text
from engram.lab.upload_messages import MOST_UPLOAD, Upload
from engram.records.about import Purpose, change
from engram.records.writer import begin
from engram.specs import Train
from engram.specs.settings import with_settings
from engram.specs.spec import run_id
from engram.tasks.corpus import TextFile

OF_FACTS = {"steps": 2000, "width": None}  # what may be set of a training on facts


def written(asked: Upload, home: Path) -> tuple[str, str]:
    """The name of the run, which has begun on disk; and what was guessed of the table, in words."""
    content = _bytes(asked.content)
    spec, guessed = _on_text(asked, content) if asked.kind == "text" else _on_facts(asked, content)
    folder = begin(spec, home)
    change(folder, lambda about: about.with_purpose(_purpose(asked)))
    return run_id(spec), guessed


def _bytes(text: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise EngramError("content: not UTF-8 text; convert it first") from None
    if len(content) > MOST_UPLOAD:
        raise EngramError(f"content: {len(content):,} bytes; at most {MOST_UPLOAD:,} are taken")
    if "\0" in text:
        raise EngramError("content: not a text, it has zero bytes in it; give a text file")
    return content


def _on_text(asked: Upload, content: bytes) -> tuple[Train, str]:
    preset = preset_called(asked.preset or "birth.joint")
    if not takes_text(preset.spec):
        raise EngramError(
            f"preset: {asked.preset} takes no text of letters; choose one on bigrams, such as birth.joint"
        )
    text = TextFile.of(_name(asked.name), content)
    plain = chosen(asked.preset or "birth.joint", asked.seed, asked.settings)
    return with_settings(
        plain, {"task.corpus": text.model_dump(include={"path", "sha256"}) | {"class": text.stable_name}}
    ), ""


def _on_facts(asked: Upload, content: bytes) -> tuple[Train, str]:
    """As `engram fact learn` makes it."""
    for field, value in asked.settings.items():
        if field not in OF_FACTS or isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 10**7:
            raise EngramError(
                f"{field}: must be a whole number from 1; of facts these can be set: {', '.join(OF_FACTS)}"
            )
    given = {**OF_FACTS, **asked.settings}
    with _as_a_file(_name(asked.name), content) as path, warnings.catch_warnings(record=True) as guessed:
        warnings.simplefilter("always")
        spec = spec_of_file(path, given["steps"], asked.seed, width=given["width"])
    return spec, " ".join(str(guess.message).replace(str(path), path.name) for guess in guessed)


@contextmanager
def _as_a_file(name: str, content: bytes) -> Iterator[Path]:
    """For as long as it is read; errors name the file as its owner does."""
    with TemporaryDirectory(prefix="engram-upload-") as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            yield path
        except EngramError as error:
            raise EngramError(str(error).replace(str(path), f"content: {name}")) from None


def _name(name: str) -> str:
    """That of the file alone, as a file may be called anywhere."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(letter for letter in last if letter.isprintable() and letter not in '<>:"|?*')
    return kept[:100].strip(". ") or "upload"


def _purpose(asked: Upload) -> Purpose:
    about: dict[str, Any] = {"label": _name(asked.name), "settings": dict(asked.settings)}
    if asked.kind == "facts":
        return Purpose(experiment="fact learn", **about)
    return Purpose(experiment=preset_called(asked.preset or "birth.joint").experiment.name, scale="quick", **about)

"""about.json: what a run is to a person. It lies beside the record and outside its digest; no number depends on it.

made_for    for what it was run, the first one first: experiment, scale, label, and the fields that were set
began       when its Spec was written, in UTC
snapshots   steps between stored weights that were requested besides those of the plan
tags, note  a user's own words
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engram.errors import EngramError
from engram.plain import read_plain
from engram.records import files
from engram.records.files import Place
from engram.records.guard import refuse_link

NAME = "about.json"
MOST = 1 << 20  # bytes of the file
Word = Annotated[str, Field(min_length=1, max_length=100)]


class Purpose(BaseModel):
    """What a run was made for; `settings` are the fields that a user overrode, by their dotted names."""

    model_config = ConfigDict(frozen=True)
    experiment: Word
    scale: str = ""
    label: str = ""
    settings: dict[str, Any] = {}

    @property
    def words(self) -> str:
        """What tells the run from others of its experiment: "frozen · K=3"."""
        settings = ", ".join(f"{name.rpartition('.')[2]}={value}" for name, value in self.settings.items())
        return " · ".join(filter(None, [self.label, settings]))


class About(BaseModel):
    """What about.json says; a run without one has an empty one."""

    model_config = ConfigDict(frozen=True)
    made_for: tuple[Purpose, ...] = ()
    began: datetime | None = None
    snapshots: Annotated[int, Field(ge=1)] | None = None
    tags: tuple[Word, ...] = ()
    note: Annotated[str, Field(max_length=10_000)] = ""

    def with_purpose(self, purpose: Purpose) -> "About":
        known = purpose in self.made_for
        return self if known else self.model_copy(update={"made_for": (*self.made_for, purpose)})


def read(place: Place) -> About:
    """What is said about a run; a damaged file is named, and nothing of the run is lost with it."""
    path = place / NAME
    if not path.exists():
        return About()
    try:
        content = read_plain(path, MOST) if isinstance(path, Path) else files.contents(path)
        return About.model_validate_json(content)
    except (OSError, ValueError, ValidationError):
        fix = "remove this file or mend it; the run itself does not depend on it"
        raise EngramError(f"record {place.name}: {NAME} is unreadable; {fix}") from None


def change(folder: Path, how: Callable[[About], About]) -> About:
    """Says something else about a run, from now on; with the time at which its Spec was written."""
    refuse_link(folder)
    before = read(folder)
    began = before.began or began_at(folder)
    after = how(before.model_copy(update={"began": began}))
    if after != before:
        write(folder, after)
    return after


def with_tags(about: About, tags: Sequence[str], remove: bool = False) -> About:
    """With these tags, or without them."""
    if not tags:
        raise EngramError("runs tag: name at least one tag, as in: engram runs tag RUN good")
    left = [tag for tag in about.tags if tag not in tags]
    return _checked(about, tags=left if remove else [*left, *dict.fromkeys(tags)])


def with_note(about: About, note: str) -> About:
    return _checked(about, note=note)


def _checked(about: About, **changed: Any) -> About:
    """Nothing is written that could not be read back."""
    try:
        return About.model_validate({name: getattr(about, name) for name in About.model_fields} | changed)
    except ValidationError as error:
        first = error.errors()[0]
        raise EngramError(f"{first['loc'][0]}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def write(folder: Path, about: About) -> None:
    with files.writing_to(folder):
        files.replace(folder / NAME, (about.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode())


def began_at(place: Place) -> datetime | None:
    """When the Spec was written, as the file system knows it; a bundle has no clock."""
    if not isinstance(place, Path):
        return None
    try:
        return datetime.fromtimestamp(int((place / "spec.json").stat().st_mtime), UTC)
    except OSError:
        return None


def label_in_words(label: Any) -> str:
    """The label of an experiment's file: a word, a number, or a tuple of these; none where there is only one."""
    parts = label if isinstance(label, tuple) else (label,)
    return ", ".join(str(part) for part in parts if part is not None)

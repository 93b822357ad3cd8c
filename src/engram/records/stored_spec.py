"""A Spec as the plain JSON that it is stored as: what can be said about it without building it or running its code."""

from collections.abc import Iterator
from typing import Any

from engram.errors import EngramError

SPECS = {"records.spec.Train": "Train", "records.spec.Check": "Check", "records.spec.Search": "Search"}
TAGS = ("class", "file", "sha256_of_file", "revision")
MOST_LETTERS = 40  # of a value that is listed; longer ones are tables


def classes(data: Any) -> Iterator[dict[str, Any]]:
    """Every description within a Spec, itself first."""
    if isinstance(data, dict):
        if "class" in data:
            yield data
        data = list(data.values())
    for item in data if isinstance(data, list) else ():
        yield from classes(item)


def own_files(data: Any) -> dict[str, str]:
    """The user's files whose classes occur in a Spec, with the digest that it names for each."""
    return {str(found["file"]): str(found.get("sha256_of_file")) for found in classes(data) if "file" in found}


def kind_of(data: Any) -> str:
    """Train, Check or Search."""
    found = SPECS.get(data.get("class")) if isinstance(data.get("class"), str) else None
    if found is None:
        raise EngramError("spec.json does not hold a Spec")
    return found


def fields(data: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every field with its dotted name, within lists and dicts too: model.layers.0.heads, tests.x.K."""
    for name, item in data.items():
        if name not in TAGS:
            yield from _fields(item, f"{prefix}{name}")


def short_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Those whose value is no table."""
    return {name: value for name, value in fields(data) if len(str(value)) <= MOST_LETTERS}


def numbers(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Of these, what is no word: words name classes and ways, which the title says."""
    yield from ((name, value) for name, value in short_fields(data).items() if not isinstance(value, str))


def _fields(item: Any, name: str) -> Iterator[tuple[str, Any]]:
    """A description by its class and its fields; a list or dict that holds some item by item; all else as it is."""
    inside = dict(enumerate(item)) if isinstance(item, list) else item
    if isinstance(item, dict) and "class" in item:
        yield name, str(item["class"]).rpartition(".")[2]
        yield from fields(item, f"{name}.")
    elif isinstance(inside, dict) and any(isinstance(part, dict) and "class" in part for part in inside.values()):
        for key, part in inside.items():
            yield from _fields(part, f"{name}.{key}")
    else:
        yield name, item

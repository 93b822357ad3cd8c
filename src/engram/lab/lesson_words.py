"""The words of a lesson: text with marks, links into a run, and numbers that a run has measured.

    **strong**   *emphasis*   `code`   [the memory](engram:step=64&panel=wall)   {recall.W_O2@64}   \\* is an asterisk

Everything is data for the page, which shows it as text: nothing here can become HTML.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from engram.errors import EngramError, did_you_mean

Words = list[dict[str, Any]]
PANELS = (
    "timeline",
    "wall",
    "attention",
    "circuit",
    "facts",
    "interventions",
    "spectrum",
    "branches",
    "theory",
    "settings",
)
SELECTS = {"matrix": "wall", "minus": "wall", "basis": "wall", "head": "attention", "text": "attention"} | {
    "part": "circuit",
    "find": "facts",
}  # what a link may choose, and in which panel
KEYS = ("run", "step", "panel", *SELECTS)
NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
MEASURED = re.compile(r"(?:(?P<run>[a-z][\w-]*):)?(?P<column>[A-Za-z][^@{}]*)@(?P<step>\d{1,9}|last)")
MARKS = re.compile(
    r"\\(?P<plain>[^\w\s])|`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|\*(?P<em>[^*]+)\*"
    r"|(?P<image>!?)\[(?P<words>[^\]\[]+)\]\((?P<target>[^)]*)\)|\{(?P<value>[^{}]*)\}|(?P<odd>[*`{}\\])"
)
FORMS = {
    "step": (r"\d{1,9}|last", "a step, or last"),
    "minus": (r"\d{1,9}", "a step"),
    "basis": (r"memory|raw", "memory or raw"),
    "head": (r"[1-9]\d*\.[1-9]\d*", "a layer and a head, as in 2.1"),
    "run": (r"[a-z][\w-]*", "the name of a run of this lesson"),
}


class Wrong(EngramError):
    """What a lesson cannot say, and the line where it does."""

    def __init__(self, line: int, why: str):
        super().__init__(f"line {line}: {why}")
        self.line = line


def words(text: str, line: int) -> Words:
    """A paragraph that begins at a line, part by part."""
    return [part for part in _parts(text, line) if part.get("text") != ""]


def _parts(text: str, line: int) -> Iterator[dict[str, Any]]:
    end = 0
    for found in MARKS.finditer(text):
        here = line + text.count("\n", 0, found.start())
        yield _plain(text[end : found.start()])
        yield _marked(found, here)
        end = found.end()
    yield _plain(text[end:])


def _plain(text: str) -> dict[str, Any]:
    return {"text": text.replace("\n", " ")}


def _marked(found: re.Match[str], line: int) -> dict[str, Any]:
    kind = next(name for name in ("plain", "code", "strong", "em", "words", "value", "odd") if found[name] is not None)
    if kind == "odd":
        raise Wrong(line, f"{found['odd']} is not closed; write \\{found['odd']} for the sign itself")
    if kind == "plain":
        return _plain(found["plain"])
    if kind == "value":
        return {"value": measured(found["value"], line)}
    if kind != "code" and MARKS.search(found[kind]):
        raise Wrong(line, f"{found[kind]!r}: one mark within another is not known; write one of them")
    return _plain(found[kind]) | ({"go": _target(found, line)} if kind == "words" else {"mark": kind})


def measured(text: str, line: int) -> dict[str, Any]:
    """recall.W_O2@64, or of another run of the lesson narrow:recall.W_O2@last; the line is told with it."""
    found = MEASURED.fullmatch(text.strip())
    if found is None:
        raise Wrong(line, f"{{{text}}}: a number that was measured is {{column@step}}; write \\{{ for a brace")
    return {"run": found["run"], "column": found["column"], "step": step_of(found["step"]), "line": line}


def step_of(text: str) -> int | str:
    return text if text == "last" else int(text)


def _target(found: re.Match[str], line: int) -> dict[str, Any]:
    """Where a link leads: engram:step=64&panel=wall&matrix=W_O2."""
    target = found["target"]
    if found["image"]:
        raise Wrong(line, "pictures are not known; link to a panel of the run")
    if not target.startswith("engram:"):
        raise Wrong(line, f"({target}): a link leads into the run, as in (engram:step=64&panel=wall)")
    given = _given(target.removeprefix("engram:"), line)
    for key, value in given:
        _refuse(key, value, line)
    if len({key for key, _ in given}) < len(given):
        raise Wrong(line, f"({target}): a key is there twice")
    return _led({key: step_of(value) if key in ("step", "minus") else value for key, value in given}, line)


def _given(query: str, line: int) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, strict_parsing=True, keep_blank_values=True, max_num_fields=len(KEYS))
    except ValueError:
        raise Wrong(line, f"(engram:{query}): write key=value&key=value; keys: {', '.join(KEYS)}") from None


def _refuse(key: str, value: str, line: int) -> None:
    if key not in KEYS:
        raise Wrong(line, f"{key}: no such key; {did_you_mean(key, KEYS)}allowed: {', '.join(KEYS)}")
    if key == "panel" and value not in PANELS:
        raise Wrong(line, f"panel={value}: no such panel; {did_you_mean(value, PANELS)}allowed: {', '.join(PANELS)}")
    form, told = FORMS.get(key, (r".{1,200}", "some words, at most 200 letters"))
    if not re.fullmatch(form, value, re.DOTALL):
        raise Wrong(line, f"{key}={value}: must be {told}")


def _led(go: dict[str, Any], line: int) -> dict[str, Any]:
    """What is chosen says in which panel it is."""
    panels = {SELECTS[key] for key in go if key in SELECTS} | ({go["panel"]} if "panel" in go else set())
    if len(panels) > 1:
        raise Wrong(line, f"a link leads to one panel; this one leads to {' and '.join(sorted(panels))}")
    return go | ({"panel": panels.pop()} if panels else {}) | {"line": line}


def each(blocks: Any, wanted: Callable[[dict[str, Any]], Any]) -> Iterator[Any]:
    """What is wanted of every part of some blocks."""
    if isinstance(blocks, dict):
        if (found := wanted(blocks)) is not None:
            yield found
        blocks = list(blocks.values())
    for part in blocks if isinstance(blocks, list) else ():
        yield from each(part, wanted)


def refuse(line: int, why: str) -> NoReturn:
    raise Wrong(line, why)

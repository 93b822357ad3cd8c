"""The blocks of a lesson: headings, paragraphs, lists and questions. A line that is none of them is an error.

## A heading            - an item of a list            :::choice … :::answer … :::
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from engram.lab.lesson_words import NUMBER, Wrong, measured, refuse, words

Line = tuple[int, str]
Block = dict[str, Any]
KINDS = (":::choice", ":::number")
ANSWER, END = ":::answer", ":::"
CHOICE = re.compile(r"- \((?P<right>[ x])\) (?P<words>\S.*)")
RIGHT = re.compile(rf"= (?:(?P<value>{NUMBER})|(?P<column>\S+@\S+)) within (?P<within>{NUMBER})")
STRANGE = {
    r"#": "a heading of a lesson begins with ## and a blank",
    r">": "quotations are not known; write plain text",
    r"\|": "tables are not known; write a list",
    r"```|~~~": "blocks of code are not known; write `code` within a line",
    r"\d+[.)] ": "numbered lists are not known; begin each item with - and a blank",
    r"[*+] ": "an item of a list begins with - and a blank",
    r"(?:[-=_*] ?){3,}$": "rules are not known; use a heading",
    r"\s": "a line begins without blanks, but for the further lines of an item, which have two",
    r":::": f"no such block; allowed: {', '.join(KINDS)}, with {ANSWER} and {END}",
}


def blocks(lines: Sequence[Line]) -> list[Block]:
    """Text and questions, in their order; questions are numbered."""
    found, i = list[Block](), 0
    while i < len(lines):
        line = lines[i][1]
        if line in KINDS:
            end = _end(lines, i)
            found.append(_question(lines[i : end + 1], sum(block["kind"] == "question" for block in found)))
            i = end + 1
        elif line:
            chunk = list(takewhile(lambda one: one[1] and one[1] not in KINDS, lines[i:]))
            found.append(_text(chunk))
            i += len(chunk)
        else:
            i += 1
    return found


def _end(lines: Sequence[Line], begin: int) -> int:
    """The place of the line that ends a question."""
    for i in range(begin + 1, len(lines)):
        if lines[i][1] == END:
            return i
        if lines[i][1] in KINDS:
            break
    raise Wrong(lines[begin][0], f"the question that begins here does not end; its last line is {END}")


def _text(chunk: Sequence[Line]) -> Block:
    number, first = chunk[0]
    if first.startswith("## "):
        if len(chunk) > 1:
            raise Wrong(chunk[1][0], "leave an empty line below a heading")
        return {"kind": "heading", "words": words(first.removeprefix("## ").strip(), number)}
    if first.startswith("- "):
        return {"kind": "list", "items": [words(text, line) for line, text in _items(chunk)]}
    for line, text in chunk:
        _refuse_strange(line, text)
    return {"kind": "text", "words": words("\n".join(text for _, text in chunk), number)}


def _items(chunk: Sequence[Line]) -> list[Line]:
    items = list[Line]()
    for line, text in chunk:
        if text.startswith("- "):
            items.append((line, text.removeprefix("- ").strip()))
        elif text.startswith("  "):
            items[-1] = (items[-1][0], f"{items[-1][1]}\n{text.strip()}")
        else:
            refuse(line, "leave an empty line below a list, or begin its further lines with two blanks")
    return items


def _refuse_strange(line: int, text: str) -> None:
    if text.startswith("- "):
        raise Wrong(line, "leave an empty line above a list")
    for pattern, why in STRANGE.items():
        if re.match(pattern, text):
            raise Wrong(line, why)


def _question(lines: Sequence[Line], n: int) -> Block:
    number, kind = lines[0]
    at = [i for i, (_, line) in enumerate(lines) if line == ANSWER]
    if len(at) != 1:
        raise Wrong(number, f"a question has one line {ANSWER}, below which its hidden answer stands; found {len(at)}")
    asked, answer = lines[1 : at[0]], blocks(lines[at[0] + 1 : -1])
    if not answer:
        raise Wrong(lines[at[0]][0], "the answer is empty; say why it is so")
    read = _choice if kind == ":::choice" else _number
    return {"kind": "question", "n": n, **read(asked, number), "answer": answer}


def _choice(lines: Sequence[Line], number: int) -> Block:
    """Some text, then the choices, one of them right."""
    found = [(line, CHOICE.fullmatch(text)) for line, text in lines]
    choices = [(line, one) for line, one in found if one]
    right = [i for i, (_, one) in enumerate(choices) if one["right"] == "x"]
    if len(choices) < 2 or len(right) != 1:
        told = f"{len(choices)} and {len(right)}"
        raise Wrong(number, f"a choice has two lines - ( ) or more, one of them - (x); found {told}")
    asked = [one for one, (_, choice) in zip(lines, found, strict=True) if choice is None]
    return {
        "ask": _asked(asked, number),
        "choices": [words(o["words"], line) for line, o in choices],
        "right": right[0],
    }


def _number(lines: Sequence[Line], number: int) -> Block:
    """Some text, then the number, and how far from it is still right."""
    at = [i for i, (_, text) in enumerate(lines) if text.startswith("= ")]
    found = RIGHT.fullmatch(lines[at[0]][1]) if len(at) == 1 else None
    if found is None:
        form = "= 0.9 within 0.05, or = recall.W_O2@64 within 0.05"
        raise Wrong(lines[at[-1]][0] if at else number, f"a number is asked for with one line {form}")
    line = lines[at[0]][0]
    right = {"value": float(found["value"])} if found["value"] else {"measured": measured(found["column"], line)}
    asked = [one for i, one in enumerate(lines) if i != at[0]]
    return {"ask": _asked(asked, number), "number": right | {"within": abs(float(found["within"]))}}


def _asked(lines: Sequence[Line], number: int) -> list[Block]:
    """Text alone: a question within a question has no place."""
    return blocks(lines) or refuse(number, "the question is empty; say what is asked")

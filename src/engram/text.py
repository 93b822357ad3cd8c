"""Text that others wrote, as it may go to a terminal, a log or a figure: what it would do there is shown instead."""

import re

CONTROLS = re.compile(  # C0, DEL and C1; marks that turn the direction of writing; line and paragraph ends; half pairs
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""The text in one line, with every control character as its code: it moves no cursor and turns no letters.

    >>> print(printable("red \x1b[31m, \u202e, two\nlines"))
    red \x1b[31m, \u202e, two\x0alines
    """
    return CONTROLS.sub(lambda found: _code(found[0]), text)


def _code(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}"


def printable_json(text: str) -> str:
    r"""The same JSON, with every control character as \u…: a reader finds the same text in it."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

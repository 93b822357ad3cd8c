"""Text that others wrote, as a figure may show it."""

from engram.text import printable

NO_WIDTH = "\u200b"  # before a name that begins with "_": a legend leaves such labels out


def literal(text: str) -> str:
    """Drawn letter by letter: a dollar begins no formula, and no name is left out of a legend."""
    shown = printable(text).replace("$", r"\$")
    return f"{NO_WIDTH}{shown}" if shown.startswith("_") else shown


def plain(drawn: str) -> str:
    """What a figure shows of a text of `literal`, for the file of its numbers."""
    return drawn.replace(r"\$", "$").removeprefix(NO_WIDTH)

"""What both pages of HTML are made of: a document that fetches nothing, and a table."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files

SHOW = files("engram") / "show"


def text_of(*names: str) -> str:
    """Files of this folder, one after another."""
    return "".join((SHOW / name).read_text(encoding="utf-8") for name in names)


def document(title: str, style: str, body: str, meta: str = "") -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n{meta}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style></head>\n<body>{body}</body></html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Titles are text; cells are HTML."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' if title else "<td></td>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>\n{body}</tbody></table></div>\n'

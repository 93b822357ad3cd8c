"""What pages of HTML are made of: a document that fetches nothing and runs only its own scripts, and a table."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

SHOW = files("engram") / "show"
NOTHING: Mapping[str, str] = {}


def text_of(*names: str) -> str:
    """Files of this folder, one after another."""
    return "".join((SHOW / name).read_text(encoding="utf-8") for name in names)


def policy(html: str, more: Mapping[str, str] = NOTHING) -> str:
    """What a browser may do with a page: run its own scripts, and nothing else that is not named here."""
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", html, re.S)
    sums = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(f"'sha256-{sum}'" for sum in sums) or "'none'",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in {**rules, **more}.items())


def document(title: str, style: str, body: str, script: str = "", allowed: Mapping[str, str] = NOTHING) -> str:
    """A page with its own policy: it speaks to nobody, and no script runs but this one."""
    code = f"<script>\n{script}</script>" if script else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(code, allowed)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style></head>\n<body>{body}{code}</body></html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Titles are text; cells are HTML."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' if title else "<td></td>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>\n{body}</tbody></table></div>\n'

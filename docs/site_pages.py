"""Pages of the site that are read off the code when it is built: the command line, fields, Python, answers in JSON."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GENERATED = Path(__file__).parent / "generated"
JSON_SCHEMA = Path(__file__).parent / "answers.schema.json"


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", lambda _: write())
    app.connect("source-read", for_the_site)
    app.connect("autodoc-process-docstring", as_written)
    return {"parallel_read_safe": True}


def write() -> None:
    GENERATED.mkdir(exist_ok=True)
    pages = {"command-line": command_line(), "fields": fields(), "api": api(), "answers": answers()}
    for name, text in pages.items():
        path = GENERATED / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def command_line() -> str:
    """From the parsers: what --help says, as one page."""
    from engram.cli.main import app

    text = app.generate_docs(output_format="markdown", usage_name="engram").replace(" -m sphinx", "")
    body = text.partition("**Commands**:")[2]  # its own table of contents stands beside the page
    return f"# The command line\n\nWhat `engram --help` and `engram COMMAND --help` say.\n{_without_lists(body)}"


def _without_lists(body: str) -> str:
    return body[body.index("\n## ") :]


def fields() -> str:
    """Every field that `--set` can change in the trainings of some experiment."""
    from engram.experiments import find, names
    from engram.specs import Train
    from engram.specs.fields import settings_of

    rows = dict[str, dict[str, Any]]()
    for name in names():
        trainings = [spec for spec in find(name).specs("smoke", [0])[:1] if isinstance(spec, Train)]
        for row in settings_of(trainings) if trainings else ():
            rows.setdefault(row["field"], row)
    lines = ["# Fields", "", "What `--set` can change; `engram fields NAME` says which of them an experiment has.", ""]
    lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
    return "\n".join([*lines, *(_field(rows[name]) for name in sorted(rows))]) + "\n"


def _field(row: dict[str, Any]) -> str:
    cells = (f"`{row['field']}`", row["type"], f"`{json.dumps(row['default'])}`", row["meaning"])
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def api() -> str:
    """Every public name, with what its docstring says."""
    import engram

    lines = ["# Python, name by name", "", "[python.md](../python.md) has the same names by what they are for.", ""]
    for name in engram.__all__:
        thing = getattr(engram, name)
        kind = "class" if isinstance(thing, type) else "function" if callable(thing) else "data"
        members = "\n:members:\n:exclude-members: model_config" if kind == "class" else ""
        lines += [f"## {name}", "", f"```{{eval-rst}}\n.. auto{kind}:: engram.{name}{_indented(members)}\n```", ""]
    return "\n".join(lines)


def _indented(text: str) -> str:
    return text.replace("\n", "\n   ")


def answers() -> str:
    """The objects that commands print with --json, and their fields."""
    schema = json.loads(JSON_SCHEMA.read_text(encoding="utf-8"))
    lines = ["# Answers in JSON, field by field", "", "The schema itself is `docs/answers.schema.json`.", ""]
    for name, about in sorted(schema["$defs"].items()):
        lines += [f"## {name}", "", about.get("description", ""), "", *_rows(about), ""]
    return "\n".join(lines)


def _rows(about: dict[str, Any]) -> Iterator[str]:
    if not about.get("properties"):
        return
    yield from ("| field | type | |", "|---|---|---|")
    for name, field in about["properties"].items():
        yield f"| `{name}` | {_type(field)} | {field.get('description', '')} |"


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return field["$ref"].rpartition("/")[2]
    if "anyOf" in field:
        return " or ".join(_type(one) for one in field["anyOf"])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("type", "any"))


LINK = re.compile(r"\[([^\]\n]+)\]\(((?!https?:|#)[^)\s#]+)\)")
PLACE = re.compile(r'^(#+ )<a id="([^"]+)"></a>', re.MULTILINE)
ASIDE = ("docs/log/", "README")  # pages that others link, and no table of contents lists


def for_the_site(app: Any, page: str, source: list[str]) -> None:
    """A link to a folder of sources leads nowhere there: its words stay. Named places are named as the site does it."""
    here = (Path(app.srcdir) / page).parent

    def kept(link: re.Match[str]) -> str:
        return link[1] if (here / link[2]).is_dir() else link[0]

    text = PLACE.sub(r"(\2)=\n\1", LINK.sub(kept, source[0]))
    source[0] = f"---\norphan: true\n---\n\n{text}" if page.startswith(ASIDE) else text


def as_written(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with tables of their own: they are shown as they are written."""
    if lines:
        lines[:] = [".. code-block:: text", "", *(f"   {line}" for line in lines), ""]

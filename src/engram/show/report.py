"""The report: one HTML file with figures, births, claims, Spec and environment. Opens offline; nothing is fetched."""

import base64
import json
from collections.abc import Sequence
from html import escape
from typing import Any

from engram.claims.readings import capacity
from engram.claims.verdicts import committed_verdicts
from engram.records import Record, stored_spec
from engram.show.gallery import Picture
from engram.show.html import document, table, text_of
from engram.show.preliminary import is_preliminary, place_of, sentence
from engram.show.progress import birth_summary
from engram.show.save import image_bytes
from engram.show.tables import in_words, named, number


def report(
    title: str, shown: Sequence[tuple[Record, Sequence[Picture]]], claims: Sequence[dict[str, Any]], least: int = 0
) -> str:
    """One page for any records and their pictures: claims first, then each run.

    least    seeds that a verdict needs: what fewer say is told beside the ledger's verdict, as the terminal does
    """
    body = f"<main><h1>{escape(title)}</h1>{content(shown, claims, least)}</main>"
    return document(title, text_of("report.css", "first.css"), body, allowed={"img-src": "data:"})


def content(shown: Sequence[tuple[Record, Sequence[Picture]]], claims: Sequence[dict[str, Any]], least: int = 0) -> str:
    """The same without a title, to stand in another page."""
    return "".join([_claims(claims, least) if claims else "", *(_run(record, pictures) for record, pictures in shown)])


def _run(record: Record, pictures: Sequence[Picture]) -> str:
    parts = [f"<h2>Run <code>{escape(record.id)}</code></h2>", f'<p class="lead">{escape(_state(record))}</p>']
    if record.kind == "Train":
        parts += [_births(record), *map(_image, pictures), _last_look(record)]
    else:
        parts.append(f"<section>{_table(record.head(50))}</section>")
    spec = dict(stored_spec.fields(record.spec_json))
    return "".join([*parts, _details("Spec", spec), _details("Environment", record.env)])


def _image(picture: Picture) -> str:
    data = base64.b64encode(image_bytes(picture.figure, "png")).decode()
    caption = escape(picture.caption)
    image = f'<img alt="{caption}" src="data:image/png;base64,{data}">'
    return f"<section><figure>{image}<figcaption>{caption}</figcaption></figure></section>"


def _births(record: Record) -> str:
    if not any(name.startswith("recall.") for name in record.columns):
        return ""
    return f"<section><pre>{escape(chr(10).join(birth_summary(record)))}</pre></section>"


def _last_look(record: Record) -> str:
    """What was measured once, in the last row: the probes that the plan names for the end."""
    last = record.table.last_row() if len(record.table) > 1 else {}
    found = {name: value for name, value in last.items() if len(record.curve(name)[0]) == 1}
    rows = [[f"<code>{escape(name)}</code>", number(value)] for name, value in found.items()]
    return f"<section><h3>Last look</h3>{table(['column', 'value'], rows)}</section>" if rows else ""


def _state(record: Record) -> str:
    rows = len(record.table)
    planned = dict(stored_spec.fields(record.spec_json)).get("plan.steps")
    steps = f"{max(0, rows - 1)} of {planned} steps" if record.kind == "Train" else f"{rows} rows"
    if record.kind == "Search" and record.finished and record.may_run:
        found = f"{'Needs d' if record.search.rises else 'Stores n'} = {number(capacity(record))}"
        return f"{steps}, finished. {found} at {record.search.target:.0%}."
    end = "finished" if record.finished else record.ended["end"] if record.ended else "not finished"
    last = record.table.last_row()
    told = [f"{name} {number(value)}" for name, value in last.items() if name.startswith(("loss", "accuracy"))]
    return f"{steps}, {end}. {', '.join(told)}"


def _claims(claims: Sequence[dict[str, Any]], least: int) -> str:
    rows = []
    for claim in claims:
        early = is_preliminary(claim, least)
        for i, part in enumerate(claim["measures"]):
            predicted, measured, interval, n = map(escape, in_words(part))
            stands = _classed(place_of(part) or "not measured") if early else _classed(part["verdict"])
            head = _claim(claim, least) if i == 0 else ""
            rows.append([head, escape(named(part)), measured, interval, predicted, n, stands])
    head = ["claim", "what is measured", "measured", "95 % interval", "predicted", "n", "against the prediction"]
    return f"<h2>Claims</h2><section>{table(head, rows)}</section>"


def _claim(claim: dict[str, Any], least: int) -> str:
    """Its name and sentence; of a claim that these seeds cannot decide, what they say."""
    said = f"<b>{escape(claim['id'])}</b><br>{escape(claim['statement'])}"
    if not is_preliminary(claim, least):
        return said
    return f"{said}<br><small>{escape(sentence(claim, least, committed_verdicts()))}</small>"


def _classed(word: str) -> str:
    return f'<span class="{escape(word).replace(" ", "-")}">{escape(word)}</span>'


def _table(rows: Sequence[dict[str, Any]]) -> str:
    head = list(rows[0]) if rows else []
    return table(head, [[escape(str(row.get(name, ""))) for name in head] for row in rows])


def _details(title: str, data: dict[str, Any]) -> str:
    text = json.dumps(data, indent=1, default=str, ensure_ascii=False)
    return f"<section><details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details></section>"

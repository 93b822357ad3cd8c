"""The page of `engram probe`: all heads as a grid, the attention map of one, whose writing it reads, what it is worth.

One file that fetches nothing. Every figure says whose weights it shows.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from engram.models import Head
from engram.probes.survey import Composition, name_of
from engram.show.html import document, table, text_of
from engram.show.probe_text import copied, left_of_gain, said, spread
from engram.text import printable

SCALES = {
    "induction": "attention on the token after the last visit",
    "previous": "attention on the token before",
    "copying": "copying score: 1, every direction is copied; −1, its opposite is written",
}


def page(found: Any) -> str:
    """The whole page, of engram.probing.Probed."""
    title = f"Heads of {printable(found.provenance.name)}"
    parts = [_lead(found), _grid(found), _composition(found), _ablation(found), _copying(found), _lens(found)]
    body = f"<main><h1>{escape(title)}</h1>{''.join(parts)}</main>"
    script = f"const DATA = {_data(found)};\n{text_of('probe.js')}"
    return document(title, text_of("report.css", "probe.css"), body, script)


def _source(found: Any) -> str:
    return escape(printable(str(found.provenance)))


def _caption(words: str) -> str:
    """Words of ours; whose weights it shows is said once, above."""
    return f'<p class="caption">{words}</p>'


def _lead(found: Any) -> str:
    sizes, seeds = found.subject.network.sizes, found.scores.seeds
    groups = f", {sizes.groups} key-value groups" if sizes.groups != sizes.H else ""
    shape = f"{sizes.L} layer{'s' * (sizes.L > 1)} of {sizes.H} head{'s' * (sizes.H > 1)}{groups}"
    sha = f" SHA-256 <code>{escape(found.provenance.sha256[:16])}…</code>." if found.provenance.sha256 else ""
    losses = found.scores.losses()
    gain = _losses_in_words(losses["first"], losses["repeat"])
    start = found.subject.start
    piece = "" if start is None else escape(_visible(found.subject.pieces([start])[0]))
    front = "" if start is None else f" behind token {start}, <code>{piece}</code>"
    return (
        f'<p class="lead"><span class="source">{_source(found)}</span>: {shape}, d = {sizes.d}.{sha} '
        f"Random tokens come twice{front}; seeds {escape(', '.join(map(str, seeds)))}.{gain} "
        f"Layers and heads count from 1: L2H3 is head 3 of layer 2.</p>"
        + "".join(f'<p class="note">{escape(note)}</p>' for note in found.notes)
    )


def _losses_in_words(first: Sequence[float | None], repeat: Sequence[float | None]) -> str:
    known = [[value for value in side if value is not None] for side in (first, repeat)]
    if not all(known):
        return ""
    before, after = (sum(side) / len(side) for side in known)
    return f" Loss {before:.2f} on the first copy, {after:.2f} on the repeat."


def _visible(piece: str) -> str:
    """A token as it is read beside others: what cannot be seen is drawn."""
    return printable(piece.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")) or "∅"


def _values(found: Any) -> dict[str, Mapping[Head, float]]:
    kinds: dict[str, Mapping[Head, float]] = {kind: found.scores.mean(kind) for kind in ("induction", "previous")}
    return kinds | ({"copying": found.copying.score} if found.copying else {})


def _data(found: Any) -> str:
    """What the script draws; nothing in it ends the script."""
    values = _values(found)
    heads = {
        name_of(head): {
            "values": {kind: round(of[head], 4) for kind, of in values.items()},
            "words": {kind: spread(found.scores.by_seed(kind)[head]) for kind in ("induction", "previous")},
            "map": base64.b64encode(found.maps[head]).decode(),
        }
        for head in found.maps
    }
    tokens = [_visible(piece) for piece in found.subject.pieces(list(found.shown))]
    data = {"heads": heads, "tokens": tokens, "scales": {kind: SCALES[kind] for kind in values}}
    return json.dumps(data, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")


def _grid(found: Any) -> str:
    values = _values(found)
    chips = "".join(
        f'<label class="chip"><input type="radio" name="kind" value="{kind}"{" checked" * (kind == "induction")}>'
        f"{kind}</label>"
        for kind in values
    )
    L, H = max(layer for layer, _ in found.maps), max(head for _, head in found.maps)
    top = "".join(f'<th scope="col">{layer}</th>' for layer in range(1, L + 1))
    rows = "".join(_row(values["induction"], h, L) for h in range(1, H + 1))
    best = name_of(max(values["induction"], key=lambda head: values["induction"][head]))
    return (
        f"<h2>All heads</h2><section><fieldset><legend>coloured by</legend>{chips}</fieldset>"
        '<p id="scale" class="caption" aria-live="polite"></p>'
        f'<div class="scroll"><table class="grid" id="grid" data-best="{best}" aria-describedby="ways">'
        f"<thead><tr><td></td>{top}</tr></thead><tbody>{rows}</tbody></table></div>"
        '<p id="ways" class="caption">Layers from left to right, heads from top to bottom; arrow keys move.</p>'
        f"{_caption('Means over seeds.')}</section>"
        '<section id="head" aria-live="polite"><h3 id="name"></h3><p id="numbers"></p>'
        '<div class="scroll"><canvas id="map" role="img"></canvas></div><p id="edge" class="caption">'
        "Point at the map to read an edge.</p><p id='strongest'></p>"
        f"{_caption('Rows look at columns; attention to the first token is drawn too, and often largest.')}"
        "<noscript><p>The maps are drawn by a script; the tables below need none.</p></noscript></section>"
    )


def _row(values: Mapping[Head, float], h: int, L: int) -> str:
    cells = "".join(_cell((layer, h), values) for layer in range(1, L + 1))
    return f'<tr><th scope="row">{h}</th>{cells}</tr>'


def _cell(head: Head, values: Mapping[Head, float]) -> str:
    if head not in values:
        return "<td></td>"
    name, value = name_of(head), values[head]
    return (
        f'<td><button id="{name}" style="--v:{max(0.0, value):.3f}" tabindex="-1" '
        f'aria-label="{name}, induction {value:.2f}" title="{name} {value:.2f}"></button></td>'
    )


def _link(head: Head) -> str:
    return f'<a href="#{name_of(head)}">{name_of(head)}</a>'


def _composition(found: Any) -> str:
    part: Composition | None = found.composition
    if part is None or not part.partners:
        return ""
    columns = ["reader", *(f"partner {i}" for i in (1, 2, 3)), "partner 1, raw embeddings"]
    columns += [f"induction, keys without {name_of(cut.writer)}" for cut in part.cuts]
    rows = [_reader(found, part, i) for i in range(len(part.partners))]
    words = (
        f"Share of {part.tokens} random tokens whose query finds their own key, made of what an earlier head writes "
        f"about each token; chance {1 / part.tokens:.4f}. On the right the induction score when no later key sees what "
        "a head wrote, and in the last row what is then left of the gain from the repeat."
    )
    gain = ["gain left", *[""] * 4, *(f"{cut.left:.2f}" for cut in part.cuts)]
    tables = table(columns, [*rows, gain] if part.cuts else rows)
    return f"<h2>Whose writing induction heads read</h2><section>{_graph(part)}{tables}{_caption(words)}</section>"


def _reader(found: Any, part: Composition, i: int) -> list[str]:
    one = part.partners[i]
    best = [f"{_link(writer)} {value:.2f}" for writer, value in one.recalls[:3]]
    score = found.scores.mean("induction")[one.reader]
    cells = [f"{_link(one.reader)} <small>induction {score:.2f}</small>", *best, *[""] * (3 - len(best))]
    return [*cells, f"{part.raw[one.reader, one.best]:.2f}", *(f"{cut.induction[one.reader]:.2f}" for cut in part.cuts)]


def _graph(part: Composition) -> str:
    """Writers on the left, readers on the right; the thicker a line, the more tokens are recalled."""
    writers = list(dict.fromkeys(w for one in part.partners for w, _ in one.recalls[:3]))
    left = {writer: 22 + 30 * i for i, writer in enumerate(writers)}
    right = {one.reader: 22 + 30 * i for i, one in enumerate(part.partners)}
    lines = "".join(
        f'<line x1="92" y1="{left[w]}" x2="308" y2="{right[one.reader]}" stroke-width="{max(0.5, 9 * v):.1f}" '
        f'stroke-opacity="{0.15 + 0.75 * v:.2f}"><title>{name_of(w)} → {name_of(one.reader)}: {v:.2f}</title></line>'
        for one in part.partners
        for w, v in one.recalls[:3]
    )
    ends = [("end", 84, left), ("start", 316, right)]
    names = "".join(
        f'<text x="{x}" y="{y + 4}" text-anchor="{anchor}">{name_of(head)}</text>'
        for anchor, x, places in ends
        for head, y in places.items()
    )
    height = 30 * max(len(left), len(right)) + 14
    label = "Which earlier heads the keys of induction heads read; the table has the numbers"
    return f'<svg class="graph" viewBox="0 0 400 {height}" role="img" aria-label="{label}">{lines}{names}</svg>'


def _ablation(found: Any) -> str:
    if found.ablation is None:
        return ""
    rows = [[escape(str(cell)) for cell in row.values()] for row in left_of_gain(found)]
    both = {
        "strongest induction heads": found.ablation.left,
        "random heads of the same layers": found.ablation.left_random,
    }
    bars = "".join(_bar(name, values) for name, values in both.items())
    words = (
        "Share of the gain from a repeat that is left when heads are replaced by their mean, chosen on other tokens."
    )
    details = (
        f"<details><summary>by seed</summary>{table(['seed', 'top heads', 'random ones', 'chosen'], rows)}</details>"
    )
    return f"<h2>What these heads are worth</h2><section>{bars}{details}{_caption(words)}</section>"


def _bar(name: str, values: Sequence[float]) -> str:
    known = [value for value in values if value == value]
    if not known:
        return f'<p class="bar"><span>{escape(name)}</span><i></i><b>no others in these layers</b></p>'
    mean = sum(known) / len(known)
    width = 100 * min(1.0, max(0.0, mean))
    words = f"{mean:.0%} left ({min(known):.0%} … {max(known):.0%})"
    drawn = f'<i><em style="width:{width:.1f}%"></em></i>'
    return f'<p class="bar"><span>without {escape(name)}</span>{drawn}<b>{words}</b></p>'


def _copying(found: Any) -> str:
    if found.copying is None:
        return ""
    links = list(found.copying.recall)
    rows = [
        [_link(h), *map(escape, list(row.values())[1:])] for h, row in zip(links, copied(found.copying), strict=True)
    ]
    words = (
        f"Share of {found.copying.tokens} random tokens that have the largest of all logits when a head looks at them "
        "alone: raw embeddings, and the residual that enters its layer. Score: over all tokens, from eigenvalues."
    )
    return (
        f"<h2>What heads copy</h2><section>{table(['head', 'raw', 'effective', 'score'], rows)}"
        f"{_caption(words)}</section>"
    )


def _lens(found: Any) -> str:
    if found.lens is None:
        return ""
    text = "".join(_visible(piece) for piece in found.subject.pieces(list(found.shown)))
    rows = [[escape(str(cell)) for cell in row.values()] for row in said(found.lens, found.subject.pieces)]
    words = (
        "The likeliest next tokens at the last position of the sequence on the map, if the model ended after a layer, "
        "and the losses on random tokens that come twice."
    )
    head = ["after layer", "tokens", "loss, first", "repeat"]
    return (
        f'<h2>Logit lens</h2><section><p class="prompt"><code>{escape(text)}</code></p>{table(head, rows)}'
        f"{_caption(words)}</section>"
    )

"""The ledger as one HTML file: every claim with its verdict and measures. Opens offline; nothing is fetched."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from engram.registered import KINDS, STATUSES
from engram.show.claims import by_paper, claim_state, remarks, tally
from engram.show.html import document, table, text_of
from engram.show.tables import in_words, named

STYLE, SCRIPT = text_of("report.css", "ledger.css"), text_of("ledger.js")
MARKS = {  # a shape for each state, so that none hangs on its colour
    "agrees": '<circle cx="8" cy="8" r="7"/><path class="cut" d="M4.7 8.3 7 10.6l4.4-4.9"/>',
    "disagrees": '<path d="M8 .4 15.6 8 8 15.6.4 8z"/><path class="cut" d="m5.7 5.7 4.6 4.6m0-4.6-4.6 4.6"/>',
    "inconclusive": '<circle class="open" cx="8" cy="8" r="6.2"/><path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z"/>',
    "stale": '<path class="open" d="M8 1.6 14.8 14H1.2z"/><path class="open" d="M8 6v4m0 1.6v.6"/>',
    "missing": '<circle class="open" cx="8" cy="8" r="6.2" stroke-dasharray="2.4 2.5"/>',
}
WIDTH = 150.0  # of a drawn measure


def page(claims: Sequence[dict[str, Any]], records: str = "records", command: str = "engram ledger --html FILE") -> str:
    """The ledger of these claims, as `Entry.to_json` gives them; the foot says which records and which command."""
    sprite = "".join(f'<symbol id="mark-{name}" viewBox="0 0 16 16">{shape}</symbol>' for name, shape in MARKS.items())
    groups = "".join(_group(paper, inside) for paper, inside in by_paper(claims).items())
    inside = f"{_head(claims)}{_filters(claims)}{groups}{_foot(records, command)}"
    body = f'<svg class="sprite" aria-hidden="true">{sprite}</svg>\n<main>\n{inside}</main>\n'
    return document("Engram: ledger", STYLE, body, SCRIPT)


def _head(claims: Sequence[dict[str, Any]]) -> str:
    example = {"predicted": (0.0, 1.0), "interval": (0.55, 0.95), "measured": 0.75}
    return (
        "<h1>Ledger</h1>\n"
        '<p class="lead">Sentences made checkable. Each has a band in which its numbers must lie, and records decide '
        "whether they do. A claim is registered, or decided on fresh seeds, if its form was written down before the "
        "records that decide it were made, and exploratory if not; what was decided after a look at numbers is "
        "said there.</p>\n"
        f'<p class="legend">{plot(example)}<span>Shaded: the predicted band; line: the 95 % interval; dot: the '
        "measured value. A claim agrees if every interval lies inside its band, and disagrees if one lies "
        "outside.</span></p>\n"
        f"{'' if claims else '<p>No claims.</p>'}"
    )


def _filters(claims: Sequence[dict[str, Any]]) -> str:
    choices = _choice("Paper", "All papers", {name: name for name in by_paper(claims)})
    choices += _choice("Kind", "All kinds", KINDS) + _choice("Status", "Any status", {name: name for name in STATUSES})
    chips = "".join(
        f'<label class="chip"><input type="checkbox" name="verdict" value="{name}">'
        f'{_verdict(name)}<span class="count">{n}</span></label>\n'
        for name, n in tally(claims).items()
    )
    return (
        '<form id="filters" role="search" aria-label="Claims" hidden>\n'
        '<div class="row"><label class="field">Search<input id="words" type="search" autocomplete="off" '
        'spellcheck="false" placeholder="id or sentence"></label>\n'
        f'{choices}</div>\n<fieldset><legend>Verdict</legend>\n{chips}</fieldset>\n<div class="row">'
        f'<p id="shown" role="status">{len(claims)} of {len(claims)} claims</p>\n'
        '<button type="button" id="clear" class="plain" hidden>clear filters</button>'
        '<button type="button" id="open" class="plain">open all</button></div>\n</form>\n'
    )


def _choice(name: str, every: str, options: Mapping[str, str]) -> str:
    inside = "".join(
        f'<option value="{escape(value)}" data-label="{escape(label)}">{escape(label)}</option>'
        for value, label in {"": every, **options}.items()
    )
    return f'<label class="field">{name}<select id="{name.lower()}">{inside}</select></label>\n'


def _group(paper: str, claims: Sequence[dict[str, Any]]) -> str:
    cards = "".join(map(_claim, claims))
    title = f"<h2>{escape(paper)}<small>{_counted(tally(claims))}</small></h2>"
    return f'<div class="group">\n{title}\n<div class="cards">\n{cards}</div></div>\n'


def _counted(counts: dict[str, int]) -> str:
    """'4 agree, 1 disagrees': the states that occur."""
    return ", ".join(f"{n} {name if n == 1 else name.removesuffix('s')}" for name, n in counts.items() if n)


def _claim(claim: dict[str, Any]) -> str:
    said, id = claim_state(claim), escape(claim["id"])
    inside = [f'<p class="remark">{escape(sentence)}</p>' for sentence in remarks(claim)]
    inside += [f'<p class="why"><b>Why it disagrees.</b> {escape(claim["why"])}</p>\n'] if claim["why"] else []
    inside += [_measures(claim["measures"])] if claim["measures"] else []
    return (
        f'<details class="claim" id="{id}" data-paper="{escape(claim["paper"])}" data-state="{said}"'
        f' data-kind="{claim["kind"] or ""}" data-status="{claim["status"]}">\n'
        f'<summary>{_verdict(said)}<span class="what"><code>{id}</code>'
        f'<span class="sentence">{escape(claim["statement"])}</span>'
        f'<span class="meta">{escape(_meta(claim))}</span></span>{plot(claim)}</summary>\n'
        f'<div class="inside">\n{"".join(inside)}{_origin(claim)}</div></details>\n'
    )


def _meta(claim: dict[str, Any]) -> str:
    """Scale, seeds and how many measures, in a line."""
    parts = claim["measures"]
    if not parts:
        return "records damaged or lost" if claim["why_missing"] else "no record"
    counts = tally([part | {"stale": False} for part in parts])
    split = f" ({_counted(counts)})" if len(parts) > max(counts.values()) else ""
    then = f" · verdict then: {claim['verdict']}" if claim["stale"] else ""
    plural = "s" if len(parts) > 1 else ""
    return f"{claim['status']} · {claim['scale']} scale · n = {claim['n']} · {len(parts)} measure{plural}{split}{then}"


def _measures(parts: Sequence[dict[str, Any]]) -> str:
    head = ("what is measured", "", "predicted", "measured", "95 % interval", "n", "verdict")
    rows = [
        [escape(named(part)), plot(part), *map(escape, in_words(part)), _verdict(part["verdict"])] for part in parts
    ]
    return table(head, rows)


def _origin(claim: dict[str, Any]) -> str:
    """Where the sentence stands and how to decide it again."""
    id, command = escape(claim["id"]), escape(claim["command"])
    return (
        f"<dl><dt>kind</dt><dd>{escape(KINDS.get(claim['kind'], 'not registered'))}</dd>"
        f"<dt>source</dt><dd>{escape(_source(claim))}</dd>"
        f"{_gap(claim)}<dt>tested</dt><dd>{escape(claim['range'] or 'sizes are in its experiment')}</dd>"
        f"<dt>experiment</dt><dd><code>{escape(claim['experiment'])}</code></dd>"
        f'<dt>command</dt><dd class="command"><code>{command}</code>'
        '<button type="button" class="copy" hidden>copy</button></dd>'
        f'<dt>link</dt><dd><a href="#{quote(claim["id"])}">#{id}</a></dd></dl>\n'
    )


def _gap(claim: dict[str, Any]) -> str:
    return f"<dt>source and measure</dt><dd>{escape(claim['gap'])}</dd>" if claim["gap"] else ""


def _source(claim: dict[str, Any]) -> str:
    words = f": “{claim['quote']}”" if claim["quote"] else ""
    return f"{claim['source'] or 'not stated'}{words}"


def _verdict(name: str) -> str:
    mark = f'<svg class="mark" aria-hidden="true"><use href="#mark-{name}"/></svg>'
    return f'<span class="verdict {name}">{mark}{name}</span>'


def _foot(records: str, command: str) -> str:
    return (
        f"<footer>Made from {escape(records)} by <code>{escape(command)}</code>, which runs nothing. A claim without a "
        "record that can be believed is missing; one whose record was made by earlier code is stale.</footer>\n"
    )


def plot(measure: dict[str, Any]) -> str:
    """Predicted band shaded, 95 % interval as a line, measured value as a dot; an open side reaches the edge."""
    band, interval, dot = measure["predicted"] or (None, None), measure["interval"] or (None, None), measure["measured"]
    known = [value for value in (*band, *interval, dot) if value is not None]
    if not known:
        return '<span class="plot"></span>'
    place = _scale(known)
    (left, right), (begin, end) = (_ends(place, pair) for pair in (band, interval))
    circle = "" if dot is None else f'<circle cx="{place(dot):g}" cy="10" r="3.6"/>'
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH:g} 20" aria-hidden="true">'
        f'<rect x="{left:g}" y="3" width="{max(right - left, 1.5):.4g}" height="14"/>'
        f'<path d="M0 10H{WIDTH:g}{_ticks(place, band, "3v14")}"/>'
        f'<path class="line" d="M{begin:g} 10H{end:g}{_ticks(place, interval, "7v6")}"/>{circle}</svg>'
    )


def _scale(known: Sequence[float]) -> Callable[[float], float]:
    """Where a number stands: all that are known within the middle 70 %."""
    least, size = min(known), max(known) - min(known) or 1.0
    return lambda value: round(WIDTH * (0.15 + 0.7 * (value - least) / size), 1)


def _ends(place: Callable[[float], float], pair: Sequence[float | None]) -> tuple[float, float]:
    low, high = pair
    return (0.0 if low is None else place(low), WIDTH if high is None else place(high))


def _ticks(place: Callable[[float], float], pair: Sequence[float | None], stroke: str) -> str:
    return "".join(f"M{place(value):g} {stroke}" for value in pair if value is not None)

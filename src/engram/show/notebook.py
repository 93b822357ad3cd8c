"""What a notebook shows of a Record, a memory, a forward pass and a claim: a few words, and a picture."""

import base64
from functools import singledispatch
from html import escape
from math import isfinite

from matplotlib.figure import Figure

from engram.claims import Claim, Measure
from engram.memory.stored import Stored
from engram.models import Trace
from engram.records import Record
from engram.records.faces import face_of
from engram.show.gallery import gallery
from engram.show.html import table
from engram.show.memories import draw_map
from engram.show.panels import SHADES, panels
from engram.show.save import image_bytes
from engram.show.style import house_style
from engram.show.subtitles import headline
from engram.show.tables import found, span

MOST_HEADS, LONGEST = 8, 64  # of a forward pass that are drawn: heads, positions


@singledispatch
def html(thing: object) -> str:
    """A fragment of HTML; everything that a record says is escaped."""
    return escape(repr(thing))


@html.register
def _record(record: Record) -> str:
    """Its words, where it stands, its settings, and its first picture: curves in most cases."""
    face = face_of(record)
    final = ", ".join(f"{name} {value:.4g}" for name, value in face.headline.items())
    words = f"<b>{escape(face.words)}</b><br>{escape(record.id)}, {escape(face.state)}<br>{escape(final)}"
    pictures = gallery(record)
    return f"<div>{words}<br>{_image(pictures[0].figure) if pictures else ''}</div>"


@html.register
def _memory(stored: Stored) -> str:
    return f"<div>{escape(repr(stored))}<br>{_image(_map(stored))}</div>"


@html.register
def _trace(trace: Trace) -> str:
    return f"<div>{escape(repr(trace))}<br>{_image(_attention(trace))}</div>"


@html.register
def _claim(claim: Claim) -> str:
    head = f"<b>{escape(claim.id)}</b>: {escape(claim.verdict)}, n = {claim.n}<br>{escape(claim.statement)}"
    rows = [
        [escape(m.name), _measured(m), _span(m.interval), _span((m.low, m.high)), m.verdict] for m in claim.measures
    ]
    return f"<div>{head}<br>{table(['what is measured', 'measured', '95 %', 'predicted', 'verdict'], rows)}</div>"


def _measured(measure: Measure) -> str:
    return found({"measured": measure.measured, "bound": measure.estimate.bound})


def _span(edges: tuple[float, float]) -> str:
    return escape(span([edge if isfinite(edge) else None for edge in edges]))


@house_style()
def _map(stored: Stored) -> Figure:
    ax = panels(4.2, 4)
    draw_map(ax, stored)
    return ax.figure


@house_style()
def _attention(trace: Trace) -> Figure:
    """Of the first sequence, a panel for each head; of many heads and long sequences the first."""
    heads = [(layer, h) for layer, found in enumerate(trace.attention, 1) for h in range(1, found.shape[1] + 1)]
    shown = heads[:MOST_HEADS]
    axes = panels(2.6 * len(shown) + 0.6, 3.1, 1, max(1, len(shown)), squeeze=False)[0]
    for ax, (layer, h) in zip(axes, shown, strict=False):
        pattern = trace.attention[layer - 1][0, h - 1, :LONGEST, :LONGEST].float().cpu().numpy()
        ax.imshow(pattern, cmap=SHADES, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        ax.set(title=f"layer {layer}, head {h}", xlabel="attended to", ylabel="from position" if ax is axes[0] else "")
        ax.grid(visible=False)
    left_out = f"; {len(heads) - len(shown)} more heads" if len(heads) > len(shown) else ""
    return headline(axes[0].figure, f"Attention of the first sequence{left_out}")


def _image(figure: Figure) -> str:
    data = base64.b64encode(image_bytes(figure, "png")).decode()
    return f'<img alt="" style="max-width:100%" src="data:image/png;base64,{data}">'

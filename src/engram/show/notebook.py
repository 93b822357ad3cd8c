"""What a notebook shows of a Record, a model, a memory, a forward pass, a Result, a claim: a few words, a picture."""

import base64
from collections.abc import Sequence
from functools import singledispatch
from html import escape
from math import ceil, isfinite
from pathlib import Path

from matplotlib.figure import Figure

from engram.claims import Claim, Measure
from engram.claims.result import Result
from engram.claims.verdicts import committed_verdicts
from engram.memory.stored import Stored
from engram.models import Model, Trace
from engram.records import Record
from engram.records.faces import face_of
from engram.show.gallery import gallery
from engram.show.html import table
from engram.show.literal import literal, plain
from engram.show.memories import draw_maps
from engram.show.panels import panels
from engram.show.preliminary import is_preliminary, sentence
from engram.show.save import image_bytes
from engram.show.style import house_style
from engram.show.subtitles import headline
from engram.show.tables import found, span
from engram.show.transformers import draw_pattern

MOST_HEADS, LONGEST = 8, 40  # of a forward pass that are drawn: heads (half as many of a long one), positions
SHORT, LETTER, WIDEST = 20, 0.125, 13.0  # positions; inches of a letter, and of a whole figure
MOST_MAPS = 4


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
    first = next(iter(gallery(record)), None)
    return f"<div>{words}<br>{_image(first.figure, first.caption) if first else ''}</div>"


@html.register
def _memory(stored: Stored) -> str:
    return f"<div>{escape(repr(stored))}<br>{_image(_maps([stored]))}</div>"


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


@html.register
def _model(model: Model) -> str:
    """Its matrices as memories, where it knows what they store."""
    memories = list(model.memories.values())[:MOST_MAPS]
    words = " · ".join(filter(None, [repr(model), model.origin]))
    return f"<div>{escape(words)}<br>{_image(_maps(memories)) if memories else ''}</div>"


@html.register
def _result(result: Result) -> str:
    """What these seeds say of each claim, as the terminal says it, and the first figure."""
    n = len(result.records)
    least, ledger = result.experiment.least_seeds(result.scale), committed_verdicts()
    rows = [["claim", "", "what was run says"]]
    for claim in result.claims:
        early = is_preliminary(claim, least)
        rows.append([claim["id"], claim["statement"], sentence(claim, least, ledger) if early else claim["verdict"]])
    head = f"{result.experiment.name}, {result.scale} scale, {n} record{'s' * (n != 1)}"
    return table_and_picture(head, rows, result.figures)


def table_and_picture(head: str, rows: Sequence[Sequence[str]], files: Sequence[Path]) -> str:
    """A title, a table whose first row names its columns, and the first picture among some files."""
    first = next((file for file in files if file.suffix == ".png" and file.exists()), None)
    picture = "" if first is None else _embedded(first.read_bytes(), f"figure: {head}")
    cells = [[escape(cell) for cell in row] for row in rows[1:]]
    return f"<div><b>{escape(head)}</b>{table(rows[0], cells)}{picture}</div>"


@house_style()
def _maps(memories: Sequence[Stored]) -> Figure:
    axes = panels(5.0 * len(memories) + 0.6, 5.4, 1, len(memories), squeeze=False)[0]
    draw_maps(list(axes), memories)
    about = "Scores of every question (row) with every answer (column): red above 0, blue below"
    return headline(axes[0].figure, f"{about}. {memories[0].origin.capitalize()}".removesuffix(". "))


@house_style()
def _attention(trace: Trace) -> Figure:
    """Of the first sequence, a panel for each head; of many heads and long sequences the first."""
    heads = [(layer, h) for layer, found in enumerate(trace.attention, 1) for h in range(1, found.shape[1] + 1)]
    T = min(trace.logits.shape[1], LONGEST)
    shown, side = heads[: MOST_HEADS if T <= SHORT else MOST_HEADS // 2], max(2.6, LETTER * T + 0.7)
    columns = max(1, min(len(shown), int(WIDEST / side)))
    rows = max(1, ceil(len(shown) / columns))
    axes = panels(side * columns + 0.7, side * rows + 0.4, rows, columns, squeeze=False)
    for ax, (layer, h) in zip(axes.flat, shown, strict=False):
        pattern = trace.attention[layer - 1][0, h - 1, :T, :T].float().cpu().numpy()
        draw_pattern(ax, pattern, _marks(trace, T), f"layer {layer}, head {h}")
    for ax in axes.flat[len(shown) :]:
        ax.set_axis_off()
    if shown:
        axes[0, 0].figure.colorbar(axes[0, 0].images[0], ax=axes, shrink=0.8, pad=0.02, label="attention")
    return headline(axes[0, 0].figure, f"Attention of the first sequence{_left_out(trace, T, len(heads), len(shown))}")


def _marks(trace: Trace, T: int) -> list[str]:
    """The tokens that were read; places from 1 on where they are not known."""
    if trace.tokens is None:
        return [str(t) for t in range(1, T + 1)]
    return [literal(trace.mark(int(z))) for z in trace.tokens[0, :T]]


def _left_out(trace: Trace, T: int, heads: int, shown: int) -> str:
    length = trace.logits.shape[1]
    parts = [f"its first {T} of {length} tokens"] if length > T else []
    parts += [f"{heads - shown} more heads are not drawn"] if heads > shown else []
    return "".join(f"; {part}" for part in parts)


def _image(figure: Figure, alt: str = "") -> str:
    """With its line above as the words for those who do not see it."""
    return _embedded(image_bytes(figure, "png"), alt or plain(" ".join(figure.get_suptitle().split())))


def _embedded(png: bytes, alt: str) -> str:
    data = base64.b64encode(png).decode()
    return f'<img alt="{escape(alt)}" style="max-width:100%" src="data:image/png;base64,{data}">'

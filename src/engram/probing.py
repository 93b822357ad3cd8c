"""The probes of heads on any transformer: a folder, a file or a name of others' models, or a run of ours."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from engram.adapters import Pretrained, read_model
from engram.adapters.known import KNOWN
from engram.api import load, seed_list
from engram.errors import EngramError, did_you_mean, refuse_other
from engram.models import Head, Model, Network, network_of
from engram.models.network import Provenance
from engram.pages import write_page
from engram.probes import survey
from engram.probes.maps import longest_map, maps
from engram.probes.repeats import Repeats, repeats
from engram.probes.survey import Ablation, Asked, Composition, Copying, Lens, Scores
from engram.probes.words import Words
from engram.records import Record
from engram.tasks.batch import marks_of

PARTS = ("heads", "composition", "copying", "ablation", "lens")
BETWEEN_TEXTS = "<|endoftext|>"
SHOWN = 24  # random tokens that come twice on the maps
Say = Callable[[str], None]
Pieces = Callable[[Sequence[int]], list[str]]


def silent(words: str) -> None:
    """Nothing is said."""


@dataclass(frozen=True)
class Subject:
    """What is probed.

    start    the token that begins a sequence; None where a vocabulary has none
    pieces   how tokens are written
    encode   text to tokens; None without a tokenizer
    words    the tokenizer itself, in which a model of others is asked for facts
    """

    network: Network = field(repr=False)
    start: int | None
    pieces: Pieces = field(repr=False)
    encode: Callable[[str], list[int]] | None = field(repr=False)
    words: Words | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Probed:
    """What the probes found; a part that was not asked for, or cannot be had, is None, and `notes` says why."""

    subject: Subject
    scores: Scores
    composition: Composition | None
    copying: Copying | None
    ablation: Ablation | None
    lens: Lens | None
    shown: tuple[int, ...]  # the tokens of the maps
    maps: dict[Head, bytes] = field(repr=False)
    notes: tuple[str, ...]
    seconds: float

    @property
    def provenance(self) -> Provenance:
        return self.subject.network.provenance

    def to_json(self) -> dict[str, Any]:
        source, sizes, pieces = self.provenance, self.subject.network.sizes, self.subject.pieces
        start = self.subject.start
        model = {"name": source.name, "family": source.family, "sha256": source.sha256, "note": source.note}
        shape = {"layers": sizes.L, "heads": sizes.H, "groups": sizes.groups, "d": sizes.d, "vocabulary": sizes.N}
        parts = {name: getattr(self, name) for name in ("composition", "copying", "ablation")}
        return {
            "model": model | shape,
            "start": None if start is None else {"token": start, "text": pieces([start])[0]},
            "seeds": list(self.scores.seeds),
            "heads": self.scores.to_json(),
            "losses": self.scores.losses(),
            **{name: part and part.to_json() for name, part in parts.items()},
            "lens": self.lens and self.lens.to_json(pieces),
            "notes": list(self.notes),
            "seconds": round(self.seconds, 1),
        }


def probe(
    model: str | Path | Network | Record,
    *parts: str,
    seeds: int | Sequence[int] = 5,
    prompt: str | None = None,
    start: str | None = None,
    consent: bool = False,
    report: str | Path | None = None,
    say: Say = silent,
) -> Probed:
    """Probe the heads of a transformer; without `parts` all of heads, composition, copying, ablation, lens.

    model    a Hugging Face folder, a .gguf file, "smollm2", a run of ours, or a Network
    seeds    how many batches of random tokens, or which
    prompt   a text for the maps and the lens, in the place of random tokens
    start    the token that begins each sequence, as text or number; by default <|endoftext|>, or what the model has
    consent  what is not on this computer may be downloaded
    report   the page to write
    """
    began = time.monotonic()
    wanted = _known(parts)
    _refuse_odd(model, prompt, start)
    subject = subject_of(model, consent)
    subject = subject if start is None else begun_with(subject, start)
    asked = Asked(subject.network, subject.start, tuple(seed_list(seeds)))
    shown = shown_tokens(subject, asked, prompt)
    say(f"{subject.network.provenance}: read in {time.monotonic() - began:.1f} s; {_in_front(subject)}")
    found, notes = _probed(asked, wanted, shown, say)
    drawn = maps(subject.network, shown) if report else {}
    done = Probed(subject, **found, shown=tuple(shown), maps=drawn, notes=notes, seconds=time.monotonic() - began)
    if report:
        from engram.show.probe_page import page

        write_page(Path(report), page(done), "probe", "-o report.html")
    return done


def _known(parts: Sequence[str]) -> tuple[str, ...]:
    for part in parts:
        if part not in PARTS:
            hint = did_you_mean(part, PARTS)
            raise EngramError(f"probe: no part {part!r:.60}; {hint}allowed: {', '.join(PARTS)}")
    return tuple(parts) or PARTS


def _refuse_odd(model: object, prompt: object, start: object) -> None:
    if isinstance(model, Model):
        raise EngramError("probe: a Model is probed as a Network; give engram.network_of(model)")
    refuse_other(str | Path | Network | Record, model, "probe: give a folder, a name, a run or a Network")
    for name, given in (("prompt", prompt), ("start", start)):
        refuse_other(str | None, given, f"{name}: must be a text")


def _in_front(subject: Subject) -> str:
    if subject.start is None:
        return "sequences begin without a start token"
    return f"sequences begin with token {subject.start} ({subject.pieces([subject.start])[0]!r})"


@torch.no_grad()
def _probed(
    asked: Asked, wanted: Sequence[str], shown: Sequence[int], say: Say
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Every part that is wanted, said as it begins; the first pass tells how long they take."""
    has_output, notes = "U" in asked.network.matrices(), list[str]()
    began = time.monotonic()
    say(f"heads: {len(asked.seeds)} seeds, {asked.period} random tokens twice")
    scores = survey.scores(asked)
    one = (time.monotonic() - began) / len(asked.seeds)
    rest = [part for part in wanted if part != "heads"]
    passes = {"composition": 8, "copying": 6, "ablation": 3 * len(asked.seeds), "lens": 3}
    if rest:
        say(f"{', '.join(rest)}: about {sum(passes[part] for part in rest) * one:.0f} s")
    found: dict[str, Any] = {"scores": scores, **dict.fromkeys(PARTS[1:])}
    if not has_output and any(part != "composition" for part in rest):
        notes.append("there is no output matrix U: no losses, copying, ablation or lens")
        rest = [part for part in rest if part == "composition"]
    deepest = asked.network.sizes.L if "copying" in rest else max([1, *(i for i, _ in survey.readers_of(scores))])
    both = survey.embedded(asked, deepest) if {"composition", "copying"} & set(rest) else ()
    makers: dict[str, Callable[[], Any]] = {
        "composition": lambda: survey.composition(asked, scores, *both),
        "copying": lambda: survey.copying(asked, scores, *both),
        "ablation": lambda: survey.ablation(asked, scores),
        "lens": lambda: survey.through_lens(asked, shown),
    }
    for part in rest:
        say(f"{part} …")
        found[part] = makers[part]()
    return found, tuple(notes)


def subject_of(model: str | Path | Network | Record, consent: bool = False) -> Subject:
    """A model of others by its place or name, or a run of ours."""
    if isinstance(model, Record):
        return _of_run(model)
    if isinstance(model, Network):
        return Subject(model, None, lambda ids: [str(i) for i in ids], None)
    if is_of_others(str(model)):
        return subject_from(read_model(str(model), consent=consent))
    try:
        record = load(str(model))
    except EngramError as error:
        hint = f"; {did_you_mean(str(model), KNOWN)}".rstrip("; ")
        raise EngramError(
            f"probe: {str(model)!r:.80} is no folder, no file, none of {', '.join(KNOWN)}, and no run ({error}){hint}"
        ) from None
    return _of_run(record)


def is_of_others(where: str) -> bool:
    """Whether this names a model of others: a folder, a file, a known name or one of the hub; or else a run of ours."""
    path = Path(where).expanduser()
    if where in KNOWN or path.exists():
        return where in KNOWN or not (path / "spec.json").exists()
    return "/" in where or where.endswith(".gguf")


def subject_from(read: Pretrained) -> Subject:
    """A model of others that was read."""
    tokenizer = read.tokenizer
    if tokenizer is None:
        return Subject(read.network, None, lambda ids: [str(i) for i in ids], None)
    between = tokenizer.inner.token_to_id(BETWEEN_TEXTS)
    start = tokenizer.bos if between is None else between
    return Subject(read.network, start, tokenizer.pieces, tokenizer.encode, tokenizer)


def _of_run(record: Record) -> Subject:
    if record.kind != "Train":
        raise EngramError(f"probe: {record.id} is no training, and has no model")
    task, marks = record.train.task, None
    network = network_of(record.model(), Provenance(record.id, type(record.train.model).__name__))
    marks = marks_of(task, record.train.seed)
    return Subject(network, None, lambda ids: [marks[i] for i in ids], lambda text: record.encode(text).tolist())


def begun_with(subject: Subject, start: str) -> Subject:
    """The same with another start token: its number, or a text of one token."""
    ids = [int(start)] if start.isdecimal() else subject.encode(start) if subject.encode else []
    if len(ids) != 1 or not 0 <= ids[0] < subject.network.sizes.N:
        most = subject.network.sizes.N - 1
        raise EngramError(f"--start: must be one token, as text or as a number from 0 to {most}; got {start!r:.60}")
    return replace(subject, start=ids[0])


def shown_tokens(subject: Subject, asked: Asked, prompt: str | None = None) -> list[int]:
    """The tokens of the maps and of the lens: the prompt, or random ones that come twice."""
    if prompt is None:
        period = min(SHOWN, asked.period, (longest_map(subject.network) - 1) // 2)
        return _short(asked, max(3, period)).tokens[0].tolist()
    if subject.encode is None:
        raise EngramError(f"--prompt: {subject.network.provenance.name} has no tokenizer, so that no text can be read")
    tokens = ([] if subject.start is None else [subject.start]) + subject.encode(prompt)
    most = min(subject.network.sizes.T, longest_map(subject.network))
    if not 2 <= len(tokens) <= most:
        limit = "its context" if most == subject.network.sizes.T else "as many as maps of all heads have room for"
        raise EngramError(f"--prompt: 2 … {most} tokens can be shown, {limit}; got {len(tokens)}")
    return tokens


def _short(asked: Asked, period: int) -> Repeats:
    return repeats(asked.network, asked.seeds[0], asked.start, period, batch=1, number=1)

"""Everything that a record holds, looked at: whatever is damaged, lost, or no part of a run is named."""

import json
import re
from pathlib import Path
from typing import Any

from engram.records import files, stored_spec
from engram.records import state as states
from engram.records.files import Place, corrupt
from engram.records.guard import FOLDERS, PARTS
from engram.records.record import Record
from engram.records.sealed import Damaged, unseal
from engram.records.state import State, digest_of_lines
from engram.specs.encode import code_digest, encode
from engram.tasks.counts import Counts, NoTable

WEIGHTS = r"\d{6,}\.safetensors"
IN_FOLDERS = {"snapshots": WEIGHTS, "states": WEIGHTS, "code": r".+\.py", "texts": r"[0-9a-f]{64}\.json"}
PART = re.compile(r"\..+\.part")  # what a kill left behind while a file was being replaced
IN_ENV = r"sittings|timing\.jsonl|digest"
IN_DIGEST = r"end|spec\.json|rows\.jsonl|digest|snapshots/.+|code/.+|texts/.+"


def refuse_damaged(record: Record) -> None:
    """An error that names the first file which is not what was written, as far as that can be known."""
    refuse_damaged_files(record)
    _refuse_other_spec(record)
    kept = {name: State.read(record.place, name) for name in _kept(record.place)}  # before the rows: those may grow
    _refuse_other_rows(record, kept)
    if record.ended is None:
        _refuse_snapshots_of_others(record)
    _refuse_other_times(record, kept.get(states.NAME))
    if (record.place / files.LIVE).exists():
        _unsealed(record.place, files.LIVE)


def refuse_damaged_files(record: Record) -> None:
    """The same, as far as it can be known without building the Spec: no code of the record runs."""
    _refuse_foreign(record.place)
    _refuse_changed_digest(record.place)
    _refuse_unknown(record.place, "env.json", record.env, IN_ENV)
    _ = record.ended  # compares Spec and rows with their digests
    _refuse_other_code(record)
    _refuse_other_texts(record)
    _refuse_other_snapshots(record)
    _refuse_unreadable_lines(record.place, "events.jsonl")
    _ = record.about  # refuses what cannot be read; it has no digest, since people change it


def _refuse_foreign(place: Place) -> None:
    """What is no part of a run could be anything, also something that somebody needs."""
    for path in files.inside(place):
        if not (path.name in PARTS and path.is_dir() == (path.name in FOLDERS)) and not PART.fullmatch(path.name):
            raise corrupt(place, f"{path.name} is no part of a run")
        _refuse_link(place, path)
        for inner in files.inside(path) if path.name in FOLDERS else []:
            _refuse_link(place, inner)
            if not (re.fullmatch(IN_FOLDERS[path.name], inner.name) or PART.fullmatch(inner.name)):
                raise corrupt(place, f"{path.name}/{inner.name} is no part of a run")


def _refuse_link(place: Place, path: Place) -> None:
    if isinstance(path, Path) and isinstance(place, Path) and path.is_symlink():
        raise corrupt(place, f"{path.relative_to(place)} is a link")


def _refuse_changed_digest(place: Place) -> None:
    if not (place / "digest.json").exists():
        return
    digest = files.read_json(place, "digest.json", "end")
    if digest.get("digest", files.digest_of(digest)) != files.digest_of(digest):
        raise corrupt(place, "digest.json does not match its own digest: it was changed")
    _refuse_unknown(place, "digest.json", digest, IN_DIGEST)


def _refuse_unknown(place: Place, name: str, data: dict[str, Any], allowed: str) -> None:
    """A key that nobody writes is one that was changed."""
    odd = [key for key in data if not re.fullmatch(allowed, key)]
    if odd:
        raise corrupt(place, f"{name} has {odd[0]!r}, which no run has: it was changed")


def _refuse_other_code(record: Record) -> None:
    """Every file that the Spec names is there and says what it said; in a finished record, to the byte."""
    code = record.code
    for file, wanted in stored_spec.own_files(record.spec_json).items():
        name = f"code/{file}"
        if file not in code:
            raise corrupt(record.place, f"{name}, which spec.json names, is missing")
        content = code[file]
        whole = (record.ended or {}).get(name, files.sha256(content)) == files.sha256(content)
        try:
            same = whole and code_digest(content) == wanted
        except (SyntaxError, ValueError):
            same = False
        if not same:
            raise corrupt(record.place, f"{name} is not what spec.json names: it was changed")


def _refuse_other_texts(record: Record) -> None:
    """Every table of a text is what was sealed and can be read; one of which the digest does not speak is foreign."""
    promised = [name for name in record.ended or {} if name.startswith("texts/")]
    for name in dict.fromkeys([*promised, *record.texts]):
        if record.ended is not None and name not in promised:
            raise corrupt(record.place, f"{name} is not in digest.json")
        try:
            Counts.of_bytes(record.sealed(name))
        except NoTable as error:
            raise corrupt(record.place, f"{name}: {error}") from None


def _refuse_other_spec(record: Record) -> None:
    """A part-done run has no digest of its Spec: it is written as it was read; fields may have been gained since."""
    spec = record.spec
    if record.ended is None and not _is_part_of(record.spec_json, encode(spec)):
        raise corrupt(record.place, "spec.json is of another version, or was changed")


def _is_part_of(stored: Any, now: Any) -> bool:
    if isinstance(stored, dict) and isinstance(now, dict):
        return all(key in now and _is_part_of(value, now[key]) for key, value in stored.items())
    if isinstance(stored, list) and isinstance(now, list):
        return len(stored) == len(now) and all(map(_is_part_of, stored, now))
    return stored == now


def _kept(place: Place) -> list[str]:
    """The state, and the states that stay."""
    here = [states.NAME] if (place / states.NAME).exists() else []
    return here + [f"states/{file.name}" for file in files.numbered(place / "states").values()]


def _refuse_other_rows(record: Record, kept: dict[str, State]) -> None:
    """Rows can be read, and are those that were there when each state was written."""
    _ = Record(record.place).rows
    there = (record.place / "rows.jsonl").exists() or record.ended is not None
    lines = files.complete_lines(files.read(record.place, "rows.jsonl")) if there else []
    for name, state in kept.items():
        before = lines[: state.step]
        known = {"rows": state.rows if len(before) == state.step else "lost", "of": state.of}
        states.refuse_stranger(record.place, name, known, states.family(record.spec), digest_of_lines(before))
        if name != states.NAME and name != f"states/{state.step:06d}.safetensors":
            raise corrupt(record.place, f"{name} is the state of step {state.step}")
    both = (record.place / "rows.jsonl").exists() and (record.place / "rows.jsonl.gz").exists()
    if both and files.complete_lines(files.contents(record.place / "rows.jsonl")) != lines:
        raise corrupt(record.place, "rows.jsonl and rows.jsonl.gz hold different rows")


def _refuse_other_snapshots(record: Record) -> None:
    names = [f"snapshots/{file.name}" for file in files.numbered(record.place / "snapshots").values()]
    promised = [name for name in record.ended or {} if name.startswith("snapshots/")]
    for name in dict.fromkeys([*promised, *names]):
        record.tensors(name)
        if record.ended is not None and name not in promised:
            raise corrupt(record.place, f"{name} is not in digest.json")


def _refuse_snapshots_of_others(record: Record) -> None:
    """A part-done run has no digest of its snapshots, but each says what it belongs to."""
    there = (record.place / "rows.jsonl").exists()
    lines = files.complete_lines(files.read(record.place, "rows.jsonl")) if there else []
    before = states.digests_before(lines, record.snapshot_steps)
    for step in record.snapshot_steps:
        name = f"snapshots/{step:06d}.safetensors"
        about = _unsealed(record.place, name)
        if int(about["step"]) != step:
            raise corrupt(record.place, f"{name} holds the weights of another step")
        if step < len(lines):  # later ones are written again
            states.refuse_stranger(record.place, name, about, states.family(record.spec), before[step])


def _unsealed(place: Place, name: str) -> dict[str, str]:
    """What a file of weights says about itself."""
    try:
        _, about = unseal(files.read(place, name))
    except Damaged as damage:
        raise corrupt(place, f"{name} {damage}") from None
    if not about.get("step", "").isdecimal():
        raise corrupt(place, f"{name} does not say of which step it is")
    return about


def _refuse_other_times(record: Record, state: State | None) -> None:
    """Against the digest of a finished run, or that of the state; a clock that began again has fewer lines."""
    lines = _refuse_unreadable_lines(record.place, "timing.jsonl")
    before = [line for line in lines if state is None or json.loads(line)["step"] < state.step]
    wanted = record.env.get("timing.jsonl") if record.ended is not None else state.timing if state else None
    if wanted is not None and wanted != digest_of_lines(lines if record.ended is not None else before):
        raise corrupt(record.place, "timing.jsonl does not match its digest: it was changed or lost")


def _refuse_unreadable_lines(place: Place, name: str) -> list[bytes]:
    """The whole lines of a file, if there is one: each a JSON object with its step."""
    if not (place / name).exists():
        return []
    lines = files.complete_lines(files.read(place, name))
    try:
        if not all(isinstance(json.loads(line)["step"], int) for line in lines):
            raise ValueError
    except (KeyError, TypeError, ValueError, RecursionError):
        raise corrupt(place, f"{name} has an unreadable line") from None
    return lines

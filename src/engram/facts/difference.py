"""An edit as a file: a safetensors file with the factors u and v of a change of rank one, and what it is about."""

import json
import re
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from engram.errors import EngramError
from engram.plain import read_plain
from engram.probes.edits import Edit

FORMAT, KEY = "engram edit 1", "engram"
MOST = 1 << 24  # bytes
WORDS = ("prompt", "was", "answer", "how")
LONGEST = 4096  # letters of what it says about itself


def edit_bytes(edit: Edit) -> bytes:
    about = {name: getattr(edit, name) for name in WORDS} | {"layer": str(edit.layer), "model": edit.model}
    tensors = {"u": edit.u.cpu().contiguous(), "v": edit.v.cpu().contiguous()}
    told = json.dumps({**edit.note, **about, "format": FORMAT}, sort_keys=True)
    return save(tensors, metadata={KEY: told})  # one entry: several would be written in any order


def save_edit(edit: Edit, path: Path) -> Path:
    """The file; one of this name that holds something else is left as it is."""
    content = edit_bytes(edit)
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        if path.read_bytes() != content:
            raise EngramError(f"{path}: something else has this name; choose another with --output") from None
    except OSError as error:
        raise EngramError(f"{path}: cannot be written ({error.strerror}); choose another with --output") from None
    return path


def read_edit(path: Path) -> Edit:
    """The edit of a file that anybody may have written."""
    try:
        content = read_plain(path, MOST, follow=True)
    except OSError as error:
        raise EngramError(
            f"{path}: cannot be read ({error.strerror}); give a file that `engram fact edit` wrote"
        ) from None
    try:
        tensors = load(content)
        about = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__", {})
        told = json.loads(about.get(KEY, "{}"))
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError, RecursionError):
        raise _wrong(path, "it is cut off, or is no safetensors file") from None
    texts = isinstance(told, dict) and all(isinstance(text, str) for text in told.values())
    return _checked(path, tensors, told if texts else {})


def _checked(path: Path, tensors: dict[str, torch.Tensor], about: dict[str, str]) -> Edit:
    if about.get("format") != FORMAT:
        raise _wrong(path, f"its format is {about.get('format', 'none')!r:.60}, not {FORMAT!r}")
    if set(tensors) != {"u", "v"} or any(t.ndim != 1 or not t.is_floating_point() for t in tensors.values()):
        raise _wrong(path, "it must hold two vectors of numbers, u and v, and nothing else")
    if not all(bool(t.isfinite().all()) for t in tensors.values()):
        raise _wrong(path, "u or v holds something other than finite numbers")
    missing = [name for name in (*WORDS, "layer", "model") if name not in about]
    if missing:
        raise _wrong(path, f"it does not say its {missing[0]}")
    if not re.fullmatch(r"[1-9]\d{0,4}", about["layer"]) or not re.fullmatch(r"[0-9a-f]{64}", about["model"]):
        raise _wrong(path, "its layer must be a number from 1 on, its model a SHA-256")
    if any(len(text) > LONGEST for text in about.values()):
        raise _wrong(path, f"what it says about itself is longer than {LONGEST} letters")
    note = {name: text for name, text in about.items() if name not in (*WORDS, "layer", "model", "format")}
    words = {name: about[name] for name in WORDS}
    return Edit(int(about["layer"]), tensors["u"], tensors["v"], about["model"], note=note, **words)


def _wrong(path: Path, why: str) -> EngramError:
    return EngramError(f"{path}: no edit of a fact: {why}; make it anew with `engram fact edit --model`")

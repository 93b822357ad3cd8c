"""Values as JSON and back: nested, typed by class name, with errors that name the field."""

import ast
import base64
import hashlib
import io
import json
import sys
import tokenize
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from engram.errors import EngramError
from engram.values import OWN_FILE, Value, build, class_named

Code = Mapping[str, bytes]
TAGS = ("class", "file", "sha256_of_file", "revision")
EXPERIMENT_PARTS = {"specs", "claims", "figure", "table", "CLAIMS", "SOURCE", "TIMES", "WHY"}  # change no number


def encode(value: Any, defaults: bool = True) -> Any:
    """Plain JSON data. Without defaults: only what makes up the identity."""
    if isinstance(value, Value):
        kind = type(value)
        fields = {
            name: encode(getattr(value, name), defaults)
            for name, field in kind.model_fields.items()
            if defaults or not (name in kind.unhashed or getattr(value, name) == field.default)
        }
        return _class_tag(kind) | {"revision": kind.revision} | fields
    if isinstance(value, dict):
        return {key: encode(item, defaults) for key, item in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [encode(item, defaults) for item in value]
    return value


def digest_of(value: Value) -> str:
    """The identity of a Value: non-default fields and revisions, hashed."""
    text = json.dumps(encode(value, defaults=False), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def decode(data: Any, code: Code = {}, at: str = "") -> Any:  # noqa: B006 (never changed)
    """The Value that `encode` wrote; `code` holds the user's files, by name."""
    if isinstance(data, list):
        return tuple(decode(item, code, f"{at}.{i}") for i, item in enumerate(data))
    if not isinstance(data, dict):
        return data
    prefix = f"{at}." if at else ""
    fields = {name: decode(item, code, prefix + name) for name, item in data.items() if name not in TAGS}
    return build(_find_class(data, code), fields, at) if "class" in data else fields


def _class_tag(kind: type[Value]) -> dict[str, str]:
    """Its stable name; a class in a user's file is called by its Python name, together with that file."""
    if kind.stable_name is not None:
        return {"class": kind.stable_name}
    module = sys.modules[kind.__module__]
    if not hasattr(module, "__content__"):
        raise EngramError(f"class {kind.__name__} must be defined in a file that Engram runs: engram run ./file.py")
    return {"class": kind.__qualname__, "file": module.__file_name__, "sha256_of_file": code_digest(module.__content__)}


def _find_class(data: dict[str, Any], code: Code) -> type[Value]:
    tag, file = data["class"], data.get("file")
    if file is None:
        kind = class_named(tag)
    else:
        kind = getattr(_load_named(data, code), str(tag), None) if file in code else None
    if kind is None:
        raise EngramError(f"class {tag!r} is unknown here; `engram doctor` prints the version of Engram")
    if not (isinstance(kind, type) and issubclass(kind, Value)):
        raise EngramError(f"class {tag!r} is not a description of a run")
    return kind


def _load_named(data: dict[str, Any], code: Code) -> ModuleType:
    """The file of a class, if it is the one that the Spec names."""
    file = data["file"]
    if code_digest(code[file]) != data.get("sha256_of_file"):
        raise EngramError(f"code/{file} is not the file that the Spec was made with: its digest differs")
    return load_code(file, code[file])


def user_code(value: Any) -> dict[str, bytes]:
    """The user's files, by name, whose classes occur in a Value."""
    if isinstance(value, dict | list | tuple):
        parts = list(value.values() if isinstance(value, dict) else value)
        return {name: content for part in parts for name, content in user_code(part).items()}
    if not isinstance(value, Value):
        return {}
    module = sys.modules[type(value).__module__]
    own = {module.__file_name__: module.__content__} if type(value).stable_name is None else {}
    return own | user_code([getattr(value, name) for name in type(value).model_fields])


def message_of(value: Value) -> dict[str, Any]:
    """A Value as JSON for another process, together with the user's files that it needs."""
    code = {name: base64.b64encode(content).decode() for name, content in user_code(value).items()}
    return {"spec": encode(value), "code": code}


def of_message(message: dict[str, Any]) -> Any:
    """The Value that `message_of` wrote."""
    return decode(message["spec"], {name: base64.b64decode(text) for name, text in message["code"].items()})


def in_files(kind: type[Value], code: Code) -> bool:
    """Whether a class stands in one of these files."""
    return getattr(sys.modules.get(kind.__module__), "__content__", None) in code.values()


def refuse_if_unreadable(value: Value) -> None:
    """A Spec that could be run but not read back from its record is refused before it runs."""
    try:
        if digest_of(decode(json.loads(json.dumps(encode(value))), user_code(value))) == digest_of(value):
            return
        why = "a field reads back differently"
    except (EngramError, TypeError, ValueError) as error:
        why = str(error)
    raise EngramError(f"this Spec cannot be stored: {why}; use fields of str, int, float, bool, tuple or dict[str, …]")


def code_digest(content: bytes) -> str:
    """SHA-256 of what can change numbers: comments, layout, docstring and the parts of an experiment are left out.

    Taken over tokens, because the dump of a syntax tree differs between versions of Python.
    """
    body = ast.parse(content).body
    left_out = [node for node in body if _names(node) & EXPERIMENT_PARTS]
    left_out += [node for node in body[:1] if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    lines = {line for node in left_out for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    layout = (tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.INDENT)
    tokens = tokenize.tokenize(io.BytesIO(content).readline)
    kept = [token.string for token in tokens if token.start[0] not in lines and token.type not in layout]
    return hashlib.sha256("\0".join(filter(str.strip, kept)).encode()).hexdigest()


def _names(node: ast.stmt) -> set[str]:
    """What a statement of a module defines."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {getattr(node, "name", ""), *(target.id for target in targets if isinstance(target, ast.Name))}


def load_file(path: Path) -> ModuleType:
    try:
        return load_code(path.name, path.read_bytes(), path)
    except OSError as error:
        raise EngramError(f"cannot read {path} ({error.strerror}); give the path of a Python file") from None


def load_code(name: str, content: bytes, path: Path | None = None) -> ModuleType:
    """A user's file as a module that remembers its own text; the same text is loaded once."""
    key = f"{OWN_FILE}{hashlib.sha256(name.encode() + content).hexdigest()[:16]}"
    if key not in sys.modules:
        module = ModuleType(key)
        vars(module).update(__file_name__=name, __content__=content)
        sys.modules[key] = module
        try:
            exec(compile(content, str(path or name), "exec"), vars(module))
        except (Exception, SystemExit) as error:
            del sys.modules[key]
            if isinstance(error, EngramError):
                raise
            why = " ".join(str(error).partition("\n\n")[0].split())
            raise EngramError(f"{path or name} cannot be loaded: {type(error).__name__}: {why}") from error
    return sys.modules[key]

"""Values as JSON and back: nested, typed by class name, with errors that name the field."""

import ast
import hashlib
import importlib
import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from engram.errors import EngramError, did_you_mean
from engram.values import Value

Code = Mapping[str, Path]
TAGS = ("class", "file", "sha256_of_file", "revision")
EXPERIMENT_PARTS = ("specs", "claims", "figure")  # what a user's file may change without changing any number


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
    """The Value that `encode` wrote; `code` says where the user's files lie, by name."""
    if isinstance(data, list):
        return tuple(decode(item, code, f"{at}.{i}") for i, item in enumerate(data))
    if not isinstance(data, dict):
        return data
    prefix = f"{at}." if at else ""
    fields = {name: decode(item, code, prefix + name) for name, item in data.items() if name not in TAGS}
    return build(_find_class(data, code), fields, at) if "class" in data else fields


def build(kind: type[Value], fields: dict[str, Any], at: str = "") -> Value:
    """kind(**fields), with pydantic's report turned into one line."""
    try:
        return kind(**fields)
    except ValidationError as error:
        raise EngramError(explain(error, kind, at)) from None


def explain(error: ValidationError, kind: type[Value], at: str = "") -> str:
    """What is wrong with the first bad field: its name, what came, what is allowed, the nearest name."""
    first = error.errors()[0]
    names = [str(part) for part in first["loc"] if not str(part).startswith(("tuple", "function", "literal"))]
    field = ".".join([at, *names] if at else names)
    if first["type"] == "extra_forbidden":
        hint = did_you_mean(names[-1], kind.model_fields)
        return f"{field}: no such field in {kind.__name__}; {hint}allowed: {', '.join(kind.model_fields)}"
    if first["type"] == "missing":
        return f"{field}: {kind.__name__} needs this field"
    if first["type"] == "value_error":
        own = str(first.get("ctx", {})["error"])
        return f"{at}.{own}" if at else own
    message = first["msg"][0].lower() + first["msg"][1:]
    return f"{field}: {message}; got {first['input']!r}"


def _class_tag(kind: type[Value]) -> dict[str, str]:
    if kind.__module__.startswith("engram."):
        return {"class": f"{kind.__module__.removeprefix('engram.')}.{kind.__qualname__}"}
    file = code_file(kind)
    return {"class": kind.__qualname__, "file": file.name, "sha256_of_file": code_digest(file)}


def _find_class(data: dict[str, Any], code: Code) -> type[Value]:
    tag = data["class"]
    try:
        if "file" in data:
            module, name = load_file(code[data["file"]]), tag
        else:
            path, _, name = tag.rpartition(".")
            module = importlib.import_module(f"engram.{path}")
        kind = getattr(module, name)
    except (ImportError, AttributeError, KeyError):
        raise EngramError(f"class {tag!r} is unknown here; `engram doctor` prints the version of Engram") from None
    if not (isinstance(kind, type) and issubclass(kind, Value)):
        raise EngramError(f"class {tag!r} is not a description of a run")
    return kind


def code_file(kind: type[Value]) -> Path:
    """The file of a user's class."""
    return Path(str(sys.modules[kind.__module__].__file__))


def user_files(value: Any) -> set[Path]:
    """All user files whose classes occur in a Value."""
    if not isinstance(value, Value):
        return set()
    own = set() if type(value).__module__.startswith("engram.") else {code_file(type(value))}
    return own.union(*(user_files(getattr(value, name)) for name in type(value).model_fields))


def code_digest(path: Path) -> str:
    """SHA-256 of what can change numbers: comments, docstring, specs, claims and figure are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kept = [node for node in tree.body if getattr(node, "name", None) not in EXPERIMENT_PARTS]
    if kept and isinstance(kept[0], ast.Expr) and isinstance(kept[0].value, ast.Constant):
        kept = kept[1:]
    return hashlib.sha256("\n".join(map(ast.dump, kept)).encode()).hexdigest()


def load_file(path: Path) -> ModuleType:
    """A user's file as a module; the same content is loaded once."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EngramError(f"cannot read {path} ({error.strerror}); give the path of a Python file") from None
    name = f"engram_file_{hashlib.sha256(content).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise EngramError(f"{path} is not a Python file; an experiment file ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        if isinstance(error, EngramError):
            raise
        raise EngramError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module

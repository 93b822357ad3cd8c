"""What the trainer is told, made of what a page asks for."""

import base64
from typing import Any

from engram.lab.presets import chosen
from engram.lab.protocol import Intervene, Start
from engram.lab.run_reader import RunReader
from engram.specs import Train
from engram.specs.encode import encode, user_code
from engram.specs.events import kind_called


def order_of(asked: Start | Intervene, reader: RunReader) -> dict[str, Any]:
    """A Spec that cannot be is refused here, an event by the trainer: it knows when."""
    if isinstance(asked, Intervene):
        kind_called(asked.kind, reader.run(asked.run).spec)
        at = {"at": asked.at, "kind": asked.kind, "fields": dict(asked.fields)}
        return {"op": "intervene", "run": asked.run} | at
    if asked.run is not None:
        return {"op": "go", "run": reader.run(asked.run).id}
    return spec_order(chosen(asked.preset or "birth.joint", asked.seed, asked.settings))


def spec_order(spec: Train) -> dict[str, Any]:
    code = {name: base64.b64encode(content).decode() for name, content in user_code(spec).items()}
    return {"op": "start", "spec": encode(spec), "code": code}

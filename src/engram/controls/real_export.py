"""Controls of models of ours that are written and read as models of others."""

from typing import Any

from engram.claims.controls import Control, Controls
from engram.claims.planting import anew, changed
from engram.models import Weights

EXPORT = "engram.adapters.export"
SMALL = {"d": 16, "T": 12, "H": 2}  # sizes at which a model takes milliseconds


def _with(name: str, by: float) -> Any:
    """Tensors of these names are written a little larger."""

    def wrong(right: Any) -> Any:
        def tensors(*given: Any) -> Weights:
            return {n: by * W if n.endswith(name) else W for n, W in right(*given).items()}

        return tensors

    return wrong


def _larger(what: str, name: str, by: float = 1.01) -> Control:
    return Control(what, changed(anew(draws=1, **SMALL)), {f"{EXPORT}._tensors": _with(name, by)})


CONTROLS: Controls = {
    "real.same-probe": (
        _larger("queries, keys and values are written 1 % too large", "attn.c_attn.weight"),
        _larger("W_O is written 1 % too large", "attn.c_proj.weight"),
        _larger("positions are written 1 % too large", "wpe.weight"),
    )
}

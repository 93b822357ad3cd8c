"""Two paths to the same gradients: `reference` (autograd, any model and device) and `fast` (compiled, exact, CPU)."""

from engram.errors import EngramError
from engram.learning import fast, reference
from engram.learning.plan import Plan
from engram.learning.reference import Gradients
from engram.models.trace import Architecture

PATHS: dict[str, Gradients] = {"fast": fast.gradients, "reference": reference.gradients}


def choose_path(wanted: str, model: Architecture, plan: Plan, device: str) -> str:
    """`auto` takes the fast path where it applies; asking for it where it does not is an error."""
    if wanted not in ("auto", *PATHS):
        raise EngramError(f"--path {wanted!r}: allowed are auto, {', '.join(PATHS)}")
    possible = fast.applies(model, plan.trained, device)
    if wanted == "fast" and not possible:
        raise EngramError(
            "--path fast: needs Simplified on CPU with E and P untrained, and a C++ compiler on PATH; use --path auto"
        )
    return ("fast" if possible else "reference") if wanted == "auto" else wanted

"""Two paths to the same gradients: `reference` (autograd, any model and device) and `fast` (compiled, exact, CPU)."""

from engram.errors import EngramError
from engram.learning import fast, fast_stores, reference, stores
from engram.learning.plan import Plan
from engram.learning.reference import Gradients
from engram.models.one_head import OneHead
from engram.models.stores import Learner, Written
from engram.models.trace import Architecture

PATHS: dict[str, Gradients] = {"fast": fast.gradients, "reference": reference.gradients}
STORE_PATHS = {"fast": fast_stores.trained, "reference": stores.trained}


def choose_path(wanted: str, model: Architecture, plan: Plan, device: str) -> str:
    """`auto` takes the fast path where it applies; asking for it where it does not is an error."""
    needs = "Simplified on CPU with E and P untrained, and a C++ compiler on PATH"
    return _chosen(wanted, fast.applies(model, plan.trained, device), needs)


def search_path(wanted: str, model: Written | Learner | OneHead) -> str:
    """The path of a Search; a memory that is written by a formula needs none."""
    needs = "LinearMap or TwoLayer, and a C++ compiler on PATH"
    chosen = _chosen(wanted if isinstance(model, Learner) else "auto", fast_stores.applies(model), needs)
    return chosen if isinstance(model, Learner) else "none"


def _chosen(wanted: str, possible: bool, needs: str) -> str:
    if wanted not in ("auto", *PATHS):
        raise EngramError(f"--path {wanted!r}: allowed are auto, {', '.join(PATHS)}")
    if wanted == "fast" and not possible:
        raise EngramError(f"--path fast: needs {needs}; use --path auto")
    return ("fast" if possible else "reference") if wanted == "auto" else wanted

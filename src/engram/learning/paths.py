"""Two paths to the same gradients: `reference` (any model) and `fast` (exact; most kinds are compiled, for the CPU)."""

from engram.errors import EngramError
from engram.learning import fast, fast_facts, fast_layers, fast_stores, fast_transformer, reference, stores
from engram.learning.plan import Plan
from engram.learning.reference import Gradients, Measured
from engram.models import Transformer
from engram.models.factual import Factual
from engram.models.trace import Architecture, Weights
from engram.tasks import Batch


def _fast(model: Architecture, w: Weights, batch: Batch, loss: str, names: tuple[str, ...]) -> Measured:
    own = {Factual: fast_facts.gradients, Transformer: _transformer(model)}
    return own.get(type(model), fast.gradients)(model, w, batch, loss, names)


def _transformer(model: Architecture) -> Gradients:
    """Without layer norms and with one head a layer in torch, as records of such models were made; others compiled."""
    return fast_transformer.gradients if fast_transformer.applies(model) else fast_layers.gradients


PATHS: dict[str, Gradients] = {"fast": _fast, "reference": reference.gradients}
STORE_PATHS = {"fast": fast_stores.train_stores, "reference": stores.train_stores}


def choose_path(wanted: str, model: Architecture, plan: Plan, device: str) -> str:
    """`auto` takes the fast path where it applies; `fast` where it does not apply is an error."""
    needs = (
        "Simplified or Factual on CPU with untrained input embeddings, or a Transformer on CPU, and a C++ compiler on "
        "PATH; a Transformer without layer norms and with one head a layer needs neither"
    )
    facts = fast_facts.applies(model, plan.trained, device, plan.loss)
    transformer = fast_transformer.applies(model) or fast_layers.applies(model, device)
    return _chosen(wanted, fast.applies(model, plan.trained, device) or facts or transformer, needs)


def choose_store_path(wanted: str, model: object) -> str:
    """The path of a search that trains memories."""
    return _chosen(wanted, fast_stores.applies(model), "LinearMap or TwoLayer, and a C++ compiler on PATH")


def choose_fact_path(wanted: str, model: object) -> str:
    """The path of a search that trains on facts."""
    return _chosen(wanted, fast_facts.applies(model, (), "cpu"), "a C++ compiler on PATH")


def no_path(wanted: str, model: object) -> str:
    """A memory that is written by a formula has only one way."""
    return "none"


def _chosen(wanted: str, possible: bool, needs: str) -> str:
    if wanted not in ("auto", *PATHS):
        raise EngramError(f"--path: unknown {wanted!r}; allowed: auto, {', '.join(PATHS)}")
    if wanted == "fast" and not possible:
        raise EngramError(f"--path fast: needs {needs}; use --path auto")
    return ("fast" if possible else "reference") if wanted == "auto" else wanted

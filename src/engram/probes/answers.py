"""How well a model answers at some positions."""

from jaxtyping import Float, Int
from torch import Tensor

Metrics = dict[str, float]


def recall_in_context(logits: Float[Tensor, "n N"], targets: Int[Tensor, " n"], noise: int | None = None) -> Metrics:
    """Accuracy, loss and probability of the right token, means over n positions; and that of the token `noise`."""
    log_p = logits.double().log_softmax(dim=1)
    right = log_p.gather(1, targets[:, None])[:, 0]
    found = {"accuracy": logits.argmax(dim=1) == targets, "loss": -right, "p_correct": right.exp()}
    found |= {} if noise is None else {"p_noise": log_p[:, noise].exp()}
    return {name: float(values.double().mean()) for name, values in found.items()}

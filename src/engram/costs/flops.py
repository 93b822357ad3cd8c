"""Products of the readable pass, counted by torch on small batches and multiplied out."""

from collections.abc import Callable

from torch.utils.flop_counter import FlopCounterMode

from engram.learning import reference
from engram.models import Weights
from engram.specs import Train


def of_step(spec: Train, w: Weights, names: tuple[str, ...]) -> float:
    """One step forward and back. Part of it grows with the batch, part (products of weights) is done once."""
    one, two = (_of_batch(spec, w, names, batch) for batch in (1, 2))
    return one + (two - one) * (spec.plan.batch - 1)


def _of_batch(spec: Train, w: Weights, names: tuple[str, ...], batch: int) -> float:
    drawn = spec.task.sample(spec.seed, 0, batch)
    return counted(lambda: reference.gradients(spec.model, w, drawn, spec.plan.loss, names))


def counted(work: Callable[[], object]) -> float:
    """Twice the multiplications of all matrix products."""
    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops())

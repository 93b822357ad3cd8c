"""Experiments on factual recall: how many facts are stored, by what, and in which order they are learned."""

from engram.learning import SGD, Plan


def stages_plan(lr: float, steps: int, trained: tuple[str, ...], every: int) -> Plan:
    """SGD on fresh batches of 1024, with a look at all facts every few steps."""
    return Plan(
        optimiser=SGD(lr=lr),
        steps=steps,
        batch=1024,
        trained=trained,
        loss="answer",
        probe_every=every,
        attention_every=every,
        snapshot_every=64,
    )

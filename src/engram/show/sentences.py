"""Interventions in words."""

from engram.specs.events import Ablate, Change, Event, Freeze, Noise, Reset, Restore, Truncate, Unfreeze


def sentence(event: Event) -> str:
    match event:
        case Freeze():
            return f"freeze {event.matrix}"
        case Unfreeze():
            return f"unfreeze {event.matrix}"
        case Reset():
            return f"reset {event.matrix} to step {event.to}"
        case Truncate():
            return f"truncate {event.matrix} to rank {event.rank}"
        case Noise():
            return f"noise of size {event.size:g} on {event.matrix}"
        case Ablate():
            return f"ablate head {event.layer}.{event.head}"
        case Restore():
            return f"restore head {event.layer}.{event.head}"
        case Change():
            return f"set {event.field} to {event.value}"
        case _:
            return type(event).__name__.lower()

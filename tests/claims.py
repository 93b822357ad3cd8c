"""Claims in every state that the ledger knows, and one whose text tries to break a page."""

from types import ModuleType
from typing import Any

from engram.claims import Claim, Measure
from engram.claims.experiment import Experiment
from engram.claims.ledger import Entry

WHY = {
    "birth.inside": "An explanation that nobody needs.",
    "birth.outside": "b|c is <b>large</b> *because* of `it`.",
}
NASTY = 'It says <b>"1 & 2"</b> of | and *</script><script>document.title = "broken"</script>.'


def entry(id: str, statement: str, source: str, *measures: Measure, **more: Any) -> Entry:
    claim = Claim(id, statement, source, measures) if measures else None
    module = ModuleType("of_a_test")
    vars(module).update(SOURCE=source, WHY=WHY)
    experiment = Experiment(id, module, f"engram run {id}")
    return Entry(id, statement, experiment, "quick", claim, **({"seeds": (0, 1, 2, 3, 4)} if measures else {}), **more)


def five(name: str, middle: float, **band: float) -> Measure:
    return Measure.over_seeds(name, [middle - 0.02, middle - 0.01, middle, middle + 0.01, middle + 0.02], **band)


ENTRIES = [
    entry("birth.inside", "A number lies inside.", "Birth of a Transformer, Fig. 3", five("a", 0.5, low=0)),
    entry("birth.outside", NASTY, "Birth of a Transformer", five("a", 0.5, low=0), five("b|c", 2, high=1)),
    entry("birth.nothing", "Nobody has looked.", "Birth of a Transformer, Fig. 9"),
    entry("memory.old", "The code has changed.", "Hopfield 1982", five("a", 0.5, low=0), stale=True),
    entry("memory.few", "Two seeds only.", "talks", Measure.over_seeds("a", [0.5, 0.51], low=0)),
    entry("memory.lost", "One seed diverged.", "slides 'x'", five("a", 0.5, low=0), diverged=(7,)),
]
CLAIMS = [entry.to_json() for entry in ENTRIES]

"""The roles of the parts of a circuit, as far as probes confirm them at this step: nothing has a role by its place."""

from typing import Any

from engram.lab.pictures import memories_at
from engram.lab.roles import ABOVE_CHANCE, CONFIRMED, roles
from engram.models import Model, network_of
from engram.models.factual import Factual
from engram.probes.fact_circuit import Looks, looks
from engram.probes.hops import asking, pointers
from engram.specs import Train
from engram.tasks import Batch, Hops
from engram.theory.hops import most_hops

NO_ROLE = {"role": None, "share": None}
STEP = 2**41 + 3  # of unseen sequences that nobody else sees
SEQUENCES = 8
Roles = dict[str, dict[str, Any]]  # by the name of a part


def confirmed_roles(spec: Train, model: Model, batch: Batch) -> Roles:
    if isinstance(spec.model, Factual):
        return _of_facts(spec, model, batch)
    named = {"L{layer}H{head}".format(**one): {k: one[k] for k in NO_ROLE} for one in roles(spec, model)}
    hops = _of_hops(spec, model) if isinstance(spec.task, Hops) else {}
    return {name: role if role["role"] else hops.get(name, role) for name, role in named.items()}


def _is_confirmed(mass: float, chance: float) -> bool:
    return mass >= CONFIRMED and mass - chance >= ABOVE_CHANCE


def _of_hops(spec: Train, model: Model) -> Roles:
    """The pointer that a head follows most, in strings that ask for the most hops that so many layers double to."""
    network, hardest = network_of(model), max(spec.task.asked)  # type: ignore[attr-defined]  # of Hops
    task = asking(spec.task, min(hardest, most_hops(network.sizes.L)))
    found = pointers(network, task.sample(spec.seed, STEP, SEQUENCES), hardest)
    best: Roles = {}
    for name, value in sorted(found.items(), key=lambda item: item[1]):  # the largest comes last
        head, _, pointer = name.partition(".")
        if head != "chance" and _is_confirmed(value, found[f"chance.{pointer}"]):
            best[head] = {"role": f"looks at {pointer}", "share": round(value, 3)}
    return best


def _of_facts(spec: Train, model: Model, batch: Batch) -> Roles:
    """Heads that find the subject or the relation, or filter out all else; an MLP that stores the facts."""
    book = spec.task.book(spec.seed)  # type: ignore[attr-defined]  # of facts
    found = {f"L1H{h}": _of_looks(one) for h, one in enumerate(looks(spec.model, model.weights, book, batch), 1)}  # type: ignore[arg-type]
    memory = next((m for m in memories_at(spec, model.weights) if m.name == "W_F" and m.has_answers), None)
    recall = 0.0 if memory is None else memory.recall()
    stores = {"role": "stores the facts", "share": round(recall, 3)}
    return found | {"W_F": stores if recall >= CONFIRMED else NO_ROLE}


def _of_looks(one: Looks) -> dict[str, Any]:
    possible = [("finds the subject", one.subject, one.chance), ("finds the relation", one.relation, one.chance)]
    possible.append(("filters out noise", one.subject + one.relation, 2 * one.chance))
    confirmed = (
        {"role": role, "share": round(mass, 3)} for role, mass, chance in possible if _is_confirmed(mass, chance)
    )
    return next(confirmed, NO_ROLE)

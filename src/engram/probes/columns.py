"""What a column of the rows is: the group that it is drawn with, and its title there. Any name will do."""

import re
from collections.abc import Iterable
from math import inf
from typing import NamedTuple

FIRST = ("recall.W_O2", "recall.W_K2", "recall.W_K1.t<64", "recall.W_K1")  # memories that are named before others
AXES = {
    "loss": "loss (nats)",
    "loss on tests": "loss on tests (nats)",
    "loss on clean text": "loss on clean text (nats)",
    "loss when truncated": "loss when truncated (nats)",
    "kl": "KL divergence (nats)",
}
BY_HOPS = "accuracy by hops"  # on unseen sequences
BY_HEAD = {"previous": "previous-token score", "induction": "induction score"}
DRAWN = {
    "probability on clean text",
    BY_HOPS,
    *BY_HEAD.values(),
}  # beside losses, accuracies and recalls, unless a person switches them off
WORDS = {
    "in_context": "in context",
    "first": "first visits",
    "answer": "answers",
    "relation": "of the relation",
    "subject": "of the subject",
    "p_noise": "noise token",
    "p_correct": "right token",
}

HOPS = re.compile(r"hop\d+")  # a group of positions that ask for so many hops


class Column(NamedTuple):
    name: str
    group: str
    title: str


def column(name: str) -> Column:
    return Column(name, *_group_and_title(name.split(".")))


def _group_and_title(parts: list[str]) -> tuple[str, str]:
    match parts:
        case ["test", test, "accuracy", hops] if HOPS.fullmatch(hops):
            return BY_HOPS, hops_in_words(hops) if test == "all" else f"{test}: {hops_in_words(hops)}"
        case ["test", test, *inner] if inner:
            group, title = _group_and_title(inner)
            return f"{group} on tests", f"{test}: {title}"
        case ["all", *inner] if inner:
            group, title = _group_and_title(inner)
            return group, f"{title} over all facts"
        case ["noise", *inner] if inner:
            return _of_noise(inner)
        case ["recall", memory, *where]:
            return "recall", f"{memory} ({', '.join(where)})" if where else memory
        case ["loss" | "accuracy" as group, *where]:
            return group, " ".join([group, *map(_word, where)])
        case ["previous" | "induction" as kind, head]:
            return BY_HEAD[kind], head
        case ["cut" | "map", matrix, *share, metric] if share:
            kept = f"{matrix} at {'.'.join(share)}"  # 0.5% has a point
            if metric.startswith("p_"):
                return "probability when truncated", f"{_word(metric)}, {kept}"
            return f"{metric} when truncated", kept
    group, *rest = parts
    return _word(group), " ".join(map(_word, rest or parts))


def _of_noise(parts: list[str]) -> tuple[str, str]:
    """Recall is measured on clean text; margins and masses are what they are elsewhere."""
    match parts:
        case ["p_noise" | "p_correct" as token]:
            return "probability on clean text", _word(token)
        case ["loss" | "accuracy" as group]:
            return f"{group} on clean text", group
        case ["margin", path]:
            return "margin of noise", path
    return _group_and_title(parts)


def _word(part: str) -> str:
    """Letters of the paper stay as they are: W_K1."""
    if HOPS.fullmatch(part):
        return f"at {hops_in_words(part)}"
    return WORDS.get(part, part.replace("_", " ") if part.islower() else part)


def hops_in_words(group: str) -> str:
    """2 hops, of the group hop2."""
    number = group.removeprefix("hop")
    return "1 hop" if number == "1" else f"{number} hops"


def is_share(name: str) -> bool:
    """Whether the numbers of a column lie between 0 and 1 by what they are."""
    return column(name).group.startswith(("accuracy", "recall", "probability"))


def bounds(name: str) -> tuple[float, float]:
    """Between which numbers those of a column lie by what they are: shares, and losses, which are never negative."""
    if is_share(name):
        return 0.0, 1.0
    return (0.0, inf) if column(name).group.startswith(("loss", "kl")) else (-inf, inf)


def axis(group: str) -> str:
    """What stands at the axis of a group, with its unit."""
    return AXES.get(group, group)


def memories(names: Iterable[str]) -> list[Column]:
    """The recalls among some columns, in the order in which their births are told."""
    found = [column(name) for name in names]
    place = {name: i for i, name in enumerate(FIRST)}
    return sorted((c for c in found if c.group == "recall"), key=lambda c: place.get(c.name, len(place)))


def curves(names: Iterable[str]) -> list[Column]:
    """What can be drawn over the steps. The loss over all that is read is left out where it is that of one group."""
    known = [name for name in dict.fromkeys(names) if name != "step"]
    same = sum(name.startswith("loss.") for name in known) == 1
    others = [c for c in map(column, known) if c.group != "recall" and not (same and c.name == "loss")]
    return others + memories(known)

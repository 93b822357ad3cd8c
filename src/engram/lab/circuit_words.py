"""What is written in and beside the parts of a circuit: the page draws it as it is."""

from typing import Any


def short(node: dict[str, Any]) -> str:
    """The name of a node that fits into it."""
    name, kind = node["name"], node["kind"]
    if kind == "memory":
        return f"memory {name.removeprefix('memory:')}"
    if kind == "head":
        return f"head {name[1:].replace('H', '.')}"
    return f"MLP {name}" if kind == "feed-forward" else node["title"]


def lines(node: dict[str, Any]) -> list[str]:
    """Its role, which is said only if a probe confirms it, and its numbers."""
    if node["kind"] == "answer":
        return [f"p = {two(node['p_right'])}"]
    if node["kind"] == "memory":
        return [f"KL {two(node['kl'])} nats"] if node["recall"] is None else _of_memory(node)
    role = [] if node["kind"] == "embedding" else [node["role"] or "no role confirmed"]
    worth = [] if node["worth"] is None else [f"worth {two(node['worth'])}"]
    return [*role, f"adds {two(node['attribution'])}", *worth]


def _of_memory(node: dict[str, Any]) -> list[str]:
    return [node["role"] or "not born", f"recall {two(node['recall'])}"]


def aloud(node: dict[str, Any]) -> str:
    """The same in one line, with how far a probe confirms the role."""
    share = [f"confirmed: {node['share']:.0%}"] if node["role"] and node["share"] is not None else []
    return ", ".join([node["title"], *lines(node), *share])


def of_edge(edge: dict[str, Any]) -> str:
    """What an edge is worth: to a reader what cutting it costs, to the answer its share of the lead."""
    if edge["attribution"] is not None:
        return f"adds {two(edge['attribution'])} to the lead of the right answer"
    recall = [] if edge["recall"] is None else [f"recall of the key memory {two(edge['recall'])}"]
    cut = "not cut" if edge["cut"] is None else f"cut, the loss rises by {two(edge['cut'])} nats"
    return "; ".join([*recall, cut])


def two(value: float | None) -> str:
    """Two decimals: what is next to nothing is 0.00."""
    return "–" if value is None else f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")

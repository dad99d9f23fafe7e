"""Traversal, rebuilding and construction of nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

from .nodes import EMPTY, Choice, Literal, Member, Node, Repeat, Rule, Sequence, Unique

__all__ = [
    "flatten_choice",
    "make_choice",
    "inner_nodes",
    "named_rules",
    "reached_rules",
    "rebuild_node",
    "make_sequence",
    "flatten_sequence",
]


def inner_nodes(node: Node) -> tuple[Node, ...]:
    """Return the direct parts of a node. An Object has none here: its values belong to the front end that
    created it.
    """
    if isinstance(node, Sequence):
        return node.parts
    if isinstance(node, Choice):
        return node.options
    if isinstance(node, Repeat):
        return (node.node,)
    if isinstance(node, Member):
        return (node.node,) if node.again is None else (node.node, node.again)
    return (node.body,) if isinstance(node, Unique) else ()


def rebuild_node(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the node with `change` applied to its direct parts."""
    if isinstance(node, Sequence):
        return make_sequence(map(change, node.parts))
    if isinstance(node, Choice):
        return make_choice(map(change, node.options))
    if isinstance(node, Repeat):
        return Repeat(change(node.node), node.low, node.high)
    if isinstance(node, Member):
        again = None if node.again is None else change(node.again)
        assert again is None or isinstance(again, Rule)
        return Member(change(node.node), again)
    return Unique(change(node.body)) if isinstance(node, Unique) else node


def named_rules(node: Node) -> Iterator[Hashable]:
    """Yield the names of the rules that a node references directly."""
    work = [node]
    while work:
        part = work.pop()
        if isinstance(part, Rule):
            yield part.name
        work.extend(inner_nodes(part))


def reached_rules(start: Node, rules: Mapping[Hashable, Node]) -> list[Hashable]:
    """Return the names in `rules` reachable from the start, in postorder: each after those it references, except in
    cycles.
    """
    order: list[Hashable] = []
    known: set[Hashable] = set()
    work: list[tuple[Hashable, Iterator[Hashable]]] = [(None, named_rules(start))]
    while work:
        name, rest = work[-1]
        following = next((n for n in rest if n in rules and n not in known), None)
        if following is not None:
            known.add(following)
            work.append((following, named_rules(rules[following])))
            continue
        work.pop()
        if work:
            order.append(name)
    return order


def flatten_sequence(node: Node) -> tuple[Node, ...]:
    """Return a node as a list of consecutive parts, with nested sequences flattened."""
    if isinstance(node, Sequence):
        return tuple(step for part in node.parts for step in flatten_sequence(part))
    return () if node == EMPTY else (node,)


def flatten_choice(node: Node) -> tuple[Node, ...]:
    """Return a node as a list of distinct options, with nested choices flattened."""
    if isinstance(node, Choice):
        return tuple(dict.fromkeys(option for part in node.options for option in flatten_choice(part)))
    return (node,)


def make_sequence(parts: Iterable[Node]) -> Node:
    """Return the concatenation of the parts, with adjacent literals merged."""
    out: list[Node] = []
    for part in (step for several in parts for step in flatten_sequence(several)):
        if out and isinstance(part, Literal) and isinstance(last := out[-1], Literal):
            out[-1] = Literal(last.data + part.data)
        else:
            out.append(part)
    return out[0] if len(out) == 1 else Sequence(tuple(out)) if out else EMPTY


def make_choice(options: Iterable[Node]) -> Node:
    """Return the choice of the distinct options."""
    found = tuple(dict.fromkeys(option for part in options for option in flatten_choice(part)))
    return found[0] if len(found) == 1 else Choice(found)

"""What a node is made of, and the same node made of other parts."""

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
    """The nodes that a node is made of. An Object's values belong to the front end that made it: none."""
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
    """The node with its inner nodes changed."""
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
    """The rules that a node names itself."""
    work = [node]
    while work:
        part = work.pop()
        if isinstance(part, Rule):
            yield part.name
        work.extend(inner_nodes(part))


def reached_rules(start: Node, rules: Mapping[Hashable, Node]) -> list[Hashable]:
    """The names of `rules` that the start leads to, each after those that it names (but for cycles)."""
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
    """A node as what comes one after the other, sequences inside opened."""
    if isinstance(node, Sequence):
        return tuple(step for part in node.parts for step in flatten_sequence(part))
    return () if node == EMPTY else (node,)


def flatten_choice(node: Node) -> tuple[Node, ...]:
    """A node as its options, choices inside opened, each once."""
    if isinstance(node, Choice):
        return tuple(dict.fromkeys(option for part in node.options for option in flatten_choice(part)))
    return (node,)


def make_sequence(parts: Iterable[Node]) -> Node:
    """One after the other; neighbouring literals are one."""
    out: list[Node] = []
    for part in (step for several in parts for step in flatten_sequence(several)):
        if out and isinstance(part, Literal) and isinstance(last := out[-1], Literal):
            out[-1] = Literal(last.data + part.data)
        else:
            out.append(part)
    return out[0] if len(out) == 1 else Sequence(tuple(out)) if out else EMPTY


def make_choice(options: Iterable[Node]) -> Node:
    """One of these, each once."""
    found = tuple(dict.fromkeys(option for part in options for option in flatten_choice(part)))
    return found[0] if len(found) == 1 else Choice(found)

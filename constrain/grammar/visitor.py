"""Operations on nodes: a visitor with one method per class of node, a fold, and traversals.

An operation is a subclass of `NodeVisitor` (the visitor pattern of Gamma, Helm, Johnson, Vlissides 1994, with dispatch
by type as in Python's `ast.NodeVisitor`). Its methods get the node alone, or the node and the values of its parts if
`fold_node` calls it. Methods may call `visit` for parts only where the depth of nodes is bounded, as it is for nodes
that front ends write (`Limits.nesting`); `fold_node` and `walk_nodes` do not recurse.

An Object is a leaf for `inner_nodes`, and so for everything based on it: its values are nodes of the front end that
created it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar, get_args

from .nodes import (
    Chars,
    Choice,
    Literal,
    Member,
    Node,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Token,
    Unique,
)
from .smart_constructors import make_choice, make_sequence

__all__ = [
    "NODE_CLASSES",
    "PLAIN_CLASSES",
    "NodeRebuilder",
    "NodeVisitor",
    "fold_node",
    "inner_nodes",
    "list_strings",
    "named_rules",
    "reached_rules",
    "rebuild_node",
    "visitor_method",
    "walk_nodes",
]

NODE_CLASSES: tuple[type, ...] = get_args(Node)
"""The classes of nodes, which every visitor knows unless it says otherwise."""
PLAIN_CLASSES: tuple[type, ...] = (Literal, Strings, Chars, Token, Sequence, Choice, Repeat, Rule)
"""The classes of nodes that `object_expansion.expand_objects` leaves."""

Value = TypeVar("Value")


def visitor_method(node_class: type) -> str:
    """Return the name of the method for a class of node, such as `visit_json_string` for JsonString."""
    return "visit_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node_class.__name__).lower()


class NodeVisitor(Generic[Value]):
    """An operation on nodes that returns a `Value`.

    A subclass defines `visit_literal`, `visit_json_string` and so on for the classes that it treats, and
    `generic_visit` if there is a result for all others. A test checks that each subclass covers its `node_classes`.

    Attributes
    ----------
    node_classes : tuple of type
        The classes of nodes that the visitor may meet.
    methods : dict of type to callable
        The method for each class. `visit` looks it up here; a hot or deeply recursive method may do so itself, which
        saves a call.
    """

    node_classes: ClassVar[tuple[type, ...]] = NODE_CLASSES
    methods: ClassVar[dict[type, Callable[..., Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.methods = {one: getattr(cls, visitor_method(one), cls.generic_visit) for one in NODE_CLASSES}

    def visit(self, node: Node, *context: Any) -> Value:
        """Return the result of the method for the class of the node, called with the node and the context.

        Raise TypeError if the visitor has no method for this class.
        """
        value: Value = self.methods[type(node)](self, node, *context)
        return value

    def generic_visit(self, node: Node, *context: Any) -> Value:
        """Return the result for a node whose class has no method of its own."""
        raise TypeError(f"{type(self).__name__} has no method {visitor_method(type(node))}")


class _InnerNodes(NodeVisitor[tuple[Node, ...]]):
    """Lists the direct parts of a node."""

    def visit_sequence(self, node: Sequence) -> tuple[Node, ...]:
        return node.parts

    def visit_choice(self, node: Choice) -> tuple[Node, ...]:
        return node.options

    def visit_repeat(self, node: Repeat) -> tuple[Node, ...]:
        return (node.node,)

    def visit_unique(self, node: Unique) -> tuple[Node, ...]:
        return (node.body,)

    def visit_member(self, node: Member) -> tuple[Node, ...]:
        return (node.node,) if node.again is None else (node.node, node.again)

    def generic_visit(self, node: Node, *context: Any) -> tuple[Node, ...]:
        return ()


_PARTS = _InnerNodes.methods
_LISTER = _InnerNodes()


def inner_nodes(node: Node) -> tuple[Node, ...]:
    """Return the direct parts of a node; a leaf and an Object have none."""
    parts: tuple[Node, ...] = _PARTS[type(node)](_LISTER, node)
    return parts


class NodeRebuilder(NodeVisitor[Node]):
    """A transformation of nodes, for `fold_node`: each method gets a node and the new nodes of its parts.

    The methods of this class put the new parts in place of the old ones, in normal form.
    """

    def visit_sequence(self, node: Sequence, parts: list[Node]) -> Node:
        return make_sequence(parts)

    def visit_choice(self, node: Choice, parts: list[Node]) -> Node:
        return make_choice(parts)

    def visit_repeat(self, node: Repeat, parts: list[Node]) -> Node:
        return Repeat(parts[0], node.low, node.high)

    def visit_unique(self, node: Unique, parts: list[Node]) -> Node:
        return Unique(parts[0])

    def visit_member(self, node: Member, parts: list[Node]) -> Node:
        again = parts[1] if len(parts) > 1 else None
        assert again is None or isinstance(again, Rule)
        return Member(parts[0], again)

    def generic_visit(self, node: Node, *context: Any) -> Node:
        return node


_REBUILDER = NodeRebuilder()


def rebuild_node(node: Node, parts: list[Node]) -> Node:
    """Return the node with other direct parts, in normal form."""
    return _REBUILDER.visit(node, parts)


def fold_node(node: Node, evaluate: Callable[[Node, list[Any]], Value]) -> Value:
    """Return the value of a node, computed bottom-up and without recursion.

    Parameters
    ----------
    node : Node
    evaluate : callable
        Called as `evaluate(node, values)` for each part before the nodes that contain it, with the values of the direct
        parts in order; usually the `visit` of a NodeVisitor.

    Returns
    -------
    Value
        The result of `evaluate` for `node` itself.
    """
    values: list[Any] = []
    for part in reversed(list(walk_nodes(node))):
        count = len(inner_nodes(part))
        inner = values[len(values) - count :]
        del values[len(values) - count :]
        values.append(evaluate(part, inner))
    value: Value = values[0]
    return value


def walk_nodes(*nodes: Node) -> Iterator[Node]:
    """Yield the nodes and their parts, transitively: each before its parts, the last of several first."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        pending.extend(inner_nodes(node))


def list_strings(node: Literal | Strings) -> tuple[bytes, ...]:
    """Return the texts of a Literal or Strings node."""
    return (node.data,) if isinstance(node, Literal) else node.options


def named_rules(node: Node) -> Iterator[Hashable]:
    """Yield the names of the rules that a node references directly."""
    return (part.name for part in walk_nodes(node) if isinstance(part, Rule))


def reached_rules(start: Node, rules: Mapping[Hashable, Node]) -> list[Hashable]:
    """Return the names in `rules` reachable from the start, in postorder: each after those it references, except in
    cycles.
    """
    order: list[Hashable] = []
    known: set[Hashable] = set()
    path: list[tuple[Hashable, Iterator[Hashable]]] = [(None, named_rules(start))]
    while path:
        name, names = path[-1]
        following = next((other for other in names if other in rules and other not in known), None)
        if following is not None:
            known.add(following)
            path.append((following, named_rules(rules[following])))
            continue
        path.pop()
        if path:
            order.append(name)
    return order

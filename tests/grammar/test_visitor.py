"""Visitors cover every class of node, and folds do not recurse."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

import constrain
from constrain.grammar.merged_rules import rename_rules
from constrain.grammar.nodes import (
    EMPTY,
    Choice,
    Grammar,
    Literal,
    Member,
    Node,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from constrain.grammar.productive import remove_dead_ends
from constrain.grammar.visitor import (
    NODE_CLASSES,
    NodeRebuilder,
    NodeVisitor,
    fold_node,
    inner_nodes,
    named_rules,
    rebuild_node,
    visitor_method,
    walk_nodes,
)

DEPTH = 100_000
PACKAGES = (
    "authoring",
    "dialogue",
    "engine",
    "export",
    "forms",
    "frontends",
    "grammar",
    "program",
    "testing",
    "vocabulary",
)


def every_visitor() -> list[type[NodeVisitor[Any]]]:
    """Return the visitors of the library, after import of all modules of the packages that may have some."""
    for package in PACKAGES:
        path = f"constrain.{package}"
        for module in pkgutil.walk_packages(importlib.import_module(path).__path__, path + "."):
            try:
                importlib.import_module(module.name)
            except ImportError:  # An optional third party is missing.
                continue
    found, pending = [], [NodeVisitor]
    while pending:
        known = pending.pop()
        found += [cls for cls in known.__subclasses__() if cls.__module__.partition(".")[0] == constrain.__name__]
        pending += known.__subclasses__()
    return sorted(set(found), key=lambda cls: (cls.__module__, cls.__qualname__))


def test_the_classes_of_nodes() -> None:
    from constrain.grammar import nodes

    others = {Grammar, nodes.Layout, nodes.NameClass, nodes.Property}
    defined = {one for one in vars(nodes).values() if isinstance(one, type) and one.__module__ == nodes.__name__}
    assert set(NODE_CLASSES) == defined - others


@pytest.mark.parametrize("visitor", every_visitor(), ids=lambda cls: f"{cls.__module__}.{cls.__qualname__}")
def test_every_visitor_has_a_method_for_each_class_of_node(visitor: type[NodeVisitor[Any]]) -> None:
    assert set(visitor.node_classes) <= set(NODE_CLASSES)
    if visitor.generic_visit is NodeVisitor.generic_visit:
        missing = [visitor_method(one) for one in visitor.node_classes if not hasattr(visitor, visitor_method(one))]
        assert not missing
    names = {visitor_method(one) for one in NODE_CLASSES}
    assert {name for name in dir(visitor) if name.startswith("visit_")} <= names  # A misspelt method is never called.


def test_there_are_visitors_in_each_layer() -> None:
    layers = {cls.__module__.split(".")[1] for cls in every_visitor()}
    assert {"grammar", "program", "export", "engine", "testing", "dialogue", "authoring", "vocabulary"} <= layers


def test_a_missing_method_names_the_class_of_node() -> None:
    class Names(NodeVisitor[str]):
        def visit_rule(self, node: Rule) -> str:
            return str(node.name)

    assert Names().visit(Rule("a")) == "a"
    with pytest.raises(TypeError, match="Names has no method visit_strings"):
        Names().visit(Strings((b"a",)))


def test_a_visitor_passes_its_context_on() -> None:
    class Repeated(NodeVisitor[bytes]):
        def visit_literal(self, node: Literal, count: int) -> bytes:
            return node.data * count

        def generic_visit(self, node: Node, *context: Any) -> bytes:
            return b"%d" % len(context)

    assert Repeated().visit(Literal(b"ab"), 2) == b"abab"
    assert Repeated().visit(Rule("a"), 1, 2, 3) == b"3"


def test_a_method_is_inherited_and_overridden() -> None:
    class Shout(NodeRebuilder):
        def visit_literal(self, node: Literal, parts: list[Node]) -> Node:
            return Literal(node.data.upper())

    node = Sequence((Choice((Literal(b"a"), Rule("r"))), Repeat(Literal(b"b"), 1, 2), Literal(b"c"), Literal(b"d")))
    assert fold_node(node, Shout().visit) == Sequence(
        (Choice((Literal(b"A"), Rule("r"))), Repeat(Literal(b"B"), 1, 2), Literal(b"CD"))
    )


def test_the_parts_of_nodes() -> None:
    rule, text = Rule("r"), Literal(b"a")
    assert inner_nodes(Sequence((text, rule))) == inner_nodes(Choice((text, rule))) == (text, rule)
    assert inner_nodes(Repeat(rule)) == inner_nodes(Unique(rule)) == inner_nodes(Member(rule)) == (rule,)
    assert inner_nodes(Member(text, rule)) == (text, rule)
    assert inner_nodes(rule) == inner_nodes(text) == ()
    for node in (
        Sequence((rule, text)),
        Choice((rule, text)),
        Repeat(rule, 1, 2),
        Unique(rule),
        Member(text, rule),
        text,
    ):
        assert rebuild_node(node, list(inner_nodes(node))) == node


def test_a_fold_gets_the_values_of_the_parts_in_order() -> None:
    node = Sequence((Literal(b"a"), Choice((Literal(b"b"), Repeat(Literal(b"c")))), Rule("d")))

    def written(part: Node, parts: list[str]) -> str:
        inside = ",".join(parts)
        return f"{type(part).__name__[0]}({inside})" if inside else str(getattr(part, "data", None) or part)

    assert fold_node(node, written) == "S(b'a',C(b'b',R(b'c')),Rule(name='d'))"


def test_nodes_are_walked_before_their_parts() -> None:
    a, b, c = Literal(b"a"), Literal(b"b"), Rule("c")
    inner = Choice((b, c))
    assert list(walk_nodes(Sequence((a, inner)), EMPTY)) == [EMPTY, Sequence((a, inner)), inner, c, b, a]
    assert list(named_rules(Repeat(inner))) == ["c"]


def nested(leaf: Node) -> Node:
    """Return a node of DEPTH levels."""
    for level in range(DEPTH):
        leaf = (Repeat(leaf, 1), Sequence((leaf,)), Choice((leaf,)), Unique(leaf))[level % 4]
    return leaf


def repeated(leaf: Node) -> Node:
    """Return a node of DEPTH levels that is in normal form: choices in normal form are hashed, which is recursive."""
    for level in range(DEPTH):
        leaf = Repeat(leaf, 1, level + 1)
    return leaf


def test_a_fold_does_not_recurse() -> None:
    assert fold_node(nested(Rule("r")), lambda part, depths: 1 + max(depths, default=0)) == DEPTH + 1


def test_transformations_by_folds_do_not_recurse() -> None:
    renamed = rename_rules(nested(Rule("r")), 7)
    assert list(named_rules(renamed)) == [(7, "r")]
    assert sum(1 for _ in walk_nodes(renamed)) == DEPTH + 1
    live = remove_dead_ends(repeated(Rule("r")), {"r": Literal(b"a"), "dead": Choice(())})
    assert live is not None
    assert live[1] == {"r": Literal(b"a")}
    assert remove_dead_ends(repeated(Rule("dead")), {"dead": Choice(())}) is None

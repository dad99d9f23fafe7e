"""Productive nodes and rules (those that derive some text), and the removal of the others, as masks must not lead
there.

A rule is productive if its body is, given the productive rules: the least fixpoint.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ..base.work import spend_work
from .nodes import EMPTY, Chars, Choice, JsonString, Node, Repeat, Rule, Strings
from .smart_constructors import make_choice
from .visitor import NodeVisitor, fold_node, inner_nodes, reached_rules, rebuild_node

__all__ = ["find_productive_rules", "remove_dead_ends"]

Rules = Mapping[Hashable, Node]
Parts = list[Node | None]


def find_productive_rules(rules: Rules) -> set[Hashable]:
    """Return the names of the productive rules. References to names outside `rules` count as productive.

    Linear in the size of the rules (Dowling and Gallier 1984): each node counts the parts that must still be found
    productive, all of a sequence and one of a choice, and notifies its parent when it becomes productive itself.
    """
    productive: set[Hashable] = set()
    users: dict[Hashable, list[int]] = {}  # by rule: the parts that reference it
    parents: list[int] = []  # of each part: its parent, or -1 - the number of its rule
    missing: list[int] = []  # of each part: the number of its own parts that must still become productive
    names = list(rules)
    known: list[int] = []
    for number, name in enumerate(names):
        pending: list[tuple[Node, int]] = [(rules[name], -1 - number)]
        while pending:
            node, parent = pending.pop()
            part = len(parents)
            parents.append(parent)
            parts, required = _REQUIREMENTS.visit(node)
            missing.append(required)
            pending.extend((one, part) for one in parts)
            if isinstance(node, Rule) and node.name in rules:
                users.setdefault(node.name, []).append(part)
            elif not parts and _LEAF_PRODUCTIVITY.visit(node):
                known.append(part)
    spend_work(len(parents), "the rules of a grammar")
    while known:
        parent = parents[known.pop()]
        if parent >= 0:
            missing[parent] -= 1
            if missing[parent] == 0:
                known.append(parent)
        elif names[-1 - parent] not in productive:
            productive.add(names[-1 - parent])
            known.extend(users.get(names[-1 - parent], ()))
    return productive


class _Requirements(NodeVisitor[tuple[tuple[Node, ...], int]]):
    """The parts of a node that its productivity depends on, and the number of them that must be productive."""

    def visit_choice(self, node: Choice) -> tuple[tuple[Node, ...], int]:
        return node.options, min(1, len(node.options))

    def visit_repeat(self, node: Repeat) -> tuple[tuple[Node, ...], int]:
        return ((), 0) if node.low == 0 or node.high == 0 else ((node.node,), 1)

    def generic_visit(self, node: Node, *context: Any) -> tuple[tuple[Node, ...], int]:
        parts = inner_nodes(node)
        return parts, len(parts)


_REQUIREMENTS = _Requirements()


def remove_dead_ends(start: Node, rules: Rules) -> tuple[Node, dict[Hashable, Node]] | None:
    """Return the start and its reachable rules without unproductive options; None if the start is unproductive."""
    productive = find_productive_rules(rules)
    remove = _DeadEndRemover(productive, rules).visit
    live_start = fold_node(start, remove)
    if live_start is None:
        return None
    bodies = {name: body for name in productive if (body := fold_node(rules[name], remove)) is not None}
    return live_start, {name: bodies[name] for name in reached_rules(live_start, bodies)}


class _LeafProductivity(NodeVisitor[bool]):
    """Whether a node without parts that its productivity depends on is productive."""

    def visit_strings(self, node: Strings) -> bool:
        return bool(node.options)

    def visit_chars(self, node: Chars | JsonString) -> bool:
        least, most = node.dfa.lengths()
        in_bounds = node.high is None or max(least, node.low) <= node.high
        return not node.dfa.is_empty and in_bounds and (most is None or node.low <= most)

    visit_json_string = visit_chars

    def visit_choice(self, node: Choice) -> bool:
        return False

    def generic_visit(self, node: Node, *context: Any) -> bool:
        return True


_LEAF_PRODUCTIVITY = _LeafProductivity()


class _DeadEndRemover(NodeVisitor["Node | None"]):
    """A fold that removes unproductive options; its value is None for an unproductive node."""

    def __init__(self, productive: set[Hashable], rules: Rules) -> None:
        self.productive, self.rules = productive, rules

    def visit_rule(self, node: Rule, parts: Parts) -> Node | None:
        return node if node.name in self.productive or node.name not in self.rules else None

    def visit_repeat(self, node: Repeat, parts: Parts) -> Node | None:
        body = parts[0]
        if node.high == 0 or (body is None and node.low == 0):
            return EMPTY
        return None if body is None else Repeat(body, node.low, node.high)

    def visit_choice(self, node: Choice, parts: Parts) -> Node | None:
        options = [option for option in parts if option is not None]
        return make_choice(options) if options else None

    def generic_visit(self, node: Node, *context: Any) -> Node | None:
        (parts,) = context
        if not parts:
            return node if _LEAF_PRODUCTIVITY.visit(node) else None
        return None if None in parts else rebuild_node(node, parts)

"""Productive nodes and rules (those that derive some text), and the removal of the others, as masks must not lead
there.

A rule is productive if its body is, given the productive rules: the least fixpoint.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ..base.work import spend_work
from .nodes import EMPTY, Chars, Choice, JsonString, Node, Repeat, Rule, Sequence, Strings
from .visitor import inner_nodes, make_choice, make_sequence, reached_rules, rebuild_node

__all__ = ["find_productive_rules", "remove_dead_ends"]

Rules = Mapping[Hashable, Node]


def find_productive_rules(rules: Rules) -> set[Hashable]:
    """Return the names of the productive rules. References to names outside `rules` count as productive.

    Linear in the size of the rules (Dowling and Gallier 1984): each node counts the parts that must still be found
    productive, all of a sequence and one of a choice, and notifies its parent when it becomes productive itself.
    """
    found: set[Hashable] = set()
    users: dict[Hashable, list[int]] = {}  # by rule: the parts that reference it
    parents: list[int] = []  # of each part: its parent, or -1 - the number of its rule
    missing: list[int] = []  # number of its parts that must still be found productive
    names = list(rules)
    known: list[int] = []
    for number, name in enumerate(names):
        todo: list[tuple[Node, int]] = [(rules[name], -1 - number)]
        while todo:
            node, parent = todo.pop()
            part = len(parents)
            parents.append(parent)
            parts = _parts(node)
            missing.append(min(1, len(parts)) if isinstance(node, Choice) else len(parts))
            todo.extend((one, part) for one in parts)
            if isinstance(node, Rule) and node.name in rules:
                users.setdefault(node.name, []).append(part)
            elif not parts and _is_leaf_with_text(node):
                known.append(part)
    spend_work(len(parents), "the rules of a grammar")
    while known:
        parent = parents[known.pop()]
        if parent >= 0:
            missing[parent] -= 1
            if missing[parent] == 0:
                known.append(parent)
        elif names[-1 - parent] not in found:
            found.add(names[-1 - parent])
            known.extend(users.get(names[-1 - parent], ()))
    return found


def _parts(node: Node) -> tuple[Node, ...]:
    """Return the parts of a node that its productivity depends on."""
    return () if isinstance(node, Repeat) and (node.low == 0 or node.high == 0) else inner_nodes(node)


def _is_leaf_with_text(node: Node) -> bool:
    """Return whether a node without such parts is productive."""
    if isinstance(node, Strings):
        return bool(node.options)
    if isinstance(node, (Chars, JsonString)):
        least, most = node.dfa.lengths()
        below = node.high is None or max(least, node.low) <= node.high
        return not node.dfa.is_empty and below and (most is None or node.low <= most)
    return not isinstance(node, Choice)


def remove_dead_ends(start: Node, rules: Rules) -> tuple[Node, dict[Hashable, Node]] | None:
    """Return the start and its reachable rules without unproductive options; None if the start is unproductive."""
    productive = find_productive_rules(rules)
    kept = _kept(start, productive, rules)
    if kept is None:
        return None
    bodies = {name: body for name in productive if (body := _kept(rules[name], productive, rules)) is not None}
    return kept, {name: bodies[name] for name in reached_rules(kept, bodies)}


def _has_text(node: Node, productive: set[Hashable], rules: Rules) -> bool:
    """Return whether a node is productive, given the productive rules."""
    if isinstance(node, Rule):
        return node.name in productive or node.name not in rules
    if isinstance(node, Repeat):
        return node.low == 0 or node.high == 0 or _has_text(node.node, productive, rules)
    if isinstance(node, Choice):
        return any(_has_text(option, productive, rules) for option in node.options)
    if not inner_nodes(node):
        return _is_leaf_with_text(node)
    return all(_has_text(part, productive, rules) for part in inner_nodes(node))


def _kept(node: Node, productive: set[Hashable], rules: Rules) -> Node | None:
    """Return the node without unproductive options, or None if it is unproductive itself."""
    if not _has_text(node, productive, rules):
        return None
    if isinstance(node, Repeat):
        if node.high == 0:
            return EMPTY
        body = _kept(node.node, productive, rules)
        return EMPTY if body is None else Repeat(body, node.low, node.high)
    if isinstance(node, Choice):
        options = (_kept(option, productive, rules) for option in node.options)
        return make_choice(option for option in options if option is not None)
    if isinstance(node, Sequence):
        parts = [_kept(part, productive, rules) for part in node.parts]
        return make_sequence(part for part in parts if part is not None)
    return rebuild_node(node, lambda part: _kept(part, productive, rules) or part)

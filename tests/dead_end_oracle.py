"""Find the nodes of a Grammar whose language is empty; a front end must not generate any.

`list_dead_nodes` computes by a least fixpoint which reachable nodes have a text, and returns the nodes that a text may
enter (an option, an item, a key) and that have none.
"""

from __future__ import annotations

from typing import Any

from constrain.automata.numerals.number_automaton import NumberAutomaton
from constrain.grammar.nodes import (
    Chars,
    Choice,
    Grammar,
    JsonString,
    Literal,
    Member,
    Node,
    Number,
    Object,
    Repeat,
    Rule,
    Sequence,
    Unique,
)

__all__ = ["dead_parts"]


def dead_parts(grammar: Grammar) -> list[Node]:
    """Return the nodes that a text may enter and whose language is empty."""
    rules: dict[Any, Node] = {}
    found: dict[int, Node] = {}
    todo: list[Node] = [grammar.start]
    while todo:
        node = todo.pop()
        if id(node) in found:
            continue
        found[id(node)] = node
        if isinstance(node, Rule) and node.name not in rules:
            rules[node.name] = grammar.rules[node.name]
            todo.append(rules[node.name])
        todo.extend(inside(node))
    alive: set[int] = set()
    names: set[Any] = set()
    grown = True
    while grown:
        grown = False
        for key, node in found.items():
            if key not in alive and lives(node, alive, names):
                alive.add(key)
                grown = True
        fresh = {name for name, node in rules.items() if id(node) in alive} - names
        names |= fresh
        grown = grown or bool(fresh)
    return [node for key, node in found.items() if key not in alive]


def inside(node: Node) -> list[Node]:
    """Return the child nodes of a node."""
    if isinstance(node, Sequence):
        return list(node.parts)
    if isinstance(node, Choice):
        return list(node.options)
    if isinstance(node, (Repeat, Member)):
        again = node.again if isinstance(node, Member) else None
        return [node.node, *([again] if again else [])]
    if isinstance(node, Unique):
        return [node.body]
    if isinstance(node, Object):
        layout = node.layout
        return [
            *(item.value for item in node.properties), *(item.value for item in node.others),
            layout.open, layout.close, layout.comma, layout.colon, layout.empty,
        ]  # fmt: skip
    return []


def lives(node: Node, alive: set[int], names: set[Any]) -> bool:
    """Return whether the language of a node is not empty, given the nodes that are known to have a text."""
    if isinstance(node, Rule):
        return node.name in names
    if isinstance(node, (Chars, JsonString)):
        return not node.dfa.is_empty and not node.dfa.with_length(node.low, node.high).is_empty
    if isinstance(node, Choice):
        return any(id(option) in alive for option in node.options)
    if isinstance(node, Sequence):
        for part in node.parts:
            if id(part) not in alive:
                return False
            if isinstance(part, Member) and id(part.again) in alive:
                return True
        return True
    if isinstance(node, (Unique, Member)):
        return id(node.body if isinstance(node, Unique) else node.node) in alive
    if isinstance(node, Repeat):
        return (node.high is None or node.low <= node.high) and (node.low == 0 or id(node.node) in alive)
    if isinstance(node, Object):
        required = {item.name for item in node.properties if item.required}
        usable = {item.name for item in node.properties if id(item.value) in alive}
        room = len(usable) + sum(item.names.count(node.low + 1) for item in node.others if id(item.value) in alive)
        low = max(node.low, len(required))
        return required <= usable and low <= room and (node.high is None or low <= node.high)
    if isinstance(node, Number):
        return not NumberAutomaton(node.language).is_empty
    return isinstance(node, Literal) or bool(node.options)

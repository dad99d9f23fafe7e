"""Which nodes have a text at all, and rules without those that have none: a mask may lead nowhere else.

A rule has a text if its body has one, given those that are known to: the least fixpoint, raised round by round.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ...grammar.nodes import EMPTY, Chars, Choice, JsonString, Node, Repeat, Rule, Sequence, Strings
from .walk import choice, inner, reached, rebuilt, sequence

__all__ = ["texts_begin", "without_dead_ends"]

Rules = Mapping[Hashable, Node]


def texts_begin(rules: Rules) -> set[Hashable]:
    """The rules that have a text. Rules that are named but not among these belong to others and have one."""
    found: set[Hashable] = set()
    left = dict(rules)
    while True:
        new = [name for name, body in left.items() if _has_text(body, found, rules)]
        if not new:
            return found
        found.update(new)
        for name in new:
            del left[name]


def without_dead_ends(start: Node, rules: Rules) -> tuple[Node, dict[Hashable, Node]] | None:
    """The start and the rules that it reaches, without options that have no text; None if the start has none."""
    productive = texts_begin(rules)
    kept = _kept(start, productive, rules)
    if kept is None:
        return None
    bodies = {name: body for name in productive if (body := _kept(rules[name], productive, rules)) is not None}
    return kept, {name: bodies[name] for name in reached(kept, bodies)}


def _has_text(node: Node, productive: set[Hashable], rules: Rules) -> bool:
    if isinstance(node, Rule):
        return node.name in productive or node.name not in rules
    if isinstance(node, Strings):
        return bool(node.options)
    if isinstance(node, (Chars, JsonString)):
        least, most = node.dfa.lengths()
        below = node.high is None or max(least, node.low) <= node.high
        return not node.dfa.is_empty and below and (most is None or node.low <= most)
    if isinstance(node, Repeat):
        return node.low == 0 or node.high == 0 or _has_text(node.node, productive, rules)
    if isinstance(node, Choice):
        return any(_has_text(option, productive, rules) for option in node.options)
    return all(_has_text(part, productive, rules) for part in inner(node))


def _kept(node: Node, productive: set[Hashable], rules: Rules) -> Node | None:
    """The node without what has no text, None if that is all of it."""
    if not _has_text(node, productive, rules):
        return None
    if isinstance(node, Repeat):
        if node.high == 0:
            return EMPTY
        body = _kept(node.node, productive, rules)
        return EMPTY if body is None else Repeat(body, node.low, node.high)
    if isinstance(node, Choice):
        options = (_kept(option, productive, rules) for option in node.options)
        return choice(option for option in options if option is not None)
    if isinstance(node, Sequence):
        parts = [_kept(part, productive, rules) for part in node.parts]
        return sequence(part for part in parts if part is not None)
    return rebuilt(node, lambda part: _kept(part, productive, rules) or part)

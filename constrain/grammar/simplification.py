"""Simplification: from the rules of a grammar source to a Grammar without unproductive rules, with few and large
leaves.

Literals at the edges of a regular part stay outside its leaf, so that `"\\"" char* "\\""` shares the leaf of `char*`
with other rules. Parts that only spell strings become Literal or Strings, which need no vocabulary rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from ..automata.dfa import Dfa
from ..base.work import spend_work
from .left_linear import unroll_recursion
from .nodes import EMPTY, Chars, Choice, Grammar, Literal, Node, Repeat, Rule, Sequence, Strings
from .productive import remove_dead_ends
from .regular_parts import RegularParts
from .visitor import flatten_choice, flatten_sequence, make_choice, make_sequence, reached_rules, rebuild_node

__all__ = ["simplify_grammar"]


def simplify_grammar(start: Node, rules: Mapping[Hashable, Node]) -> Grammar | None:
    """Return a simplified Grammar of the same language, or None if it is empty.

    References to rules that are not in `rules` are left unchanged.
    """
    found = remove_dead_ends(start, rules)
    if found is None:
        return None
    start, kept = found
    bodies = {name: unroll_recursion(name, body) for name, body in kept.items()}
    writer = _RuleSimplifier()
    for name in reached_rules(start, bodies):
        writer.add(name, bodies[name])
    body = writer.node(start)
    written = writer.written
    return Grammar(body, {name: written[name] for name in reached_rules(body, written)})


INLINED = 1 << 10
"""Size in bytes of strings up to which a rule is inlined where it is referenced; a bound, since inlining rules that
reference each other may double the size each time.
"""


def _size(node: Node) -> int:
    """Return the number of bytes of the strings of a leaf."""
    if isinstance(node, Literal):
        return len(node.data)
    return sum(map(len, node.options)) if isinstance(node, Strings) else 0


def _is_leaf(node: Node) -> bool:
    return isinstance(node, (Literal, Strings, Chars))


class _RuleSimplifier:
    """Simplifies rules; each must be added after those it references."""

    def __init__(self) -> None:
        self.regular = RegularParts()
        self.written: dict[Hashable, Node] = {}

    def add(self, name: Hashable, body: Node) -> None:
        self.regular.add(name, body)
        self.written[name] = made = self.node(body)
        spend_work(1 + _size(made) // 16, "the strings of a grammar")

    def node(self, node: Node) -> Node:
        if isinstance(node, Rule):
            body = self.written.get(node.name)
            return body if body is not None and _is_leaf(body) and _size(body) <= INLINED else node
        if isinstance(node, Sequence):
            return self.sequence(flatten_sequence(node))
        if isinstance(node, Choice):
            return self.leaf(node) or self.choice(node)
        if isinstance(node, Repeat):
            return self.leaf(node) or self.repeat(node)
        return rebuild_node(node, self.node)

    def leaf(self, node: Node) -> Node | None:
        """Return a single leaf for a regular node that is more than strings, or None."""
        dfa = self.regular.dfa(node) if self.regular.has_classes(node) else None
        return None if dfa is None else leaf_of(dfa)

    def sequence(self, parts: tuple[Node, ...]) -> Node:
        """Simplify a sequence: adjacent regular parts become one leaf, from the first character class to the last."""
        if not any(map(self.regular.has_classes, parts)):
            return make_sequence(map(self.node, parts))
        out: list[Node] = []
        run: list[Node] = []
        for part in parts:
            if self.regular.dfa(part) is not None:
                run.append(part)
            else:
                out += [*self.run(run), self.node(part)]
                run = []
        return make_sequence([*out, *self.run(run)])

    def run(self, parts: list[Node]) -> list[Node]:
        inside = [k for k, part in enumerate(parts) if self.regular.has_classes(part)]
        if inside:
            first, last = inside[0], inside[-1] + 1
            dfa = self.regular.joined([self.regular.dfa(part) for part in parts[first:last]])
            if dfa is not None and last - first > 1:
                return [*map(self.node, parts[:first]), leaf_of(dfa), *map(self.node, parts[last:])]
        return [self.node(part) for part in parts]

    def choice(self, node: Choice) -> Node:
        """Simplify a choice: its literals become one Strings node."""
        options = [self.node(option) for option in flatten_choice(node)]
        texts = {o.data for o in options if isinstance(o, Literal)}
        texts.update(text for o in options if isinstance(o, Strings) for text in o.options)
        others: list[Node] = [o for o in options if not isinstance(o, (Literal, Strings))]
        if len(texts) == 1:
            others.append(Literal(next(iter(texts))))
        elif texts:
            others.append(Strings(tuple(sorted(texts))))
        return make_choice(others)

    def repeat(self, node: Repeat) -> Node:
        dfa = self.regular.dfa(node.node) if self.regular.has_classes(node) else None
        if dfa is not None and dfa.lengths() == (1, 1):  # A count of characters is an attribute of the leaf.
            return Chars(dfa.star(), "utf8", node.low, node.high)
        body = self.node(node.node)
        return EMPTY if body == EMPTY else Repeat(body, node.low, node.high)


def leaf_of(dfa: Dfa) -> Node:
    """Return the leaf of a Dfa; a Literal if it has a single text."""
    if dfa.count(2) == 1:
        return Literal(dfa.shortest().encode())
    return Chars(dfa)

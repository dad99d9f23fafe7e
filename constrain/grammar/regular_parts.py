"""The Dfas of regular parts of a Grammar: one leaf with precomputed vocabulary rows is faster than many small nodes.

A node that refers to a recursive rule counts as not regular, even if its language is. A part that would need more than
`MOST_STATES` states is not converted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ..automata.dfa import Dfa
from ..base.errors import LimitError
from ..base.work import spend_work
from .nodes import Chars, Choice, Literal, Node, Repeat, Rule, Sequence, Strings
from .visitor import NodeVisitor, list_strings, named_rules

__all__ = ["MOST_STATES", "RegularParts"]

MOST_STATES = 512
"""Maximum states of one Dfa; the vocabulary rows take memory and time for each state."""

STATE_WORK = 4
"""Units of work per state built."""
MOST_WORK = 1 << 15
"""States of all automata built for one grammar; when they are used up, further parts are not converted."""


class RegularParts(NodeVisitor["Dfa | None"]):
    """The Dfas of nodes, None for a node that is not regular or too large.

    Each Dfa is built on first use, after those of the rules that it depends on. In total they have about `MOST_WORK`
    states, or 16 times the limit of one Dfa if that is more: without a bound, a chain of n regular rules would take n^2
    states.
    """

    def __init__(self, max_states: int = MOST_STATES) -> None:
        self.max_states = max_states
        self.remaining_states = max(MOST_WORK, 16 * max_states)
        self.rules: dict[Hashable, Dfa | None] = {}
        self._bodies: dict[Hashable, Node] = {}  # of rules without a Dfa yet, each after those it references
        self._class_rules = _ClassSearch()
        self._known: dict[int, tuple[Node, Dfa | None]] = {}

    def add(self, name: Hashable, body: Node) -> None:
        """Register a rule. Rules it references must have been added before; if one was not, the rule is recursive."""
        if all(other in self._bodies or other in self.rules for other in named_rules(body)):
            self._bodies[name] = body
        else:
            self.rules[name] = None
        if self.has_classes(body):
            self._class_rules.names.add(name)

    def dfa(self, node: Node) -> Dfa | None:
        """Return the Dfa of a node, or None."""
        known = self._known.get(id(node))
        if known is None:  # Holding the node keeps its id valid.
            known = self._known[id(node)] = (node, self.visit(node))
        return known[1]

    def _rule_dfa(self, name: Hashable) -> Dfa | None:
        """Return the Dfa of a rule, built after those it depends on; iterative, since chains of rules may be long."""
        needed, pending = set[Hashable](), [name]
        while pending:
            rule = pending.pop()
            if rule in self._bodies and rule not in needed and rule not in self.rules:
                needed.add(rule)
                pending.extend(named_rules(self._bodies[rule]))
        for rule in needed if len(needed) == 1 else [other for other in self._bodies if other in needed]:
            self.rules[rule] = self.dfa(self._bodies.pop(rule))
        return self.rules.get(name)

    def has_classes(self, node: Node) -> bool:
        """Return whether a node is more than a few strings: only then does a leaf pay off."""
        return self._class_rules.visit(node)

    def visit_rule(self, node: Rule) -> Dfa | None:
        return self._rule_dfa(node.name)

    def visit_literal(self, node: Literal | Strings) -> Dfa | None:
        return self.spell(list_strings(node))

    visit_strings = visit_literal

    def visit_chars(self, node: Chars) -> Dfa | None:
        if node.encoding != "utf8":
            return None
        return self.build(lambda: node.dfa.with_length(node.low, node.high, max_states=self.max_states))

    def visit_repeat(self, node: Repeat) -> Dfa | None:
        return self.repeat(self.dfa(node.node), node.low, node.high)

    def visit_sequence(self, node: Sequence) -> Dfa | None:
        return self.concatenate([self.dfa(part) for part in node.parts])

    def visit_choice(self, node: Choice) -> Dfa | None:
        options = [self.dfa(option) for option in node.options]
        regular = [option for option in options if option is not None]
        if len(regular) < len(options) or _count_states(regular) > 2 * self.max_states:
            return None
        return self.build(lambda: Dfa.union_of(regular, max_states=self.max_states))

    def generic_visit(self, node: Node, *context: Any) -> Dfa | None:
        return None

    def concatenate(self, parts: list[Dfa | None]) -> Dfa | None:
        """Return the concatenation of the parts, or None."""
        out = Dfa.from_strings([""])
        if _count_states([part for part in parts if part is not None]) > 2 * self.max_states:
            return None
        for part in parts:
            if part is None:
                return None
            longer = self.build(lambda a=out, b=part: a.concatenate(b, max_states=self.max_states))  # type: ignore[misc]
            if longer is None:
                return None
            out = longer
        return out

    def repeat(self, dfa: Dfa | None, low: int, high: int | None) -> Dfa | None:
        """Return the repetition of a Dfa, or None."""
        if dfa is None or len(dfa.delta) * max(low, high or 1, 1) > 2 * self.max_states:
            return None
        return self.build(lambda: dfa.repeat(low, high, max_states=self.max_states))

    def spell(self, options: tuple[bytes, ...]) -> Dfa | None:
        """Return the Dfa of these texts; None if one is not valid UTF-8, or they are too long."""
        if sum(map(len, options)) > 2 * self.max_states:
            return None
        try:
            texts = [option.decode() for option in options]
        except UnicodeDecodeError:
            return None
        return self.build(lambda: Dfa.from_strings(texts, max_states=self.max_states + 1))

    def build(self, make: Callable[[], Dfa]) -> Dfa | None:
        """Return the result of `make`, or None if it has too many states."""
        if self.remaining_states <= 0:
            return None
        try:
            dfa = make()
        except LimitError:
            self.remaining_states -= self.max_states
            return None
        self.remaining_states -= len(dfa.delta)
        spend_work(STATE_WORK * len(dfa.delta), "the automata of a grammar's regular rules")
        return dfa if len(dfa.delta) <= self.max_states else None


def _count_states(dfas: list[Dfa]) -> int:
    return sum(len(dfa.delta) for dfa in dfas)


class _ClassSearch(NodeVisitor[bool]):
    """Whether a node has character classes or unbounded repetitions; `names` are the rules that have."""

    def __init__(self) -> None:
        self.names: set[Hashable] = set()

    def visit_rule(self, node: Rule) -> bool:
        return node.name in self.names

    def visit_repeat(self, node: Repeat) -> bool:
        return node.high is None or self.visit(node.node)

    def visit_sequence(self, node: Sequence) -> bool:
        return any(map(self.visit, node.parts))

    def visit_choice(self, node: Choice) -> bool:
        return any(map(self.visit, node.options))

    def visit_chars(self, node: Chars) -> bool:
        return True

    def generic_visit(self, node: Node, *context: Any) -> bool:
        return False

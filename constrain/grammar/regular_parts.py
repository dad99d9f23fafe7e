"""The Dfas of regular parts of a Grammar: one leaf with precomputed vocabulary rows is faster than many small nodes.

A node that refers to a recursive rule counts as not regular, even if its language is. A part that would need more than
`MOST_STATES` states is not converted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..automata.dfa import Dfa
from ..base.errors import LimitError
from ..base.work import spend_work
from .nodes import Chars, Choice, Literal, Node, Repeat, Rule, Sequence, Strings
from .visitor import named_rules

__all__ = ["MOST_STATES", "RegularParts"]

MOST_STATES = 512
"""Maximum states of one Dfa; the vocabulary rows take memory and time for each state."""


STATE = 4
"""Units of work per state built."""
MOST_WORK = 1 << 15
"""States of all automata built for one grammar; when they are used up, further parts are not converted."""


class RegularParts:
    """The Dfas of nodes, None for a node that is not regular or too large.

    Each Dfa is built on first use, after those of the rules that it depends on. In total they have about `MOST_WORK`
    states, or 16 times the limit of one Dfa if that is more: without a bound, a chain of n regular rules would take n^2
    states.
    """

    def __init__(self, most: int = MOST_STATES) -> None:
        self.most = most
        self.left = max(MOST_WORK, 16 * most)
        self.rules: dict[Hashable, Dfa | None] = {}
        self._bodies: dict[Hashable, Node] = {}  # of rules without a Dfa yet, each after those it references
        self.classes: set[Hashable] = set()
        self._known: dict[int, tuple[Node, Dfa | None]] = {}

    def add(self, name: Hashable, body: Node) -> None:
        """Register a rule. Rules it references must have been added before; if one was not, the rule is recursive."""
        if all(other in self._bodies or other in self.rules for other in named_rules(body)):
            self._bodies[name] = body
        else:
            self.rules[name] = None
        if self.has_classes(body):
            self.classes.add(name)

    def dfa(self, node: Node) -> Dfa | None:
        """Return the Dfa of a node, or None."""
        known = self._known.get(id(node))
        if known is None:  # Holding the node keeps its id valid.
            known = self._known[id(node)] = (node, self._made(node))
        return known[1]

    def _rule(self, name: Hashable) -> Dfa | None:
        """Return the Dfa of a rule, built after those it depends on; iterative, since chains of rules may be long."""
        needed, todo = set[Hashable](), [name]
        while todo:
            one = todo.pop()
            if one in self._bodies and one not in needed and one not in self.rules:
                needed.add(one)
                todo.extend(named_rules(self._bodies[one]))
        for one in needed if len(needed) == 1 else [other for other in self._bodies if other in needed]:
            self.rules[one] = self.dfa(self._bodies.pop(one))
        return self.rules.get(name)

    def has_classes(self, node: Node) -> bool:
        """Return whether a node is more than a few strings: only then does a leaf pay off."""
        if isinstance(node, Rule):
            return node.name in self.classes
        if isinstance(node, Repeat):
            return node.high is None or self.has_classes(node.node)
        if isinstance(node, (Sequence, Choice)):
            return any(map(self.has_classes, node.parts if isinstance(node, Sequence) else node.options))
        return isinstance(node, Chars)

    def _made(self, node: Node) -> Dfa | None:
        if isinstance(node, Rule):
            return self._rule(node.name)
        if isinstance(node, Literal):
            return self.strings((node.data,))
        if isinstance(node, Strings):
            return self.strings(node.options)
        if isinstance(node, Chars):
            if node.encoding != "utf8":
                return None
            return self.tried(lambda: node.dfa.with_length(node.low, node.high, max_states=self.most))
        if isinstance(node, Repeat):
            return self.repeated(self.dfa(node.node), node.low, node.high)
        if isinstance(node, Sequence):
            return self.joined([self.dfa(part) for part in node.parts])
        if isinstance(node, Choice):
            options = [self.dfa(option) for option in node.options]
            found = [option for option in options if option is not None]
            if len(found) < len(options) or _states(found) > 2 * self.most:
                return None
            return self.tried(lambda: Dfa.union_of(found, max_states=self.most))
        return None

    def joined(self, parts: list[Dfa | None]) -> Dfa | None:
        """Return the concatenation of the parts, or None."""
        out = Dfa.from_strings([""])
        if _states([part for part in parts if part is not None]) > 2 * self.most:
            return None
        for part in parts:
            if part is None:
                return None
            made = self.tried(lambda a=out, b=part: a.concatenate(b, max_states=self.most))  # type: ignore[misc]
            if made is None:
                return None
            out = made
        return out

    def repeated(self, dfa: Dfa | None, low: int, high: int | None) -> Dfa | None:
        """Return the repetition of a Dfa, or None."""
        if dfa is None or len(dfa.delta) * max(low, high or 1, 1) > 2 * self.most:
            return None
        return self.tried(lambda: dfa.repeat(low, high, max_states=self.most))

    def strings(self, options: tuple[bytes, ...]) -> Dfa | None:
        """Return the Dfa of these texts; None if one is not valid UTF-8, or they are too long."""
        if sum(map(len, options)) > 2 * self.most:
            return None
        try:
            texts = [option.decode() for option in options]
        except UnicodeDecodeError:
            return None
        return self.tried(lambda: Dfa.from_strings(texts, max_states=self.most + 1))

    def tried(self, make: Callable[[], Dfa]) -> Dfa | None:
        """Return the result of `make`, or None if it has too many states."""
        if self.left <= 0:
            return None
        try:
            dfa = make()
        except LimitError:
            self.left -= self.most
            return None
        self.left -= len(dfa.delta)
        spend_work(STATE * len(dfa.delta), "the automata of a grammar's regular rules")
        return dfa if len(dfa.delta) <= self.most else None


def _states(dfas: list[Dfa]) -> int:
    return sum(len(dfa.delta) for dfa in dfas)

"""The Dfa of what is regular in a grammar: a leaf has rows of a vocabulary, so one leaf is faster than its pieces.

What refers to a recursive rule is not regular here, though its language may be. What would need more than
`MOST_STATES` states stays in pieces.
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
"""States up to which pieces are made one Dfa: the rows of a vocabulary cost memory and time for each of them."""


STATE = 4
"""Units of work for a state that is made."""
MOST_WORK = 1 << 15
"""States of all automata that are made of one grammar, beyond which what is not made yet stays in pieces."""


class RegularParts:
    """The Dfas of nodes, None where there is none; `rules` holds those of rules, filled in by the caller.

    Each is made when it is asked for, those of the rules that it depends on before it; all together have about
    `MOST_WORK` states, or 16 times as many as one may have: a chain of n regular rules would have n^2.
    """

    def __init__(self, most: int = MOST_STATES) -> None:
        self.most = most
        self.left = max(MOST_WORK, 16 * most)
        self.rules: dict[Hashable, Dfa | None] = {}
        self._bodies: dict[Hashable, Node] = {}  # of rules without a Dfa yet, each after those that it names
        self.classes: set[Hashable] = set()
        self._known: dict[int, tuple[Node, Dfa | None]] = {}

    def add(self, name: Hashable, body: Node) -> None:
        """Notes a rule whose own rules were added before; those that were not are recursive, and it is not regular."""
        if all(other in self._bodies or other in self.rules for other in named_rules(body)):
            self._bodies[name] = body
        else:
            self.rules[name] = None
        if self.has_classes(body):
            self.classes.add(name)

    def dfa(self, node: Node) -> Dfa | None:
        """The Dfa of a node of few states."""
        known = self._known.get(id(node))
        if known is None:  # Keeps the node, and so its id.
            known = self._known[id(node)] = (node, self._made(node))
        return known[1]

    def _rule(self, name: Hashable) -> Dfa | None:
        """The Dfa of a rule, after those of the rules that it depends on. No recursion: chains are as long as texts."""
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
        """Whether there is more in it than a few strings: only then a leaf is worth it."""
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
        """One after the other."""
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
        """Again and again."""
        if dfa is None or len(dfa.delta) * max(low, high or 1, 1) > 2 * self.most:
            return None
        return self.tried(lambda: dfa.repeat(low, high, max_states=self.most))

    def strings(self, options: tuple[bytes, ...]) -> Dfa | None:
        """These texts; None if one is only a part of a character."""
        if sum(map(len, options)) > 2 * self.most:
            return None
        try:
            texts = [option.decode() for option in options]
        except UnicodeDecodeError:
            return None
        return self.tried(lambda: Dfa.from_strings(texts, max_states=self.most + 1))

    def tried(self, make: Callable[[], Dfa]) -> Dfa | None:
        """What is made, if it has few states."""
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

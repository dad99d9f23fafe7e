"""The preparation for drawing documents of a Grammar (`DocumentPlan`), and a partly written document.

`grammar_documents` writes the nodes of a Grammar, `object_documents` the members of objects; both work on one
`PartialDocument`, which holds the text written so far and the budget of choices.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from ..engine.text_enumeration import is_blank
from ..grammar.nodes import Chars, Choice, Grammar, Node
from .choice_source import Chooser
from .number_texts import is_number
from .terminating_choices import TerminatingChoices, simplest_first

__all__ = ["BUDGET", "PartialDocument", "DocumentPlan"]

BUDGET = 500
"""Maximum number of choices of a document: Hypothesis rejects inputs beyond 8 KiB, and small documents show more."""
DEEP = 12
"""Depth of nesting beyond which no optional part is written."""


class DocumentPlan:
    """What all documents of a Grammar share: the options that terminate, and the order of options.

    floats: whether numbers are restricted to those that a Python float represents, for documents that are parsed with
    `json`. hints: texts that are drawn often where a string may be one of them.
    """

    def __init__(self, grammar: Grammar, *, floats: bool, hints: tuple[str, ...] = ()) -> None:
        self.grammar, self.floats, self.hints = grammar, floats, hints
        self.endings = TerminatingChoices(grammar.rules)
        self._orders: dict[int, tuple[Node, list[int]]] = {}
        self._kinds: dict[int, tuple[Node, str]] = {}

    def order(self, node: Choice) -> list[int]:
        """Return the indices of the options: one that terminates soon, then those without rules, then the others."""
        if id(node) not in self._orders:
            first = self.endings.pick(node)
            self._orders[id(node)] = (node, sorted(simplest_first(node), key=lambda index: index != first))
        return self._orders[id(node)][1]

    def kind(self, node: Chars) -> str:
        """Return the kind of a Chars node: "blank", "number" or "text"."""
        if id(node) not in self._kinds:
            kind = (
                "blank"
                if is_blank(node)
                else "number"
                if node.low == 0 and node.high is None and is_number(node.dfa)
                else "text"
            )
            self._kinds[id(node)] = (node, kind)
        return self._kinds[id(node)][1]


class PartialDocument(ABC):
    """A document that is being written.

    out: the text so far. left: number of choices that may still be made. level: depth of nesting. spacing: the style of
    white space, -1 before it is chosen. differ: for members that must differ, the text and the node of each, by value.
    """

    def __init__(self, plan: DocumentPlan, chooser: Chooser) -> None:
        self.plan, self.chooser = plan, chooser
        self.rules = plan.grammar.rules
        self.out = bytearray()
        self.left, self.level = BUDGET, 0
        self.spacing = -1
        self.differ: dict[object, tuple[bytes, Node]] | None = None

    # ---- choosing ---------------------------------------------------------------------------------------------

    def choose(self, n: int) -> int:
        """Return an integer below n; 0 once the budget is exhausted."""
        if n <= 1 or self.left <= 0:
            return 0
        self.left -= 1
        return self.chooser.below(n)

    @property
    def ending(self) -> bool:
        """Whether the budget is exhausted, so that no more choices are made."""
        return self.left <= 0 or self.level >= DEEP

    def more(self) -> bool:
        """Return whether to write an optional part: the deeper, the less likely."""
        return not self.ending and self.choose(3 + self.level // 2) > self.level // 2

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.level += 1
        yield
        self.level -= 1

    def quoted(self, text: str) -> bytes:
        """Return a JSON string.

        It is spelled as by `json.dumps`, or rarely with other escapes if the consumer can see the spelling.
        """
        style = 0 if self.plan.floats else self.choose(6)
        if style == 4:
            return json.dumps(text).encode()
        if style == 5:
            units = text.encode("utf-16-be").hex()
            return ('"' + "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4)) + '"').encode()
        return json.dumps(text, ensure_ascii=False).encode()

    @abstractmethod
    def node(self, node: Node) -> None:
        """Write a text of the node."""

"""A document of a Grammar, chosen by whoever answers `choose(n)` with a number below n: Hypothesis, or a Random.

Every text of the Grammar can be drawn but for what lengths beyond measure hide. 0 is always the simplest answer: no
optional member, no further item, the simplest option. Once a document has cost BUDGET choices, or is nested DEEP
levels, nothing is chosen any more: it is brought to an end by `Endings`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ..authoring.samples.random_instances import is_blank
from ..base.errors import ConstrainError
from ..base.json_documents import parse_json
from ..frontends.json_schema.core.json_values import to_constant
from ..grammar.nodes import (  # fmt: skip
    Chars,
    Choice,
    Grammar,
    JsonString,
    Literal,
    Member,
    Node,
    Object,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from .choice_source import HARDER, TRIES, Chooser, NoMember, Seeded
from .dfa_texts import draw_text, language
from .number_texts import as_float, is_number, number_language
from .object_documents import write_object
from .terminating_choices import Endings, simplest_first

__all__ = ["Recipe", "Writer"]

BUDGET = 500
"""Choices that a document may cost: Hypothesis gives up on inputs beyond 8 KiB, and small ones tell more."""
DEEP = 12
"""Levels after which no option is taken that is not needed."""
SPACES = ("", " ", "\n", "\n  ", "\t", "\r\n  ")


class Recipe:
    """What is known of a Grammar, for all its documents: how it ends, and the order of options.

    floats: numbers are kept to what a Python float holds, for documents that are read with `json`. hints: texts that
    are drawn often where a string may be one of them.
    """

    def __init__(self, grammar: Grammar, *, floats: bool, hints: tuple[str, ...] = ()) -> None:
        self.grammar, self.floats, self.hints = grammar, floats, hints
        self.endings = Endings(grammar.rules)
        self._orders: dict[int, tuple[Node, list[int]]] = {}
        self._kinds: dict[int, tuple[Node, str]] = {}

    def order(self, node: Choice) -> list[int]:
        """Indices of its options: one that ends soon, then those without rules, then the others."""
        if id(node) not in self._orders:
            first = self.endings.pick(node)
            self._orders[id(node)] = (node, sorted(simplest_first(node), key=lambda index: index != first))
        return self._orders[id(node)][1]

    def kind(self, node: Chars) -> str:
        """ "blank", "number" or "text"."""
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

    def document(self, chooser: Chooser) -> bytes:
        """One document. NoMember: members that must differ could not be found."""
        writer = Writer(self, chooser)
        writer.node(self.grammar.start)
        return bytes(writer.out)


class Repeated(Exception):
    """A member equals an earlier one, and all that follows up to the end of the `Unique` has been written."""


class Writer:
    """One document while it is written."""

    def __init__(self, recipe: Recipe, chooser: Chooser) -> None:
        self.recipe, self.chooser = recipe, chooser
        self.rules = recipe.grammar.rules
        self.out = bytearray()
        self.left, self.level = BUDGET, 0
        self.spacing = -1
        self.differ: dict[object, tuple[bytes, Node]] | None = None  # the text and the node of each member, by value

    # ---- choosing ---------------------------------------------------------------------------------------------

    def choose(self, n: int) -> int:
        """A number below n; 0 once the budget is spent."""
        if n <= 1 or self.left <= 0:
            return 0
        self.left -= 1
        return self.chooser.below(n)

    @property
    def ending(self) -> bool:
        """Whether nothing more is chosen."""
        return self.left <= 0 or self.level >= DEEP

    def more(self) -> bool:
        """Whether to write something that may be left out: the deeper, the less likely."""
        return not self.ending and self.choose(3 + self.level // 2) > self.level // 2

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.level += 1
        yield
        self.level -= 1

    # ---- nodes ------------------------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        """Writes a text of the node. Rules in last place are followed without recursion: chains of them are long."""
        again: tuple[int, Node] | None = None
        while True:
            try:
                if isinstance(node, Sequence) and node.parts:
                    for part in node.parts[:-1]:
                        self.inner(part)
                    node = node.parts[-1]
                elif isinstance(node, Choice):
                    option = self.option(node)
                    if self.differ is not None:  # If no member is left that differs, the array may end here.
                        again = (len(self.out), node.options[self.recipe.endings.pick(node)])
                    node = option
                elif isinstance(node, Rule):
                    node = self.rules[node.name]
                else:
                    return self.last(node)
            except NoMember:
                if again is None:
                    raise
                (length, node), again = again, None
                del self.out[length:]

    def inner(self, node: Node) -> None:
        """Writes a node that has something behind it: a rule there is a level of nesting."""
        if isinstance(node, Rule):
            with self.deeper():
                self.node(node)
        else:
            self.node(node)

    def last(self, node: Node) -> None:
        """Writes a node that ends no chain."""
        if isinstance(node, Literal):
            self.out += node.data
        elif isinstance(node, Strings):
            options = sorted(node.options, key=len) if len(node.options) <= 64 else node.options
            self.out += options[self.choose(len(options))]
        elif isinstance(node, Chars):
            self.chars(node)
        elif isinstance(node, JsonString):
            self.out += self.quoted(self.string(node))
        elif isinstance(node, Repeat):
            self.repeat(node)
        elif isinstance(node, Object):
            with self.deeper():
                write_object(self, node)
        elif isinstance(node, Unique):
            with self.deeper():
                self.unique(node)
        elif isinstance(node, Member):
            self.member(node)

    def string(self, node: JsonString) -> str:
        """A text of the node, half of the time one of the hints if some fit."""
        texts = language(node.dfa, node.low, node.high)
        if self.recipe.hints and self.choose(2):
            fitting = [text for text in self.recipe.hints if texts.accepts(text)]
            if fitting:
                return fitting[self.choose(len(fitting))]
        return draw_text(texts, self.choose)

    def option(self, node: Choice) -> Node:
        """One of the options; at depth those that open further levels are taken ever less often."""
        if self.ending:
            return node.options[self.recipe.endings.pick(node)]
        order = self.recipe.order(node)
        place = self.choose(len(order))
        if place and self.level > 2 and self.choose(self.level) < self.level - 2:
            place = 0
        return node.options[order[place]]

    def chars(self, node: Chars) -> None:
        kind = self.recipe.kind(node)
        if kind == "blank":
            text = self.space(node)
        elif kind == "number":
            text = draw_text(number_language(node.dfa), self.choose)
            text = as_float(text, node.dfa) if self.recipe.floats else text
        else:
            text = draw_text(language(node.dfa, node.low, node.high), self.choose)
        self.out += self.quoted(text)[1:-1] if node.encoding == "json" else text.encode()

    def space(self, node: Chars) -> str:
        """White space: none in this document, or one space behind punctuation, or any."""
        if self.spacing < 0:
            self.spacing = self.choose(3)
        if self.spacing == 1:
            space = " " if self.out.endswith((b",", b":")) else ""
        else:
            space = SPACES[self.choose(len(SPACES))] if self.spacing == 2 else ""
        return space if language(node.dfa, node.low, node.high).accepts(space) else ""

    def quoted(self, text: str) -> bytes:
        """A JSON string: as `json.dumps` writes it, seldom in other escapes if the spelling will be seen."""
        style = 0 if self.recipe.floats else self.choose(6)
        if style == 4:
            return json.dumps(text).encode()
        if style == 5:
            units = text.encode("utf-16-be").hex()
            return ('"' + "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4)) + '"').encode()
        return json.dumps(text, ensure_ascii=False).encode()

    # ---- members and items ----------------------------------------------------------------------------------------

    def repeat(self, node: Repeat) -> None:
        for done in range(node.low):
            if self.left <= 0 and self.differ is None:  # All the others are the same.
                start = len(self.out)
                self.node(node.node)
                self.out += self.out[start:] * (node.low - done - 1)
                break
            self.node(node.node)
        done = node.low
        with self.deeper():
            while (node.high is None or done < node.high) and self.more():
                self.chooser.span(partial(self.node, node.node))
                done += 1

    def unique(self, node: Unique) -> None:
        outer, self.differ, level = self.differ, {}, self.level
        try:
            self.node(node.body)
        except Repeated:
            self.level = level
        self.differ = outer

    def member(self, node: Member) -> None:
        """A value that was not there yet. NoMember if none is found. Repeated, where one that was there may come."""
        differ, start = self.differ, len(self.out)
        assert differ is not None
        if node.again is not None:
            earlier = [text for text, of in differ.values() if of == node.node]
            if earlier and (self.ending or self.choose(2)):
                self.out += earlier[self.choose(len(earlier))]
                self.follow_copy(node.again)
        chooser, left, self.differ = self.chooser, self.left, None
        try:
            for attempt in range(TRIES + HARDER):
                if attempt >= TRIES:
                    self.chooser, self.left = Seeded(attempt), BUDGET // 4
                self.chooser.span(partial(self.node, node.node))
                value = value_of(bytes(self.out[start:]))
                if value not in differ:
                    differ[value] = bytes(self.out[start:]), node.node
                    return
                if node.again is not None:
                    self.differ = None
                    self.follow_copy(node.again)
                del self.out[start:]
            raise NoMember
        finally:
            self.differ = differ
            if self.chooser is not chooser:
                self.chooser, self.left = chooser, left

    def follow_copy(self, again: Rule) -> None:
        """What follows a member that was there. Raises Repeated."""
        differ, self.differ = self.differ, None
        self.node(again)
        self.differ = differ
        raise Repeated


def value_of(text: bytes) -> object:
    """What a member is as a JSON value; the text itself if it is no JSON."""
    try:
        return to_constant(parse_json(text.decode()), "")
    except ConstrainError:
        return text

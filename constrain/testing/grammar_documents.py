"""Write a document of a Grammar by choices.

The source of choices, Hypothesis or a Random, answers `choose(n)` with an integer below n.

Every text of the Grammar can be drawn, except where lengths are too large. 0 is always the simplest answer: no optional
member, no further item, the simplest option. After BUDGET choices, or DEEP levels of nesting, no more choices are made
and `TerminatingChoices` brings the document to an end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..engine.text_enumeration import hashable_json
from ..grammar.nodes import (  # fmt: skip
    Chars,
    Choice,
    JsonString,
    Literal,
    Member,
    Node,
    Number,
    Object,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from ..grammar.visitor import NodeVisitor
from .choice_source import HARDER, TRIES, Chooser, NoMember, Seeded
from .dfa_texts import build_language, draw_text
from .document_plan import BUDGET, DocumentPlan, PartialDocument
from .number_texts import as_float, number_language, texts_of_number
from .object_documents import write_object

__all__ = ["DocumentWriter", "write_document"]

SPACES = ("", " ", "\n", "\n  ", "\t", "\r\n  ")


def write_document(plan: DocumentPlan, chooser: Chooser) -> bytes:
    """Write one document. Raise NoMember if members that must differ were not found."""
    writer = DocumentWriter(plan, chooser)
    writer.node(plan.grammar.start)
    return bytes(writer.out)


class RepeatedMember(Exception):
    """A member equals an earlier one, and everything that follows up to the end of the `Unique` node has been
    written."""


class DocumentWriter(NodeVisitor["Node | None"], PartialDocument):
    """Writes a text of the nodes of a Grammar.

    `visit` writes all of a node but its last part, which it returns for the caller to write; None if nothing is left.
    """

    def node(self, node: Node) -> None:
        """Write a text of the node.

        Rules in last position are followed without recursion, because chains of them are long.
        """
        following: Node | None = node
        fallback: tuple[int, Node] | None = None
        while following is not None:
            try:
                node, following = following, self.methods[type(following)](self, following)
                if self.differ is not None and isinstance(node, Choice):
                    # If no member is left that differs, the array may end here.
                    fallback = (len(self.out), node.options[self.plan.endings.pick(node)])
            except NoMember:
                if fallback is None:
                    raise
                (length, following), fallback = fallback, None
                del self.out[length:]

    def inner(self, node: Node) -> None:
        """Write a node that is followed by another one: a rule in this position is a level of nesting."""
        if isinstance(node, Rule):
            with self.deeper():
                self.node(node)
        else:
            self.node(node)

    def visit_sequence(self, node: Sequence) -> Node | None:
        for part in node.parts[:-1]:
            self.inner(part)
        return node.parts[-1] if node.parts else None

    def visit_choice(self, node: Choice) -> Node:
        """Return one of the options; the deeper the nesting, the less likely are options that open further levels."""
        if self.ending:
            return node.options[self.plan.endings.pick(node)]
        order = self.plan.order(node)
        index = self.choose(len(order))
        if index and self.level > 2 and self.choose(self.level) < self.level - 2:
            index = 0
        return node.options[order[index]]

    def visit_rule(self, node: Rule) -> Node:
        return self.rules[node.name]

    def visit_literal(self, node: Literal) -> None:
        self.out += node.data

    def visit_strings(self, node: Strings) -> None:
        options = sorted(node.options, key=len) if len(node.options) <= 64 else node.options
        self.out += options[self.choose(len(options))]

    def visit_json_string(self, node: JsonString) -> None:
        self.out += self.quoted(self.string(node))

    def visit_object(self, node: Object) -> None:
        with self.deeper():
            write_object(self, node)

    def generic_visit(self, node: Node, *context: Any) -> None:
        """Write nothing: plans have no other nodes."""

    def string(self, node: JsonString) -> str:
        """Return a text of the node; in half of the cases one of the hints, if any of them fit."""
        texts = build_language(node.dfa, node.low, node.high)
        if self.plan.hints and self.choose(2):
            fitting = [text for text in self.plan.hints if texts.accepts(text)]
            if fitting:
                return fitting[self.choose(len(fitting))]
        return draw_text(texts, self.choose)

    def visit_chars(self, node: Chars) -> None:
        kind = self.plan.kind(node)
        if kind == "blank":
            text = self.space(node)
        elif kind == "number":
            language = number_language(node.dfa)
            text = draw_text(language, self.choose)
            text = as_float(text, node.dfa.accepts, language.pool) if self.plan.floats else text
        else:
            text = draw_text(build_language(node.dfa, node.low, node.high), self.choose)
        self.out += self.quoted(text)[1:-1] if node.encoding == "json" else text.encode()

    def visit_number(self, node: Number) -> None:
        texts = texts_of_number(node.language)
        text = texts.draw(self.choose)
        self.out += (as_float(text, texts.accepts, texts.pool) if self.plan.floats else text).encode()

    def space(self, node: Chars) -> str:
        """Return white space: none in the whole document, or one space after punctuation, or any."""
        if self.spacing < 0:
            self.spacing = self.choose(3)
        if self.spacing == 1:
            space = " " if self.out.endswith((b",", b":")) else ""
        else:
            space = SPACES[self.choose(len(SPACES))] if self.spacing == 2 else ""
        return space if build_language(node.dfa, node.low, node.high).accepts(space) else ""

    # ---- members and items ----------------------------------------------------------------------------------------

    def visit_repeat(self, node: Repeat) -> None:
        for done in range(node.low):
            if self.left <= 0 and self.differ is None:  # All other members are alike.
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

    def visit_unique(self, node: Unique) -> None:
        with self.deeper():
            outer, self.differ, level = self.differ, {}, self.level
            try:
                self.node(node.body)
            except RepeatedMember:
                self.level = level
            self.differ = outer

    def visit_member(self, node: Member) -> None:
        """Write a value that has not occurred yet.

        Raise NoMember if none is found, and RepeatedMember where an earlier value may recur.
        """
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
                value = hashable_json(bytes(self.out[start:]))
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

    def follow_copy(self, recursion: Rule) -> None:
        """Write what follows a member that occurred before. Raise RepeatedMember."""
        differ, self.differ = self.differ, None
        self.node(recursion)
        self.differ = differ
        raise RepeatedMember

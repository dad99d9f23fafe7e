"""A Grammar of JSON objects as keyword arguments of Python: `city="Oslo", days=3, metric=True`.

JSON and Python literals differ in three words and a few escapes: `true`, `false`, `null` outside of strings become
`True`, `False`, `None`; inside them `\\/` and pairs of surrogates, which have another meaning in Python, are excluded
(Python 3.12 reference, 2.4.1.1). Whether a part of the Grammar is inside a string follows from the quotes before it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import cache
from keyword import iskeyword
from typing import Any

from ..automata.dfa import Dfa
from ..base.errors import LimitError, UnsupportedError
from ..base.options import Limits
from ..grammar.json_spelling import spell_as_json
from ..grammar.nodes import (
    EMPTY,
    Chars,
    Choice,
    Grammar,
    JsonString,
    Literal,
    Node,
    Number,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
    Strings,
)
from ..grammar.visitor import NodeVisitor

__all__ = ["to_keyword_arguments"]

WORDS = {b"true": b"True", b"false": b"False", b"null": b"None"}
OUTSIDE = re.compile(rb'"|true|false|null|[0-9][eE]|[A-Za-z]')
INSIDE = re.compile(rb'\\.|\\$|"', re.S)
QUOTE = Literal(b'"')
SUBJECT = "arguments in Python syntax"


def to_keyword_arguments(grammar: Grammar, limits: Limits = Limits()) -> Grammar:
    """Return a Grammar of the members of objects as keyword arguments, in the order of the schema.

    Only declared members are allowed. Raise UnsupportedError for features that Python syntax cannot express.
    """
    return _KeywordArgumentWriter(grammar, limits).build()


class _KeywordArgumentWriter(NodeVisitor[tuple[Node, bool]]):
    """`visit(node, inside)` returns a node as Python spells it, and whether a string is open after it."""

    def __init__(self, grammar: Grammar, limits: Limits) -> None:
        self.grammar, self.limits = grammar, limits
        self.rules: dict[Hashable, Node] = {}
        self.todo: list[tuple[Hashable, bool]] = []

    def build(self) -> Grammar:
        start = _ArgumentLists(self).visit(self.grammar.start)
        while self.todo:
            name, inside = self.todo.pop()
            node, after = self.visit(self.grammar.rules[name], inside)
            if after != inside:
                raise refuse_arguments("a rule of the schema ends within a string")
            self.rules[name, inside] = node
            if len(self.rules) > self.limits.dfa_states:
                raise LimitError(
                    f"{SUBJECT} need more than {self.limits.dfa_states} rules", hint="Simplify the schema."
                )
        return Grammar(start, self.rules)

    # ---- the arguments

    def member(self, key: Hashable, properties: tuple[Property, ...], at: int, first: bool) -> Node:
        """Return the node of the members from property number `at` on."""
        name = (key, at, first)
        if name not in self.rules:
            options: list[Node] = []
            for k in range(at, len(properties)):
                prop = properties[k]
                value, inside = self.visit(prop.value, False)
                if inside:
                    raise refuse_arguments("a value ends within a string")
                begin = Literal(f"{'' if first else ', '}{prop.name}=".encode())
                options.append(Sequence((begin, value, self.member(key, properties, k + 1, False))))
                if prop.required:
                    break
            else:
                options.append(EMPTY)
            self.rules[name] = options[0] if len(options) == 1 else Choice(tuple(options))
        return Rule(name)

    # ---- values

    def visit_literal(self, node: Literal, inside: bool) -> tuple[Node, bool]:
        data, inside = respell_as_python(node.data, inside)
        return Literal(data), inside

    def visit_strings(self, node: Strings, inside: bool) -> tuple[Node, bool]:
        spelled = [respell_as_python(option, inside) for option in node.options]
        return Strings(tuple(sorted({data for data, _ in spelled}))), common_state({after for _, after in spelled})

    def visit_json_string(self, node: JsonString, inside: bool) -> tuple[Node, bool]:
        return Sequence((QUOTE, self.text(node.dfa, node.low, node.high), QUOTE)), inside

    def visit_number(self, node: Number, inside: bool) -> tuple[Node, bool]:
        return node, inside  # Python reads the same spellings

    def visit_chars(self, node: Chars, inside: bool) -> tuple[Node, bool]:
        return self.chars(node, inside), inside

    def visit_sequence(self, node: Sequence, inside: bool) -> tuple[Node, bool]:
        parts = []
        for part in node.parts:
            spelled, inside = self.visit(part, inside)
            parts.append(spelled)
        return Sequence(tuple(parts)), inside

    def visit_choice(self, node: Choice, inside: bool) -> tuple[Node, bool]:
        options = [self.visit(option, inside) for option in node.options]
        return Choice(tuple(option for option, _ in options)), common_state({after for _, after in options})

    def visit_repeat(self, node: Repeat, inside: bool) -> tuple[Node, bool]:
        body, after = self.visit(node.node, inside)
        return Repeat(body, node.low, node.high), common_state({after, inside})

    def visit_rule(self, node: Rule, inside: bool) -> tuple[Node, bool]:
        if (node.name, inside) not in self.rules:
            self.rules[node.name, inside] = node  # A placeholder: the body is written later.
            self.todo.append((node.name, inside))
        return Rule((node.name, inside)), inside

    def visit_object(self, node: Object, inside: bool) -> tuple[Node, bool]:
        return self.object(node), inside

    def generic_visit(self, node: Node, *context: Any) -> tuple[Node, bool]:
        raise refuse_arguments("unique items are compared as JSON", 'Leave out "uniqueItems".')

    def object(self, node: Object) -> Node:
        if node.others:
            raise refuse_arguments(
                "a nested object may have undeclared keys, which are written as JSON",
                'Write "additionalProperties": false there, or use another envelope.',
            )
        properties = tuple(
            Property(prop.name, self.visit(prop.value, False)[0], prop.required, prop.needs) for prop in node.properties
        )
        layout = node.layout.map(lambda part: self.visit(part, False)[0])
        return Object(properties, (), layout, node.low, node.high, node.order, node.escapes, node.excluded)

    def chars(self, node: Chars, inside: bool) -> Node:
        if inside:
            if node.encoding == "json":
                return self.text(node.dfa, node.low, node.high)
            return Chars(
                node.dfa.intersect(common_string_texts(), max_states=self.limits.dfa_states),
                "utf8",
                node.low,
                node.high,
            )
        table = node.dfa.table
        for char in '"tfn':
            if any(node.dfa.step(state, char) >= 0 for state in range(len(table.rows))):
                raise refuse_arguments("a pattern of the schema contains values of several types")
        return node

    def text(self, dfa: Dfa, low: int, high: int | None) -> Node:
        """Return the node of the text inside a string."""
        most = self.limits.dfa_states
        if low or high is not None:
            one = dfa.with_length(1, 1, max_states=most)
            if dfa == one.star(max_states=most):  # independent characters: counted instead of unrolled
                return Repeat(self.text(one, 0, None), low, high)
            dfa = dfa.with_length(low, high, max_states=most)
        return Chars(spell_as_json(dfa, max_states=most).intersect(common_string_texts(), max_states=most))


class _ArgumentLists(NodeVisitor[Node]):
    """The members of the object that a node is, or of each of several, as arguments."""

    def __init__(self, writer: _KeywordArgumentWriter) -> None:
        self.writer = writer

    def visit_rule(self, node: Rule) -> Node:
        return self.visit(self.writer.grammar.rules[node.name])

    def visit_choice(self, node: Choice) -> Node:
        return Choice(tuple(map(self.visit, node.options)))

    def visit_object(self, node: Object) -> Node:
        if node.is_array:
            return self.generic_visit(node)
        required = {prop.name for prop in node.properties if prop.required}
        counts = node.low > len(required) or (node.high is not None and node.high < len(node.properties))
        if counts or any(other.required for other in node.others):
            raise refuse_arguments("the number of members is bounded", 'Leave out "minProperties" and "maxProperties".')
        for prop in node.properties:
            if not prop.name.isidentifier() or iskeyword(prop.name):
                raise refuse_arguments(
                    f"{prop.name!r} is not a Python identifier", "Rename it, or use another envelope."
                )
            if not prop.needs <= required:
                raise refuse_arguments(f"{prop.name!r} depends on others", 'Leave out "dependentRequired".')
        return self.writer.member(("members", len(self.writer.rules)), node.properties, 0, True)

    def generic_visit(self, node: Node, *context: Any) -> Node:
        raise refuse_arguments("they are not a plain object")


@cache
def common_string_texts() -> Dfa:
    """Return the Dfa of string contents that mean the same in JSON and Python."""
    plain = Dfa.from_ranges([(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)])
    short = Dfa.from_strings(["\\" + char for char in '"\\bfnrt'])
    digit = Dfa.from_ranges([(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)])
    other = digit.subtract(Dfa.from_strings(["d", "D"]))
    low = Dfa.from_strings(["d", "D"]).concatenate(Dfa.from_ranges([(0x30, 0x37)]))
    four = other.concatenate(digit).union(low).concatenate(digit).concatenate(digit)
    return Dfa.union_of([plain, short, Dfa.from_strings(["\\u"]).concatenate(four)]).star()


def respell_as_python(data: bytes, inside: bool) -> tuple[bytes, bool]:
    """Return a part of a JSON text in Python syntax, and whether a string is open after it."""
    out, at = bytearray(), 0
    while (match := (INSIDE if inside else OUTSIDE).search(data, at)) is not None:
        piece = match[0]
        out += data[at : match.start()] + WORDS.get(piece, piece)
        at = match.end()
        if piece == b'"':
            inside = not inside
        elif inside and (piece == b"\\" or piece == b"\\/"):
            raise refuse_arguments(f"the constant {data!r} has an escape that Python does not have")
        elif not inside and piece.isalpha() and piece not in WORDS:
            raise refuse_arguments(f"the constant {data!r} is split")
    return bytes(out + data[at:]), inside


def common_state(states: set[bool]) -> bool:
    """Return the state that all alternatives agree on. Raise UnsupportedError if they differ."""
    if len(states) > 1:
        raise refuse_arguments("one alternative ends inside a string, another does not")
    return states.pop()


def refuse_arguments(cause: str, hint: str = "Simplify the schema, or use another envelope.") -> UnsupportedError:
    return UnsupportedError(f"{SUBJECT}: {cause}", hint=hint)

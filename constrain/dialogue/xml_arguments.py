"""Arguments of tool calls as XML elements, one per member of an object: `<parameter=city>Oslo</parameter>`.

The value of an argument that is a string is written as it is, without quotes and escapes; it must not contain the
closing tag. Any other value is written as JSON. Members are in the order of the schema, optional ones may be omitted.
White space may surround elements and the values that are not free strings.

The Grammar of the schema is rewritten: of each member's value, the alternatives that are strings become raw text, and
the others stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from ..automata.dfa import Dfa
from ..base.errors import UnsatisfiableError, UnsupportedError, shorten_text
from ..base.json_documents import parse_json, write_json
from ..base.options import Limits, Style
from ..forms import Form, json_schema
from ..forms.source_readers import texts_with
from ..grammar.intersection import intersect_grammar
from ..grammar.nodes import (
    EMPTY,
    Chars,
    Choice,
    Grammar,
    JsonString,
    Literal,
    Node,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
    Strings,
)
from ..grammar.simplification import simplify_grammar
from ..grammar.visitor import NodeVisitor

__all__ = ["XML_STYLES", "XmlArguments", "XmlStyle", "build_xml_form"]

SUBJECT = "arguments as XML"


@dataclass(frozen=True, slots=True)
class XmlStyle:
    """How an element is written: `before` key `text` value `close` for strings, with `data` for other values.

    A line break in these texts is where white space is allowed.
    """

    before: str
    text: str
    data: str
    close: str


XML_STYLES = {
    "qwen_xml": XmlStyle("<parameter=", ">", ">", "</parameter>"),
    "minimax_xml": XmlStyle('<parameter name="', '">', '">', "</parameter>"),
    "deepseek_xml": XmlStyle(
        '<｜DSML｜parameter name="', '" string="true">', '" string="false">', "</｜DSML｜parameter>"
    ),
    "glm_xml": XmlStyle("<arg_key>", "</arg_key>\n<arg_value>", "</arg_key>\n<arg_value>", "</arg_value>"),
}
"""The styles by their names in XGrammar."""


def build_xml_form(schema: Any, xml: XmlStyle, style: Style) -> Form:
    """Return the form of the members of an object with this JSON Schema as XML elements.

    Raise SchemaError if `schema` is no schema document. When it is read, the form raises UnsupportedError for a schema
    that is not that of a plain object: one with undeclared members, dependent members or a bounded number of them.
    """
    json_schema(schema, style=style)  # checks the document, and warns of what asserts nothing
    return XmlArguments(write_json(schema), xml.before, xml.text, xml.data, xml.close, style)


@dataclass(frozen=True, slots=True)
class XmlArguments(Form):
    """The members of an object as XML elements. `schema` is JSON text; the next four fields are those of XmlStyle."""

    schema: str
    before: str
    text: str
    data: str
    close: str
    style: Style

    def read(self, limits: Limits) -> Grammar:
        form = json_schema(parse_json(self.schema, limits), style=replace(self.style, key_order="schema"))
        xml = XmlStyle(self.before, self.text, self.data, self.close)
        return _XmlWriter(form.grammar(limits), xml, self.style, limits).build()


def space_node(style: Style) -> Node:
    """Return the node of the white space around elements and values."""
    if style.whitespace == "compact":
        return EMPTY
    spaces = Dfa.from_ranges([(0x20, 0x20), (0x09, 0x09)]).repeat(0, 64)
    if style.whitespace == "any":
        return Chars(Dfa.from_ranges([(9, 10), (13, 13), (32, 32)]).star())
    return Chars(Dfa.from_strings(["", "\n", "\r\n"]).concatenate(spaces))


class _XmlWriter(NodeVisitor[list[tuple[Node, bool]]]):
    """`visit(value)` returns the alternatives of a member's value, each with whether it is a string."""

    def __init__(self, grammar: Grammar, xml: XmlStyle, style: Style, limits: Limits) -> None:
        self.grammar, self.xml, self.limits = grammar, xml, limits
        self.space = space_node(style)
        self.rules: dict[Hashable, Node] = {name: grammar.rules[name] for name in grammar.rules}
        self.pending: list[Hashable] = []

    def build(self) -> Grammar:
        made = simplify_grammar(self.members(self.grammar.start), self.rules)
        if made is None:
            raise UnsatisfiableError(f"{SUBJECT}: no object conforms to the schema")
        return made

    def members(self, node: Node) -> Node:
        """Return the elements of the object that a node is, or of each of several."""
        while isinstance(node, Rule):
            node = self.grammar.rules[node.name]
        if isinstance(node, Sequence):  # white space around the object
            inner = [part for part in node.parts if not isinstance(part, Chars)]
            if len(inner) == 1:
                return self.members(inner[0])
        if isinstance(node, Choice):
            return Choice(tuple(map(self.members, node.options)))
        if not isinstance(node, Object) or node.is_array:
            raise refuse_members("the schema is not that of a plain object")
        check_members(node)
        following: Node = self.space
        for k in range(len(node.properties) - 1, -1, -1):
            prop = node.properties[k]
            one: Node = Sequence((self.element(prop), following))
            name = ("elements", len(self.rules))
            self.rules[name] = one if prop.required else Choice((one, following))
            following = Rule(name)
        return following

    def element(self, prop: Property) -> Node:
        """Return the element of a member, with the white space before it."""
        options: list[Node] = []
        for value, is_string in self.visit(prop.value):
            opening = self.spaced(f"{self.xml.before}{prop.name}{self.xml.text if is_string else self.xml.data}")
            options.append(Sequence((*opening, value, Literal(self.xml.close.encode()))))
        return Sequence((self.space, options[0] if len(options) == 1 else Choice(tuple(options))))

    def spaced(self, text: str) -> list[Node]:
        """Return the nodes of a text in which a line break stands for white space."""
        first, *more = (Literal(piece.encode()) for piece in text.split("\n"))
        return [first, *(node for piece in more for node in (self.space, piece))]

    def padded(self, node: Node) -> Node:
        return Sequence((self.space, node, self.space))

    # ---- the alternatives of a value

    def visit_rule(self, node: Rule) -> list[tuple[Node, bool]]:
        if node.name in self.pending:
            raise refuse_members("a value is defined by itself")
        self.pending.append(node.name)
        found = self.visit(self.grammar.rules[node.name])
        self.pending.pop()
        return found

    def visit_choice(self, node: Choice) -> list[tuple[Node, bool]]:
        return [found for option in node.options for found in self.visit(option)]

    def visit_json_string(self, node: JsonString) -> list[tuple[Node, bool]]:
        most = self.limits.dfa_states
        text = Grammar(Chars(node.dfa, "utf8", node.low, node.high), {})
        without = Dfa.any_text().subtract(texts_with(self.xml.close), max_states=most)
        found = intersect_grammar(text, without, self.limits)
        if found is None:
            return []
        is_free = node.dfa == Dfa.any_text() and not node.low and node.high is None  # Then white space is part of it.
        return [(found.start if is_free else self.padded(found.start), True)]

    def visit_literal(self, node: Literal | Strings) -> list[tuple[Node, bool]]:
        options = node.options if isinstance(node, Strings) else (node.data,)
        texts = [json.loads(option).encode() for option in options if option.startswith(b'"')]
        for text in texts:
            if self.xml.close.encode() in text:
                raise refuse_members(f"the constant {shorten_text(text.decode())!r} contains the closing tag")
        others = [option for option in options if not option.startswith(b'"')]
        groups = ((tuple(sorted(set(texts))), True), (tuple(others), False))
        return [(self.padded(Strings(group)), is_string) for group, is_string in groups if group]

    visit_strings = visit_literal

    def visit_chars(self, node: Chars) -> list[tuple[Node, bool]]:
        if node.dfa.step(0, '"') >= 0:
            raise refuse_members("a pattern of the schema contains values of several types")
        return [(self.padded(node), False)]

    def generic_visit(self, node: Node, *context: Any) -> list[tuple[Node, bool]]:
        if isinstance(node, (Sequence, Repeat)) and b'"' in leading_bytes(node):
            raise refuse_members("a string of the schema is not a plain string")
        return [(self.padded(node), False)]


def leading_bytes(node: Node) -> bytes:
    """Return the first byte of a sequence that begins with a literal; b"" for other nodes."""
    while isinstance(node, Sequence) and node.parts:
        node = node.parts[0]
    return node.data[:1] if isinstance(node, Literal) else b""


def check_members(node: Object) -> None:
    """Refuse an object whose members are not independent of each other."""
    required = {prop.name for prop in node.properties if prop.required}
    if node.others:
        raise refuse_members(
            "the object may have undeclared members", 'Declare them, or write "additionalProperties": false.'
        )
    if node.low > len(required) or (node.high is not None and node.high < len(node.properties)):
        raise refuse_members("the number of members is bounded", 'Leave out "minProperties" and "maxProperties".')
    for prop in node.properties:
        if not prop.needs <= required:
            raise refuse_members(f"{prop.name!r} depends on others", 'Leave out "dependentRequired".')
        if not prop.name or set(prop.name) & set('<>"\n'):
            raise refuse_members(f"the name {shorten_text(prop.name)!r} cannot stand in a tag", "Rename it.")


def refuse_members(cause: str, hint: str = "Simplify the schema.") -> UnsupportedError:
    return UnsupportedError(f"{SUBJECT}: {cause}", hint=hint)

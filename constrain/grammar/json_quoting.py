"""Conversion of the texts of a Grammar to JSON strings, including the quotes."""

from __future__ import annotations

from collections.abc import Hashable
from json.encoder import encode_basestring
from typing import Literal as OneOf

from ..automata.dfa import Dfa
from ..base.errors import UnsupportedError
from ..base.options import Limits, Style
from .nodes import Chars, Choice, Grammar, Literal, Node, Strings, Token
from .object_expansion import expand_objects
from .smart_constructors import make_sequence
from .visitor import PLAIN_CLASSES, NodeRebuilder, fold_node

__all__ = ["quote_as_json"]

OPERATION = "a grammar inside a JSON string"
QUOTE = Literal(b'"')


def quote_as_json(grammar: Grammar, style: Style = Style(), limits: Limits = Limits()) -> Grammar:
    """Return the Grammar of the JSON strings whose decoded values are the texts of `grammar`, including the quotes.

    Characters of Chars leaves may use any escapes; literals follow `style.escapes`. Raise UnsupportedError for tokens,
    for literals that are not UTF-8 and for nodes that plain rules cannot express.
    """
    plain = expand_objects(grammar, OPERATION, limits=limits)
    escape = _JsonEscaper(style.escapes).visit
    rules: dict[Hashable, Node] = {name: fold_node(body, escape) for name, body in plain.rules.items()}
    return Grammar(make_sequence((QUOTE, fold_node(plain.start, escape), QUOTE)), rules)


class _JsonEscaper(NodeRebuilder):
    """A fold that replaces leaves by their spellings inside a JSON string."""

    node_classes = PLAIN_CLASSES

    def __init__(self, escapes: OneOf["canonical", "any"]) -> None:
        self.escapes = escapes

    def visit_chars(self, node: Chars, parts: list[Node]) -> Node:
        return Chars(node.dfa, "json", node.low, node.high)

    def visit_literal(self, node: Literal, parts: list[Node]) -> Node:
        return self.escape(node.data)

    def visit_strings(self, node: Strings, parts: list[Node]) -> Node:
        return Choice(tuple(map(self.escape, node.options)))

    def visit_token(self, node: Token, parts: list[Node]) -> Node:
        raise UnsupportedError(f"{OPERATION}: a token is not text", hint="Leave tokens outside of JSON.")

    def escape(self, data: bytes) -> Node:
        """Return a node for the spellings of a text."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise UnsupportedError(f"{OPERATION}: {data!r} is not UTF-8", hint="Write whole characters.") from None
        if self.escapes == "any" and text:
            return Chars(Dfa.from_strings([text]), "json")
        return Literal(encode_basestring(text)[1:-1].encode())

"""Conversion of the texts of a Grammar to JSON strings, including the quotes."""

from __future__ import annotations

from collections.abc import Hashable
from json.encoder import encode_basestring

from ..automata.dfa import Dfa
from ..base.errors import UnsupportedError
from ..base.options import Limits, Style
from .nodes import Chars, Choice, Grammar, Literal, Node, Strings, Token
from .object_expansion import expand_objects
from .visitor import make_sequence, rebuild_node

__all__ = ["quote_as_json"]

WHAT = "a grammar inside a JSON string"
QUOTE = Literal(b'"')


def quote_as_json(grammar: Grammar, style: Style = Style(), limits: Limits = Limits()) -> Grammar:
    """Return the Grammar of the JSON strings whose decoded values are the texts of `grammar`, including the quotes.

    Characters of Chars leaves may use any escapes; literals follow `style.escapes`. Raise UnsupportedError for tokens,
    for literals that are not UTF-8 and for nodes that plain rules cannot express.
    """
    plain = expand_objects(grammar, WHAT, limits=limits)

    def inside(node: Node) -> Node:
        if isinstance(node, Chars):
            return Chars(node.dfa, "json", node.low, node.high)
        if isinstance(node, Literal):
            return text(node.data)
        if isinstance(node, Strings):
            return Choice(tuple(map(text, node.options)))
        if isinstance(node, Token):
            raise UnsupportedError(f"{WHAT}: a token is no text", hint="Leave tokens outside of JSON.")
        return rebuild_node(node, inside)

    def text(data: bytes) -> Node:
        try:
            one = data.decode()
        except UnicodeDecodeError:
            raise UnsupportedError(f"{WHAT}: {data!r} is not UTF-8", hint="Write whole characters.") from None
        if style.escapes == "any" and one:
            return Chars(Dfa.from_strings([one]), "json")
        return Literal(encode_basestring(one)[1:-1].encode())

    rules: dict[Hashable, Node] = {name: inside(node) for name, node in plain.rules.items()}
    return Grammar(make_sequence((QUOTE, inside(plain.start), QUOTE)), rules)

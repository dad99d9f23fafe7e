"""White space and punctuation, as the Style wants it, at each depth."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ...automata.dfa import Dfa
from ...grammar.nodes import EMPTY, Chars, Layout, Literal, Node, Sequence
from ...style import Style

__all__ = ["FLEXIBLE", "Spacing", "around", "spacing"]

FLEXIBLE = 200
"""Most white space characters in a row of the style "flexible": room for deep indentation, but not for a runaway."""


class Spacing(NamedTuple):
    """What stands between the tokens of an array or object: white space inside the brackets, and punctuation."""

    open: Node
    close: Node
    comma: Node
    empty: Node
    layout: Layout


@lru_cache(maxsize=256)
def spacing(style: Style, depth: int) -> Spacing:
    """The spacing of a container at a depth (0: the root); only an indented style looks at the depth."""
    if isinstance(style.whitespace, int):
        outer = "\n" + " " * (style.whitespace * depth)
        inner = "\n" + " " * (style.whitespace * (depth + 1))
        parts = tuple(Literal(text.encode()) for text in (inner, outer, "," + inner, ": "))
        return _spacing(parts[0], parts[1], parts[2], parts[3], EMPTY)
    if style.whitespace == "compact":
        return _spacing(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)
    space = blank(style)
    return _spacing(
        space, space, Sequence((space, Literal(b","), space)), Sequence((space, Literal(b":"), space)), space
    )


def _spacing(inner: Node, outer: Node, comma: Node, colon: Node, empty: Node) -> Spacing:
    return Spacing(inner, outer, comma, empty, Layout(inner, outer, comma, colon, empty))


@lru_cache(maxsize=64)
def blank(style: Style) -> Chars:
    """White space: `ws` of RFC 8259, as much of it as the style allows."""
    dfa = Dfa.from_ranges([(32, 32), (9, 10), (13, 13)]).star()
    return Chars(dfa, high=FLEXIBLE if style.whitespace == "flexible" else None)


def around(value: Node, style: Style) -> Node:
    """The root: with white space around it if the style allows any."""
    return Sequence((blank(style), value, blank(style))) if style.whitespace == "any" else value

"""White space and punctuation of arrays and objects, by Style and depth.

The style "flexible" accepts what JSON writers produce: `json.dumps` with any separators and indent, `JSON.stringify`,
prettier, Go's and jq's. None of them writes anything before a colon or comma, or more than one line break, or a line
break in an empty array or object. Inside brackets and after a comma there is a *gap*: nothing, a space, or a line break
and an indentation of spaces or of tabs.
"""

from __future__ import annotations

from typing import NamedTuple

from ....automata.dfa import Dfa
from ....base.options import Style
from ....base.work import memoize_work
from ....grammar.nodes import EMPTY, Chars, Layout, Literal, Node, Sequence

__all__ = ["INDENTATION", "Spacing", "surround_root", "any_whitespace", "flexible_gap", "spacing_at"]

INDENTATION = 64
"""Most spaces or tabs after a line break in the style "flexible"."""


class Spacing(NamedTuple):
    """White space between the brackets and the items of an array or object, and the punctuation.

    `layout` is that of an Object, `texts` that of an array of different texts, which an Object writes, too.
    """

    open: Node
    close: Node
    comma: Node
    empty: Node
    layout: Layout
    texts: Layout


@memoize_work(256)
def spacing_at(style: Style, depth: int) -> Spacing:
    """Return the spacing of an array or object at a depth (0: the root); only indented styles depend on the depth."""
    if isinstance(style.whitespace, int):
        outer = "\n" + " " * (style.whitespace * depth)
        inner = "\n" + " " * (style.whitespace * (depth + 1))
        parts = tuple(Literal(text.encode()) for text in (inner, outer, "," + inner, ": "))
        return _spacing(parts[0], parts[1], parts[2], parts[3], EMPTY)
    if style.whitespace == "compact":
        return _spacing(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)
    if style.whitespace == "flexible":
        space, narrow = flexible_gap(), optional_space()
        return _spacing(space, space, Sequence((Literal(b","), space)), Sequence((Literal(b":"), narrow)), narrow)
    space = any_whitespace()
    return _spacing(
        space, space, Sequence((space, Literal(b","), space)), Sequence((space, Literal(b":"), space)), space
    )


def _spacing(inner: Node, outer: Node, comma: Node, colon: Node, empty: Node) -> Spacing:
    texts = Layout(inner, outer, comma, EMPTY, empty, b"[", b"]")
    return Spacing(inner, outer, comma, empty, Layout(inner, outer, comma, colon, empty), texts)


@memoize_work(64)
def any_whitespace() -> Chars:
    """Return any amount of white space (`ws` of RFC 8259)."""
    return Chars(Dfa.from_ranges([(32, 32), (9, 10), (13, 13)]).star())


@memoize_work(64)
def flexible_gap() -> Chars:
    """Return the gap: nothing, one space, or one line break and an indentation. Every prefix of a gap is a gap, so a
    counter can bound it.
    """
    space, tab, newline = (Dfa.from_strings([text]) for text in (" ", "\t", "\n"))
    broken = newline.concatenate(Dfa.union_of([space.star(), tab.star()]))
    return Chars(Dfa.union_of([Dfa.from_strings(["", " "]), broken]), high=1 + INDENTATION)


@memoize_work(64)
def optional_space() -> Chars:
    """Return nothing or one space."""
    return Chars(Dfa.from_strings(["", " "]))


def surround_root(value: Node, style: Style) -> Node:
    """Return the root with white space around it if the style allows that."""
    return Sequence((any_whitespace(), value, any_whitespace())) if style.whitespace == "any" else value

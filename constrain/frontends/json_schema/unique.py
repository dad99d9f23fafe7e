"""`uniqueItems` over finitely many values: one rule for each set of values that are left, made when it is reached.

Of an array whose items are each one of n values, at most n items differ, and what may come next is what has not come
yet. The rules of a Grammar are made on demand, so there are as many of them as items are written, not 2^n.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...grammar.nodes import EMPTY, Choice, Literal, Node, Rule, Sequence
from ...style import Limits, Style
from . import quantities, strings
from .languages import Languages
from .quantities import NumberCase
from .shapes import FALSE_BIT, NULL_BIT, TRUE_BIT, Shape
from .spacing import spacing
from .strings import StringCase

__all__ = ["MOST_VALUES", "Left", "finite", "first", "more"]

MOST_VALUES = 100
"""Values beyond which a rule for each set of them that is left would be too large."""

Values = tuple[NumberCase | StringCase | bytes, ...]


class Left(NamedTuple):
    """The name of a rule: low to high more items of those `values`, at a depth. `left` are their places in the list."""

    values: Values
    left: tuple[int, ...]
    low: int
    high: int
    depth: int


class Writer(Protocol):
    """What is asked of the writer of values."""

    style: Style
    limits: Limits
    languages: Languages


def finite(shape: Shape) -> Values | None:
    """The values of a shape one by one, if it has no more than MOST_VALUES and none with brackets."""
    if shape.arrays or shape.objects:
        return None
    values: dict[NumberCase | StringCase | bytes, None] = {}
    for bit, word in ((NULL_BIT, b"null"), (FALSE_BIT, b"false"), (TRUE_BIT, b"true")):
        if shape.scalars & bit:
            values[word] = None
    for number in shape.numbers:
        if number.values is None or number.spelling is not None:
            return None
        values.update((NumberCase((value,)), None) for value in number.values)
    for text in shape.strings:
        if text.values is None:
            return None
        values.update((StringCase((value,)), None) for value in text.values)
    return tuple(values) if len(values) <= MOST_VALUES else None


def first(values: Values, low: int, high: int, depth: int) -> Node:
    """low to high different items, one at least, with commas between."""
    return Rule(Left(values, tuple(range(len(values))), low, min(high, len(values)), depth))


def more(name: Left, writer: Writer) -> Node:
    """What such a rule stands for: one of the values that are left, and then what is left after it."""
    comma = spacing(writer.style, name.depth - 1).comma
    options: list[Node] = []
    for place in name.left:
        value = _value(name.values[place], writer)
        if name.high == 1:
            options.append(value)
            continue
        left = tuple(other for other in name.left if other != place)
        rest = Sequence((comma, Rule(Left(name.values, left, max(0, name.low - 1), name.high - 1, name.depth))))
        options.append(Sequence((value, rest if name.low > 1 else Choice((EMPTY, rest)))))
    return options[0] if len(options) == 1 else Choice(tuple(options))


def _value(value: NumberCase | StringCase | bytes, writer: Writer) -> Node:
    """The spellings of one value."""
    if isinstance(value, bytes):
        return Literal(value)
    if isinstance(value, StringCase):
        constants, nodes = strings.emit((value,), writer.languages, writer.style)
    else:
        constants, nodes = quantities.emit((value,), writer.style, writer.limits)
    options = [*map(Literal, sorted(constants)), *nodes]
    return options[0] if len(options) == 1 else Choice(tuple(options))

"""The keywords of one value: its type, the values allowed, and what numbers and strings must satisfy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any

from ..base.json_documents import MOST_DIGITS
from ..frontends.json_schema.core.json_values import BOOLEAN, NUMBER, STRING, Constant
from ..frontends.json_schema.core.static_types import INTEGER
from ..frontends.json_schema.core.subschema_table import Subschema
from ..frontends.json_schema.strings.formats import BEFORE_2020
from .findings import Finding, Judge, KeywordRule
from .instance_tree import InstanceItem
from .message_words import (
    FORMAT_NAMES,
    count_of,
    listed,
    show_constant,
    show_fraction,
    show_item,
    show_text,
    type_names,
)

__all__ = ["VALUE_RULES"]

MOST_SHOWN = 200
"""Most constants of `enum` that are counted for a message."""


def check_type(judge: Judge, node: Subschema, mask: int, item: InstanceItem) -> Iterator[Finding]:
    """`type`: one of the types of a mask."""
    if item.kind & mask or (item.kind == NUMBER and mask & INTEGER and is_integer(judge, node, item)):
        return
    kind = f"is {type_names(item.kind)}, not" if item.kind in (STRING, BOOLEAN) else "is not"
    yield Finding(f"{show_item(item)} {kind} {type_names(mask)}", item)


def is_integer(judge: Judge, node: Subschema, item: InstanceItem) -> bool:
    """Return whether a number is an integer; in draft 4 it is also written as one."""
    value = item.value
    if isinstance(value, int):
        return True
    if node.draft == 4:  # A text's integer of very many digits is a Decimal, too.
        return isinstance(value, Decimal) and value.as_tuple().exponent == 0 and value.adjusted() >= MOST_DIGITS
    return judge.values.rational(item).denominator == 1


def check_enum(judge: Judge, node: Subschema, constants: tuple[Constant, ...], item: InstanceItem) -> Iterator[Finding]:
    """`enum`: one of the listed values."""
    if judge.values.of_item(item) in judge.constants(constants):
        return
    yield Finding(partial(not_listed, judge, constants, item), item)


def not_listed(judge: Judge, constants: tuple[Constant, ...], item: InstanceItem) -> str:
    """Return the message for a value that `enum` does not list."""
    words = [show_constant(constant) for constant in constants[:MOST_SHOWN]]
    words += ["…"] * (len(constants) > MOST_SHOWN)
    near = ""
    if item.kind == STRING:
        near = judge.suggest(item.value, (constant[1] for constant in constants if constant[0] == STRING))
    if not words:
        return f"{show_item(item)} is not allowed: enum lists no value"
    if len(words) == 1:
        return f"{show_item(item)} is not {words[0]}, the only value of enum{near}"
    return f"{show_item(item)} is not in enum: {listed(words)}{near}"


def check_const(judge: Judge, node: Subschema, constant: tuple[Constant, ...], item: InstanceItem) -> Iterator[Finding]:
    """`const`: one value."""
    if judge.values.of_item(item) not in judge.constants(constant):
        yield Finding(f"{show_item(item)} is not the constant {show_constant(constant[0])}", item)


def bound(words: str, accepts: Callable[[Fraction, Fraction], bool], open_words: str = "") -> KeywordRule:
    """Return the rule of a bound. open_words: those for a bound that draft 4 excludes by `exclusiveMinimum: true`."""
    exclusive = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}.get(words.rpartition(" ")[2], "")

    def rule(judge: Judge, node: Subschema, limit: Any, item: InstanceItem) -> Iterator[Finding]:
        if item.kind != NUMBER or isinstance(limit, bool):
            return
        value = judge.values.rational(item)
        if not accepts(value, limit):
            yield Finding(f"{show_item(item)} is {words} {show_fraction(limit)}", item)
        elif value == limit and exclusive and node.keywords.get(exclusive) is True:
            yield Finding(f"{show_item(item)} is {open_words} {show_fraction(limit)}", item, keyword=words.split()[-1])

    return rule


def check_multiple(judge: Judge, node: Subschema, step: Fraction, item: InstanceItem) -> Iterator[Finding]:
    """`multipleOf`, in exact decimals."""
    if item.kind != NUMBER:
        return
    quotient = judge.values.rational(item) / step
    if quotient.denominator != 1:
        below = floor(quotient)
        near = f"the nearest are {show_fraction(below * step)} and {show_fraction((below + 1) * step)}"
        yield Finding(f"{show_item(item)} is not a multiple of {show_fraction(step)} (multipleOf): {near}", item)


def length(keyword: str, words: str, accepts: Callable[[int, int], bool]) -> KeywordRule:
    """Return the rule of a bound on the length of a string, in code points."""

    def rule(judge: Judge, node: Subschema, limit: int, item: InstanceItem) -> Iterator[Finding]:
        if item.kind == STRING and not accepts(len(item.value), limit):
            number = count_of(len(item.value), "character")
            yield Finding(f"{show_item(item)} has {number}, {words} {keyword} {limit:,}", item)

    return rule


def check_pattern(judge: Judge, node: Subschema, pattern: str, item: InstanceItem) -> Iterator[Finding]:
    """`pattern`: found somewhere in the string."""
    if item.kind == STRING and not judge.matches(pattern, item.value):
        yield Finding(f"{show_item(item)} does not match the pattern {show_text(pattern)}", item)


def check_format(judge: Judge, node: Subschema, name: str, item: InstanceItem) -> Iterator[Finding]:
    """`format`: by its RFC."""
    if item.kind == STRING and not judge.has_format(name, item.value):
        plain = name.removesuffix(BEFORE_2020)
        yield Finding(f"{show_item(item)} is not {FORMAT_NAMES[plain]} (format {show_text(plain)})", item)


VALUE_RULES: dict[str, KeywordRule] = {
    "type": check_type,
    "enum": check_enum,
    "const": check_const,
    "minimum": bound("below minimum", lambda value, limit: value >= limit, "not above exclusive minimum"),
    "maximum": bound("above maximum", lambda value, limit: value <= limit, "not below exclusive maximum"),
    "exclusiveMinimum": bound("not above exclusiveMinimum", lambda value, limit: value > limit),
    "exclusiveMaximum": bound("not below exclusiveMaximum", lambda value, limit: value < limit),
    "multipleOf": check_multiple,
    "minLength": length("minLength", "fewer than", lambda count, limit: count >= limit),
    "maxLength": length("maxLength", "more than", lambda count, limit: count <= limit),
    "pattern": check_pattern,
    "format": check_format,
}

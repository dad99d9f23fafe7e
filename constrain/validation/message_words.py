"""Words of messages: values, numbers and types as people read them, always short."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from ..base.errors import shorten_text
from ..base.json_documents import LONG
from ..base.work import spend_work
from ..frontends.json_schema.core.json_values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Constant
from ..frontends.json_schema.core.static_types import INTEGER
from .instance_tree import InstanceItem

__all__ = [
    "FORMAT_NAMES", "count_of", "listed", "show_constant", "show_fraction", "show_item", "show_text", "suggestion",
    "type_names",
]  # fmt: skip

SHOWN = 60
"""Most characters of a value in a message."""
MOST_LISTED = 6
"""Most values that a message lists; of more it says how many there are."""
MOST_PARTS = 3
"""Most parts of an array or object of a schema that is shown as JSON."""
MOST_COMPARED = 200
"""Most names among which a similar one is looked for."""

TYPES = {
    NULL: "null", BOOLEAN: "a boolean", INTEGER: "an integer", NUMBER: "a number", STRING: "a string",
    ARRAY: "an array", OBJECT: "an object",
}  # fmt: skip

FORMAT_NAMES = {
    "date": "a date such as 2024-02-29", "date-time": "a date and time such as 2024-02-29T12:30:00Z",
    "duration": "a duration such as P3DT12H", "email": "an email address", "hostname": "a host name",
    "idn-email": "an email address", "idn-hostname": "a host name", "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address", "iri": "an IRI", "iri-reference": "an IRI reference", "json-pointer": "a JSON pointer",
    "regex": "a regular expression", "relative-json-pointer": "a relative JSON pointer",
    "time": "a time with offset such as 12:30:00Z", "uri": "a URI", "uri-reference": "a URI reference",
    "uri-template": "a URI template", "uuid": "a UUID",
}  # fmt: skip


def show_text(text: str) -> str:
    """Return a text in quotes, its middle left out if it is long."""
    return json.dumps(shorten_text(text, SHOWN), ensure_ascii=False)


def show_item(item: InstanceItem) -> str:
    """Return a scalar as JSON, an array or object by its size."""
    value: Any = item.value
    if item.kind == STRING:
        return show_text(value)
    if item.kind == ARRAY:
        return f"an array of {count_of(len(value), 'item')}"
    if item.kind == OBJECT:
        return f"an object with {count_of(len(value), 'property')}"
    if item.kind == NUMBER:
        return show_number(value)
    return "null" if value is None else json.dumps(value)


def show_number(value: Any) -> str:
    """Return a number as JSON, its middle left out if it is long."""
    if isinstance(value, int) and not -LONG < value < LONG:
        return "a number of many digits"
    return shorten_text(value, SHOWN)


def show_fraction(number: Fraction) -> str:
    """Return an exact number as a decimal."""
    if number.denominator == 1:
        return show_number(number.numerator)
    places = 0
    scaled = number
    while scaled.denominator != 1 and places < SHOWN:
        scaled, places = scaled * 10, places + 1
    if scaled.denominator != 1:
        return shorten_text(number, SHOWN)
    sign, digits = "-" if number < 0 else "", str(abs(scaled.numerator)).rjust(places + 1, "0")
    return shorten_text(f"{sign}{digits[:-places]}.{digits[-places:]}", SHOWN)


def show_constant(constant: Constant) -> str:
    """Return a constant of a schema as JSON; arrays and objects only if they are small."""
    kind = constant[0]
    if kind == STRING:
        return show_text(constant[1])
    if kind == NUMBER:
        return show_fraction(constant[1])
    if kind == NULL:
        return "null"
    if kind == BOOLEAN:
        return json.dumps(constant[1])
    if len(constant[1]) > MOST_PARTS or any(part[0] in (ARRAY, OBJECT) for part in parts_of(constant)):
        return f"an array of {len(constant[1])}" if kind == ARRAY else f"an object of {len(constant[1])}"
    if kind == ARRAY:
        return f"[{', '.join(map(show_constant, constant[1]))}]"
    return "{" + ", ".join(f"{show_text(name)}: {show_constant(part)}" for name, part in constant[1]) + "}"


def parts_of(constant: Constant) -> list[Constant]:
    """Return the items or members of an array or object constant."""
    return [part[1] if constant[0] == OBJECT else part for part in constant[1]]


def listed(words: Sequence[str], last: str = "or") -> str:
    """Return words as "a, b or c"; of many, the first ones."""
    if len(words) > MOST_LISTED:
        return f"{', '.join(words[:MOST_LISTED])} {last} {len(words) - MOST_LISTED} others"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def type_names(mask: int) -> str:
    """Return the types of a mask as "a string or null"."""
    mask &= ~INTEGER if mask & NUMBER else -1
    return listed([name for bit, name in TYPES.items() if mask & bit])


def count_of(number: int, what: str) -> str:
    """Return "1 item", "2 items", "2 properties"."""
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {what[:-1] + 'ies' if what.endswith('y') else what + 's'}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" if one of the known names is similar, otherwise ""."""
    names = [one for one, _ in zip(known, range(MOST_COMPARED)) if len(one) <= SHOWN]
    spend_work(8 * len(names), "the search for similar names")
    near = get_close_matches(name, names, 1, 0.7) if len(name) <= SHOWN else []
    return f"; did you mean {show_text(near[0])}?" if near else ""

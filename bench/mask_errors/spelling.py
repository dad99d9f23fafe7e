"""Write a value as JSON text: canonically, as engines that fix the spelling do, or in any spelling of RFC 8259."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from .values import SURROGATE, Number, Value, build_number

__all__ = ["spell_canonically", "spell_freely", "quote_string", "respell_number"]

MOST_DIGITS = 40
"""`Style.digits` of the default style: the maximum number of successive digits in a canonical text."""
SHORT = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
BLANKS = ["", "", "", " ", " ", "\n", "\n  ", "\t", "\r\n", "    ", " \n\t\r"]


def quote_string(text: str) -> str:
    """Quote like json.dumps(ensure_ascii=False); a lone surrogate, which UTF-8 cannot encode, is escaped."""
    return SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def spell_canonically(value: Value, rng: random.Random) -> str | None:
    """Return the canonical spelling with one of three styles of white space; None if it has too many
    digits in a row. Empty arrays and objects have none inside, as the default style and common JSON writers.
    """
    comma, colon, blank = rng.choice(((",", ":", ""), (", ", ": ", ""), (", ", ": ", ""), (",\n", ": ", "\n  ")))
    try:
        return write_value(value, spell_number, quote_string, lambda: comma, lambda: colon, lambda: blank, lambda: "")
    except OverflowError:
        return None


def spell_freely(value: Value, rng: random.Random) -> str:
    """Return a random spelling: escapes, numbers and white space."""
    escapes, numbers, blanks = (rng.choice((0.0, 0.0, 0.02, 0.3)) for _ in range(3))

    def blank() -> str:
        return rng.choice(BLANKS) if rng.random() < blanks * 3 else ""

    def number(n: Number) -> str:
        return respell_number(n, rng).text if rng.random() < numbers * 3 else n.text

    def string(text: str) -> str:
        return escape_string(text, escapes, rng) if escapes else quote_string(text)

    def separate(mark: str) -> Callable[[], str]:
        return lambda: blank() + mark + blank()

    inner = write_value(value, number, string, separate(","), separate(":"), blank, blank)
    return blank() + inner + blank()


def write_value(value: Value, number: Any, string: Any, comma: Any, colon: Any, blank: Any, empty: Any) -> str:
    """Return the text of a value. Further arguments: functions that return the text of each part.

    blank, empty: white space inside the brackets of arrays and objects with members, and of those without.
    """
    if isinstance(value, Number):
        return str(number(value))
    if isinstance(value, str):
        return str(string(value))
    if isinstance(value, list):
        inner = [write_value(item, number, string, comma, colon, blank, empty) for item in value]
        opening, closing = "[]"
    elif isinstance(value, dict):
        inner = [
            string(key) + colon() + write_value(item, number, string, comma, colon, blank, empty)
            for key, item in value.items()
        ]
        opening, closing = "{}"
    else:
        return json.dumps(value)
    if not inner:
        return f"{opening}{empty()}{closing}"
    text: str = ""
    for position, item in enumerate(inner):
        text += (comma() if position else "") + item
    return f"{opening}{blank()}{text}{blank()}{closing}"


def spell_number(number: Number) -> str:
    """Return the shortest text without an exponent. OverflowError: more than MOST_DIGITS digits in a row."""
    value = number.value
    if value and not Fraction(1, 10**MOST_DIGITS) <= abs(value) < 10**MOST_DIGITS:
        raise OverflowError
    text = build_number(value).text
    if re.search(rf"\d{{{MOST_DIGITS + 1}}}", text):
        raise OverflowError
    return text


def escape_string(text: str, share: float, rng: random.Random) -> str:
    """Quote a string with a share of its characters escaped: short escapes, `\\u` in both cases, surrogate pairs."""
    out = []
    for char in text:
        code = ord(char)
        if rng.random() >= share and code >= 32 and char not in '"\\' and not 0xD800 <= code < 0xE000:
            out.append(char)
        elif char in SHORT and rng.random() < 0.5:
            out.append("\\" + SHORT[char])
        elif code > 0xFFFF:
            out.append("".join(spell_unit(unit, rng) for unit in (0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))))
        else:
            out.append(spell_unit(code, rng))
    return f'"{"".join(out)}"'


def spell_unit(unit: int, rng: random.Random) -> str:
    digits = f"{unit:04x}"
    return "\\u" + "".join(rng.choice((digit, digit.upper())) for digit in digits)


def respell_number(number: Number, rng: random.Random) -> Number:
    """Return another spelling of the same number."""
    value = number.value
    if len(number.text) > 60 or (value and not Fraction(1, 10**60) < abs(value) < 10**60):
        return number
    plainly = build_number(value).text
    if value == 0:
        return Number(rng.choice(("0", "-0", "0.0", "-0.000", "0e5", "0E-2", "0.0e+10", "-0e0")))
    e, plus, zero = rng.choice("eE"), rng.choice(("", "+")), rng.choice(("", "", "0", "00"))
    shift = rng.randint(-6, 6)
    mantissa = build_number(value / Fraction(10) ** shift).text
    tail = rng.choice(("", "0", "000"))
    if tail:
        mantissa += tail if "." in mantissa else "." + tail
    power = f"-{zero}{-shift}" if shift < 0 else f"{plus}{zero}{shift}"
    dotted = plainly + ("0" if "." in plainly else ".0") * rng.randint(1, 1)
    return Number(rng.choice((mantissa + e + power, dotted, dotted + "00", plainly + e + plus + zero + "0")))

"""Schemas of the keys of dicts, `dict[int, str]` for example: JSON writes a key as a string, whatever its type.

Numbers are written without leading zeros, exponents and zeros at the end, so that different keys are different values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..base.errors import UnsupportedError, shorten_text

__all__ = ["build_key_schema", "write_key"]

Schema = dict[str, Any]

FRACTION = "[.][0-9]*[1-9]"


def build_key_schema(schema: Schema, resolve: Callable[[str], Schema | None]) -> Schema:
    """Return the schema of the keys that denote the values of a schema.

    Parameters
    ----------
    schema : dict
        The schema of the key type.
    resolve : callable
        Returns the schema of a `$ref`.

    Raises
    ------
    UnsupportedError
        If its values are no keys, or if a pattern cannot state the bounds of its numbers.
    """
    if "$ref" in schema:
        resolved = resolve(schema["$ref"])
        if resolved:
            return build_key_schema({**resolved, **{key: schema[key] for key in schema if key != "$ref"}}, resolve)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:  # No key is read as null.
            options = [option for option in schema[keyword] if option.get("type") != "null"]
            return {keyword: [build_key_schema(option, resolve) for option in options]}
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values is not None:
        return {"enum": [write_key(value) for value in values]}
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return {"pattern": f"^(?:{number_pattern(schema)})$"}
    if kind == "boolean":
        return {"enum": ["true", "false"]}
    if kind == "string" or schema.keys() <= {"title", "description"}:
        return {key: value for key, value in schema.items() if key != "title"}
    raise UnsupportedError(
        f"keys of a dict cannot be of the schema {shorten_text(schema)}",
        hint="Keys are texts, numbers, booleans or values of an Enum or Literal.",
    )


def write_key(value: Any) -> str:
    """Return the key that denotes a value of an Enum or Literal."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise UnsupportedError(f"{value!r} cannot be a key of a JSON object", hint="Take texts or numbers.")
    return str(value)


def number_pattern(schema: Schema) -> str:
    """Return a pattern of the numbers of a schema; integers have no point."""
    if schema.get("multipleOf", 1) != 1 or "allOf" in schema:
        raise UnsupportedError("multiples as keys of a dict are not supported", hint="Take multiple_of off the keys.")
    is_whole = schema["type"] == "integer" or "multipleOf" in schema
    low = max(read_bounds(schema, "minimum", "exclusiveMinimum", is_whole, 1), default=None)
    high = min(read_bounds(schema, "maximum", "exclusiveMaximum", is_whole, -1), default=None)
    parts = []
    if high is None or high >= (0, 0):
        parts.append(magnitude_pattern(max(low or (0, 0), (0, 0)), high, is_whole))
    if low is None or low < (0, 0):
        nearest = (0, 1) if high is None else max((0, 1), (-high[0], -high[1]))
        parts.append("-(?:" + magnitude_pattern(nearest, None if low is None else (-low[0], -low[1]), is_whole) + ")")
    return "|".join(part for part in parts if part not in ("", "-(?:)")) or "[^\\s\\S]"


def read_bounds(schema: Schema, closed: str, opened: str, is_whole: bool, inwards: int) -> list[tuple[int, int]]:
    """Return bounds as whole numbers with 0, or with `inwards` (1, -1) where the bound itself is excluded."""
    bounds = []
    for keyword, is_open in ((closed, False), (opened, True)):
        if keyword not in schema:
            continue
        bound = schema[keyword]
        whole = (math.ceil if inwards == 1 else math.floor)(bound)
        if whole != bound and not is_whole:
            raise UnsupportedError(
                f"{keyword} {bound} of the keys of a dict is not supported", hint="Take a whole number as the bound."
            )
        if is_whole:  # All are closed.
            bounds.append((whole + inwards if is_open and whole == bound else whole, 0))
        else:
            bounds.append((whole, inwards if is_open else 0))
    return bounds


def magnitude_pattern(low: tuple[int, int], high: tuple[int, int] | None, is_whole: bool) -> str:
    """Return a pattern of the decimals between two bounds that are not negative; "" if there are none.

    The second member of a bound is 0, or 1 for what is above it, -1 for what is below.
    """
    last = None if high is None else high[0] + min(high[1], 0)
    whole = whole_pattern(low[0] + max(low[1], 0), last)
    broken = "" if is_whole else whole_pattern(low[0], None if high is None else high[0] - 1)
    return "|".join(part for part in (whole, broken and f"(?:{broken}){FRACTION}") if part)


def whole_pattern(low: int, high: int | None) -> str:
    """Return a pattern of the whole numbers from `low` to `high`, at least 0; None: without end."""
    if high is not None and low > high:
        return ""
    if low == 0:
        return "|".join(part for part in ("0", whole_pattern(1, high)) if part)
    digits = len(str(low))
    if high is None:
        larger = f"[1-9][0-9]{{{digits},}}"
        return f"{digit_pattern(str(low), '9' * digits)}|{larger}"
    parts = []
    while low <= high:
        end = min(high, 10 ** len(str(low)) - 1)
        parts.append(digit_pattern(str(low), str(end)))
        low = end + 1
    return "|".join(parts)


def digit_pattern(low: str, high: str) -> str:
    """Return a pattern of the strings of digits between two of the same length."""
    if low == high:
        return low
    if low[0] == high[0]:
        return low[0] + "(?:" + digit_pattern(low[1:], high[1:]) + ")"
    rest = len(low) - 1
    first, last = int(low[0]), int(high[0])
    parts = []
    if low[1:].strip("0"):
        parts.append(low[0] + "(?:" + digit_pattern(low[1:], "9" * rest) + ")")
        first += 1
    if high[1:].strip("9"):
        parts.append(high[0] + "(?:" + digit_pattern("0" * rest, high[1:]) + ")")
        last -= 1
    if first <= last:
        parts.append(f"[{first}-{last}]" + (f"[0-9]{{{rest}}}" if rest else ""))
    return "|".join(parts)

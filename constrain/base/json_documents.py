"""Validate JSON documents before recursive code processes them: Python values, JSON text, documents of a registry.

A document may come from an untrusted source, and not only as text: aliases in a YAML file make Python objects that
contain the same object many times. So depth and size are counted here, iteratively, one level after the other, and all
other code may rely on plain dicts, lists and scalars that are nested at most `Limits.nesting` deep.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from .errors import LimitError, SchemaError, shorten_text
from .json_numbers import MOST_DIGITS, ExactFloat, parse_exact_float, parse_exact_integer
from .options import Limits

__all__ = [
    "FEW_BRACKETS", "LONG", "LoadedDocument", "MOST_DIGITS", "References", "bound_levels",
    "check_registry", "echo_value", "find_deeper", "kind_of",
    "load_document", "may_be_deeper", "nests_deeper", "number_too_long", "parse_json", "parse_json_at",
    "parse_strictly", "plain_document", "pointer_token", "write_json",
]  # fmt: skip

LONG = 10**MOST_DIGITS
"""The least integer with more than MOST_DIGITS digits."""
ZERO = re.compile(r"-?0(?:\.0+)?[eE]")
"""Start of a zero with an exponent, which may be too large for Decimal."""
SCALARS = frozenset((str, int, float, bool, type(None)))
BYTES = 64
"""Characters of a document for each unit of `Limits.work`."""


@dataclass(eq=False, slots=True)
class LoadedDocument:
    """A document that `load_document` has returned; given to it again it is not parsed or checked a second time.

    `most_levels` is an upper bound of its levels of lists and objects, if one is known, and `text` what it was parsed
    from. `inspections` is what a front end has found out about the document, with what it depends on, so that it is
    found out once.
    """

    value: Any
    most_levels: int | None = None
    text: str | None = field(default=None, repr=False, compare=False)
    inspections: list[tuple[Any, Any]] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(
        cls, schema: Any, limits: Limits = Limits(), measure: Callable[[str], int | None] | None = None
    ) -> LoadedDocument:
        """Load a document.

        `measure` returns the levels of a text, or -1 minus these if an integer in it may have more than MOST_DIGITS
        digits, or None for a text that it cannot measure.
        """
        if not isinstance(schema, str):
            return cls(load_document(schema, limits))
        levels = limits.nesting + 1
        has_short_numbers = len(schema) <= MOST_DIGITS
        if has_short_numbers:
            levels = schema.count("[") + schema.count("{")
        if levels > FEW_BRACKETS or levels > limits.nesting:
            measured = None if measure is None else measure(schema)
            if measured is None:
                levels = bound_levels(schema, limits.nesting)
            else:
                levels, has_short_numbers = (measured, True) if measured >= 0 else (-1 - measured, False)
        if has_short_numbers and levels <= limits.nesting:
            document = _parse_usual_object(schema)
            if document is not None:
                return cls(document, levels, schema)
        return cls(_check_kind(_parse_json(schema, limits, levels)), levels, schema)

    def nests_deeper(self, levels: int) -> bool:
        """Return whether the document has more than `levels` levels of lists and objects."""
        return (self.most_levels is None or self.most_levels > levels) and nests_deeper(self.value, levels)


def load_document(schema: Any, limits: Limits = Limits()) -> Any:
    """Return a schema document as plain dicts and lists; JSON text is parsed.

    Raise SchemaError if it is neither an object nor a boolean, or contains a value that is not JSON; LimitError if it
    is nested too deeply or too large.
    """
    if isinstance(schema, LoadedDocument):
        return schema.value
    return _check_kind(parse_json(schema, limits) if isinstance(schema, str) else plain_document(schema, limits))


def _check_kind(document: Any) -> Any:
    """Return a schema document. Raise SchemaError if it is neither an object nor a boolean."""
    if not isinstance(document, (dict, bool)):
        raise SchemaError(f"A schema must be an object or a boolean, not {kind_of(document)}.", pointer="")
    return document


class References(dict[str, Any]):
    """A registry, with the base URI of the relative references of the main document.

    If `base_uri` is "", a relative reference is itself a key of the registry.
    """

    def __init__(self, registry: Mapping[str, Any] | None = None, base_uri: str = "") -> None:
        if not isinstance(base_uri, str):
            raise TypeError(f"base_uri is a URI, as str, not {echo_value(base_uri)}")
        if registry is None:
            super().__init__()
        else:
            super().__init__(check_registry(registry))
        self.base_uri: str = base_uri or getattr(registry, "base_uri", "")


def check_registry(registry: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the registry, {} for None. Raise TypeError if it is not a mapping from URIs (str)."""
    if registry is None:
        return {}
    if not isinstance(registry, Mapping):
        raise TypeError(f"registry is a mapping from URIs to schemas, not {kind_of(registry)}")
    for uri in registry:
        if not isinstance(uri, str):
            raise TypeError(f"registry has the key {shorten_text(repr(uri))}: its keys are URIs, as str")
    return registry


def plain_document(document: Any, limits: Limits = Limits()) -> Any:
    """Return a JSON value unchanged, or a copy with plain dicts and lists if it contains tuples or subclasses.

    Raise SchemaError, with a pointer, for a value that is not JSON; LimitError for more than `Limits.nesting` levels
    (as in a cyclic value) or more values than `Limits.work`.
    """
    level, size, characters, needs_copy = [document], 0, 0, False
    for depth in range(limits.nesting + 1):
        below: list[Any] = []
        for container in level:
            kind = type(container)
            if depth == limits.nesting and isinstance(container, (dict, list, tuple)):
                raise _too_deep(limits)
            if kind is dict:
                values = container.values()
                try:
                    characters += len("".join(container))
                except TypeError:
                    needs_copy = True
            elif kind is list:
                values = container
            else:  # a scalar document, or a type other than dict and list
                needs_copy = needs_copy or kind not in SCALARS
                continue
            size += len(values) + 1
            for value in values:
                kind = type(value)
                if kind is str:
                    characters += len(value)
                elif kind not in SCALARS:
                    below.append(value)
        if size > limits.work or characters > BYTES * limits.work:
            raise LimitError(
                f"This document has more values than Limits.work = {limits.work:,} allows.", pointer="",
                hint="Make it smaller, or raise Limits(work=...).",
            )  # fmt: skip
        if not below:
            return _plain_copy(document, limits) if needs_copy else document
        if needs_copy:
            return _plain_copy(document, limits)
        level = below
    raise _too_deep(limits)


def nests_deeper(document: Any, levels: int) -> bool:
    """Return whether a plain document has more than `levels` levels of lists and objects."""
    level = [document]
    for _ in range(levels + 1):
        below: list[Any] = []
        for container in level:
            kind = type(container)
            values = container.values() if kind is dict else container if kind is list else ()
            below += [value for value in values if type(value) is dict or type(value) is list]
        if not below:
            return False
        level = below
    return True


def _too_deep(limits: Limits) -> LimitError:
    """Return the error for a document that is nested too deeply."""
    return LimitError(
        f"This document has more than Limits.nesting = {limits.nesting:,} levels of lists and objects.", pointer="",
        hint="Use $ref to flatten it, or raise Limits(nesting=...).",
    )  # fmt: skip


def _plain_copy(document: Any, limits: Limits) -> Any:
    """Copy a document, iteratively, with lists for tuples and plain types for their subclasses."""
    outer: list[Any] = [None]
    todo: list[tuple[Any, Any, Any, str, int]] = [(document, outer, 0, "", 0)]
    size = 0
    while todo:
        value, holder, key, pointer, depth = todo.pop()
        size += 1 + (len(pointer) >> 6)
        if depth == limits.nesting and isinstance(value, (dict, list, tuple)):
            raise _too_deep(limits)
        if size > limits.work:
            raise LimitError(
                f"This document has more values than Limits.work = {limits.work:,} allows.", pointer="",
                hint="Make it smaller, or raise Limits(work=...).",
            )  # fmt: skip
        if isinstance(value, dict):
            made: Any = {}
            for name, item in value.items():
                if not isinstance(name, str):
                    raise SchemaError(f"A key of an object must be a string, not {kind_of(name)}.", pointer=pointer)
                plain_name = str.__str__(name)
                made[plain_name] = None
                todo.append((item, made, plain_name, f"{pointer}/{pointer_token(plain_name)}", depth + 1))
        elif isinstance(value, (list, tuple)):
            made = [None] * len(value)
            todo.extend((item, made, index, f"{pointer}/{index}", depth + 1) for index, item in enumerate(value))
        else:
            made = _plain_scalar(value, pointer)
        holder[key] = made
    return outer[0]


def _plain_scalar(value: Any, pointer: str) -> Any:
    """Return a scalar as a plain type. Raise SchemaError if it is not JSON."""
    if isinstance(value, Decimal) and not value.is_finite():
        raise SchemaError(f"{value} is not a JSON number.", pointer=pointer)
    if value is None or isinstance(value, (bool, Decimal)):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return value.exact if isinstance(value, ExactFloat) else float.__float__(value)
    hint = ""
    if isinstance(value, type):
        hint = 'A schema has names of JSON types, {"type": "string"}; a class that has the fields is given as type=.'
    raise SchemaError(f"A JSON value is expected here, not {kind_of(value)}.", pointer=pointer, hint=hint)


def pointer_token(name: str | int) -> str:
    """Return a reference token of a JSON pointer (RFC 6901)."""
    if isinstance(name, int):
        return str(name)
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def kind_of(value: Any) -> str:
    """Return the JSON type of a value, for messages."""
    if value is None:
        return "null"
    for types, name in (
        (bool, "a boolean"), (str, "a string"), ((int, float, Decimal), "a number"),
        ((list, tuple), "an array"), (dict, "an object"),
    ):  # fmt: skip
        if isinstance(value, types):  # type: ignore[arg-type]
            return name
    return f"a Python {shorten_text(type(value).__name__)}"


def echo_value(value: Any) -> str:
    """Return a value for a message: the repr of a scalar, abbreviated if it is long, and otherwise the JSON type."""
    if isinstance(value, str):
        return repr(shorten_text(value))
    if isinstance(value, int) and not isinstance(value, bool) and not -LONG < value < LONG:
        return "a number of many digits"
    if value is None or isinstance(value, (bool, int, float)):
        return shorten_text(repr(value))
    return shorten_text(str(value)) if isinstance(value, Decimal) else kind_of(value)


def write_json(document: Any) -> str:
    """Return a plain document as JSON text; Decimals keep their digits."""
    numbers: list[Decimal] = []

    def mark_number(value: Any) -> Any:
        numbers.append(value)
        return {MARK: None}

    text = json.dumps(document, default=mark_number)
    if not numbers:
        return text
    parts = text.split(MARKED)
    if len(parts) != len(numbers) + 1:
        raise SchemaError(f"This document contains the text {MARK!r}, which is reserved.", pointer="")
    return parts[0] + "".join(str(number) + part for number, part in zip(numbers, parts[1:]))


MARK = "\0decimal\0"
MARKED = json.dumps({MARK: None})
"""JSON text in the position of a Decimal, until its digits are inserted."""


# ---- JSON text --------------------------------------------------------------------------------------------------


def number_too_long(pointer: str | None) -> LimitError:
    """Return the error for a number with too many digits."""
    return LimitError(
        f"A number of more than {MOST_DIGITS:,} digits before or after its point (beyond 10^±{MOST_DIGITS}).",
        pointer=pointer,
        hint="Write a shorter number.",
    )


def parse_json(source: str, limits: Limits = Limits()) -> Any:
    """Parse a JSON document, preserving all digits of its numbers. Of two equal keys, the later one counts.

    Numbers with a fraction or exponent, and integers of more than MOST_DIGITS digits, are returned as Decimal. Raise
    SchemaError with line and column if the text is not JSON (NaN and Infinity are not), LimitError if it is nested
    deeper than `Limits.nesting`.
    """
    return _parse_json(source, limits, bound_levels(source, limits.nesting))


def parse_json_at(source: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at `start`, as `parse_json` does, and where it ends.

    Raise ValueError, or LimitError for a number that is too long, or a value that is nested too deeply.
    """
    try:
        return DECODER.raw_decode(source, start)
    except RecursionError:
        raise LimitError(
            "The JSON value is nested deeper than the interpreter's stack.", source=source, position=start, hint=FLATTEN
        ) from None


def parse_strictly(source: str, levels: int) -> Any:
    """Parse JSON text that a program has sent. Numbers are ints and floats, those that no float equals ExactFloat.

    Raise ValueError if it is not JSON (NaN and infinities are not), names a member twice, since readers may disagree on
    its meaning, or has more than `levels` levels of lists and objects.
    """
    if find_deeper(source, levels) >= 0:
        raise ValueError(f"it has more than {levels} levels of lists and objects")
    return STRICT_DECODER.decode(source)


def _parse_json(source: str, limits: Limits, levels: int) -> Any:
    """Parse a JSON document of at most `levels` levels of lists and objects."""
    if levels > limits.nesting:
        check_levels(source, limits)
    try:
        return DECODER.decode(source)
    except (RecursionError, ValueError, LimitError) as error:
        check_levels(source, limits)  # of what is wrong with a text, too many levels are reported first
        if isinstance(error, json.JSONDecodeError):
            raise SchemaError(f"Not JSON: {error.msg}.", source=source, position=error.pos) from None
        if isinstance(error, RecursionError):
            raise LimitError("The JSON text is nested deeper than the interpreter's stack.", hint=FLATTEN) from None
        if isinstance(error, LimitError):
            raise
        raise SchemaError(f"Not JSON: {error}.") from None


def _parse_usual_object(source: str) -> dict[str, Any] | None:
    """Return an object without white space around it, whose integers are short; None for any other text."""
    if source[:1] != "{":
        return None
    try:
        document, end = SCAN_ONCE(source, 0)
    except (StopIteration, RecursionError, ValueError, LimitError):  # `_parse_json` says what is wrong
        return None
    return document if end == len(source) else None


FLATTEN = "Use $ref to flatten it, or raise Limits(nesting=...)."
BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*\\?(?:"|\Z)|[\[\]{}]', re.S)
"""A bracket, or a string, even an unterminated one, so that the scan takes linear time."""


NO_BRACKET = bytes(byte for byte in range(256) if byte not in b"[]{}")


def may_be_deeper(source: str, levels: int) -> bool:
    """Return whether a JSON text may have more than `levels` levels of lists and objects; False is certain for JSON."""
    return bound_levels(source, levels) > levels


def bound_levels(source: str, most: int) -> int:
    """Return an upper bound of the levels of lists and objects of a JSON text, or `most` + 1 if it may have more.

    Strings are cut out, then pairs of brackets with nothing inside, as often as needed: one level or two each time.
    """
    count = source.count("[") + source.count("{")
    if count <= min(most, FEW_BRACKETS):
        return count
    if "\\" in source:
        source = source.replace("\\\\", "").replace('\\"', "")
    brackets = "".join(source.split('"')[::2]).encode(errors="replace").translate(None, NO_BRACKET)
    for pairs in range(most // 2):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not brackets:
            return min(2 * pairs + 2, count)
    return count if count <= most else most + 1


FEW_BRACKETS = 48
"""Brackets up to which their number is the bound."""


def find_deeper(source: str, levels: int, start: int = 0) -> int:
    """Return the position at which a JSON value exceeds `levels` levels of lists and objects, or -1.

    The value begins at `start`, is read up to its end, and need not be valid. Call this before recursive code.
    """
    if not start and source.count("[") + source.count("{") <= levels:
        return -1
    level = 0
    for match in BRACKET.finditer(source, start):
        char = source[match.start()]
        if char in "[{":
            level += 1
            if level > levels:
                return match.start()
        elif char != '"':
            level -= 1
            if level <= 0:
                return -1
    return -1


def check_levels(source: str, limits: Limits) -> None:
    """Raise LimitError if a JSON text has more than `Limits.nesting` levels of lists and objects.

    The text need not be valid.
    """
    position = find_deeper(source, limits.nesting)
    if position >= 0:
        raise LimitError(
            f"The JSON text has more than Limits.nesting = {limits.nesting:,} levels of lists and objects.",
            source=source, position=position, hint=FLATTEN,
        )  # fmt: skip


def _refuse_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which Python's parser accepts."""
    raise ValueError(f"{name} is not a JSON number")


def _parse_integer(digits: str) -> int | Decimal:
    """Return an integer, a long one as Decimal, which is parsed in linear time and has no limit of 4,300 digits."""
    return int(digits) if len(digits) <= MOST_DIGITS else Decimal(digits)


def _parse_fraction(digits: str) -> Decimal:
    """Return a number with a fraction or exponent. Raise LimitError if its exponent is too large for Decimal."""
    try:
        return Decimal(digits)
    except InvalidOperation:  # the exponent is too large
        if ZERO.match(digits):
            return Decimal(0)
        raise number_too_long(None) from None


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raise ValueError if a name is given twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the member {shorten_text(twice)!r} is given twice")
    return members


STRICT_DECODER = json.JSONDecoder(
    object_pairs_hook=_refuse_repeats, parse_float=parse_exact_float, parse_int=parse_exact_integer,
    parse_constant=_refuse_constant,
)  # fmt: skip
DECODER = json.JSONDecoder(parse_float=_parse_fraction, parse_int=_parse_integer, parse_constant=_refuse_constant)
SCAN_ONCE: Callable[[str, int], tuple[Any, int]] = json.scanner.make_scanner(  # type: ignore[attr-defined]
    json.JSONDecoder(parse_float=_parse_fraction, parse_constant=_refuse_constant)
)

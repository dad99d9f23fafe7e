"""Check JSON documents before anything recursive sees them: Python values, JSON text, and the documents of a registry.

A document may come from a stranger, and not only as text: a YAML file makes Python objects that hold each other many
times over. So levels and sizes are counted here, level by level, and everything behind this module may rely on plain
dicts, lists and scalars that are nested at most `Limits.nesting` deep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from .errors import LimitError, SchemaError, shorten_text
from .options import Limits

__all__ = [
    "LONG", "MOST_DIGITS", "References", "check_registry", "echo_value", "find_deeper", "kind_of", "load_document",
    "nests_deeper", "parse_json", "plain_document", "pointer_token", "number_too_long", "write_json",
]  # fmt: skip

MOST_DIGITS = 4096
"""Most digits before the point, and behind it, of a schema's number. Exact arithmetic on longer ones is quadratic."""
LONG = 10**MOST_DIGITS
ZERO = re.compile(r"-?0(?:\.0+)?[eE]")
SCALARS = frozenset((str, int, float, bool, type(None)))
BYTES = 64
"""Characters of a document for each unit of `Limits.work`."""


def load_document(schema: Any, limits: Limits = Limits()) -> Any:
    """Return a schema document as plain dicts and lists; JSON text is parsed.

    Raise SchemaError if it is neither an object nor a boolean, or holds what is no JSON; LimitError if it is nested
    too deeply or too large.
    """
    document = parse_json(schema, limits) if isinstance(schema, str) else plain_document(schema, limits)
    if not isinstance(document, (dict, bool)):
        raise SchemaError(f"A schema must be an object or a boolean, not {kind_of(document)}.", pointer="")
    return document


class References(dict[str, Any]):
    """A registry, with the URI that relative references of the main document are relative to.

    base_uri: "" if there is none; then a relative reference names a key of the registry as it stands.
    """

    def __init__(self, registry: Mapping[str, Any] | None = None, base_uri: str = "") -> None:
        if not isinstance(base_uri, str):
            raise TypeError(f"base_uri is a URI, as str, not {echo_value(base_uri)}")
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
    """Return a JSON value as it is, or a copy that holds plain dicts and lists where it holds tuples or subclasses.

    Raise SchemaError, with its pointer, for what is no JSON; LimitError for more than `Limits.nesting` levels (which
    a cyclic value has) or more values than `Limits.work`.
    """
    level, size, characters, strange = [document], 0, 0, False
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
                    strange = True
            elif kind is list:
                values = container
            else:  # the document itself, or what `strange` is about
                strange = strange or kind not in SCALARS
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
            return _plain_copy(document, limits) if strange else document
        if strange:
            return _plain_copy(document, limits)
        level = below
    raise _too_deep(limits)


def nests_deeper(document: Any, levels: int) -> bool:
    """Whether a plain document has more than so many levels of lists and objects."""
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
            todo.extend((item, made, place, f"{pointer}/{place}", depth + 1) for place, item in enumerate(value))
        else:
            made = _plain_scalar(value, pointer)
        holder[key] = made
    return outer[0]


def _plain_scalar(value: Any, pointer: str) -> Any:
    if isinstance(value, Decimal) and not value.is_finite():
        raise SchemaError(f"{value} is not a JSON number.", pointer=pointer)
    if value is None or isinstance(value, (bool, Decimal)):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    raise SchemaError(f"A JSON value is expected here, not {kind_of(value)}.", pointer=pointer)


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
    """Return a value for a message: a short one as Python writes it, of any other what it is."""
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

    def note(value: Any) -> Any:
        numbers.append(value)
        return {MARK: None}

    text = json.dumps(document, default=note)
    if not numbers:
        return text
    parts = text.split(MARKED)
    if len(parts) != len(numbers) + 1:
        raise SchemaError("This document holds a text that constrain uses itself.", pointer="")
    return parts[0] + "".join(str(number) + part for number, part in zip(numbers, parts[1:]))


MARK = "\0decimal\0"
MARKED = json.dumps({MARK: None})


# ---- JSON text --------------------------------------------------------------------------------------------------


def number_too_long(pointer: str | None) -> LimitError:
    """Return the error for a number with too many digits."""
    return LimitError(
        f"A number of more than {MOST_DIGITS:,} digits before or behind its point (beyond 10^±{MOST_DIGITS}).",
        pointer=pointer,
        hint="Write a shorter number.",
    )


def parse_json(source: str, limits: Limits = Limits()) -> Any:
    """Parse a JSON document, keeping all digits of its numbers. Of two equal keys the later one counts.

    Integers of many digits come as Decimal, too. Raise SchemaError with line and column where the text is not JSON
    (NaN and Infinity are not), LimitError if it is nested deeper than `Limits.nesting`.
    """
    check_levels(source, limits)
    try:
        return DECODER.decode(source)
    except json.JSONDecodeError as error:
        raise SchemaError(f"Not JSON: {error.msg}.", source=source, position=error.pos) from None
    except RecursionError:
        raise LimitError("The JSON text is nested deeper than the interpreter's stack.", hint=FLATTEN) from None
    except ValueError as error:
        raise SchemaError(f"Not JSON: {error}.") from None


FLATTEN = "Use $ref to flatten it, or raise Limits(nesting=...)."
BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*\\?(?:"|\Z)|[\[\]{}]', re.S)
"""A string, also one that does not end, so that none is looked at twice; or a bracket."""


def find_deeper(source: str, levels: int, start: int = 0) -> int:
    """Return where a JSON value has more than so many levels of lists and objects, or -1.

    start: where the value begins. It is read up to its end, and need not parse. Use this before anything that recurses.
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
    """Raise LimitError if a JSON text has more levels of lists and objects than `Limits.nesting`; it need not parse."""
    position = find_deeper(source, limits.nesting)
    if position >= 0:
        raise LimitError(
            f"The JSON text has more than Limits.nesting = {limits.nesting:,} levels of lists and objects.",
            source=source, position=position, hint=FLATTEN,
        )  # fmt: skip


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _whole(digits: str) -> int | Decimal:
    """An integer; a long one as Decimal, which is read in linear time and without CPython's limit of 4,300 digits."""
    return int(digits) if len(digits) <= MOST_DIGITS else Decimal(digits)


def _fraction(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:  # An exponent that Decimal does not hold.
        if ZERO.match(digits):
            return Decimal(0)
        raise number_too_long(None) from None


DECODER = json.JSONDecoder(parse_float=_fraction, parse_int=_whole, parse_constant=_refuse_constant)

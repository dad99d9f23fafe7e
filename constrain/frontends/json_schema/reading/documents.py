"""Check JSON documents before anything recursive sees them: Python values, JSON text, and the documents of a registry.

A document may come from a stranger, and not only as text: a YAML file makes Python objects that hold each other many
times over. So levels and sizes are counted here, level by level, and everything behind this module may rely on plain
dicts, lists and scalars that are nested at most `Limits.nesting` deep.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ....errors import LimitError, SchemaError, shorten
from ....style import Limits
from .constants import kind_of, parse_json, token

__all__ = ["check_registry", "load", "plain_document", "write_json"]

SCALARS = frozenset((str, int, float, bool, type(None)))
BYTES = 64
"""Characters of a document for each unit of `Limits.work`."""


def load(schema: Any, limits: Limits = Limits()) -> Any:
    """Return a schema document as plain dicts and lists; JSON text is parsed.

    Raise SchemaError if it is neither an object nor a boolean, or holds what is no JSON; LimitError if it is nested
    too deeply or too large.
    """
    document = parse_json(schema, limits) if isinstance(schema, str) else plain_document(schema, limits)
    if not isinstance(document, (dict, bool)):
        raise SchemaError(f"A schema must be an object or a boolean, not {kind_of(document)}.", pointer="")
    return document


def check_registry(registry: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the registry, {} for None. Raise TypeError if it is not a mapping from URIs (str)."""
    if registry is None:
        return {}
    if not isinstance(registry, Mapping):
        raise TypeError(f"registry is a mapping from URIs to schemas, not {kind_of(registry)}")
    for uri in registry:
        if not isinstance(uri, str):
            raise TypeError(f"registry has the key {shorten(repr(uri))}: its keys are URIs, as str")
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
                todo.append((item, made, plain_name, f"{pointer}/{token(plain_name)}", depth + 1))
        elif isinstance(value, (list, tuple)):
            made = [None] * len(value)
            todo.extend((item, made, place, f"{pointer}/{place}", depth + 1) for place, item in enumerate(value))
        else:
            made = _plain_scalar(value, pointer)
        holder[key] = made
    return outer[0]


def _plain_scalar(value: Any, pointer: str) -> Any:
    if value is None or isinstance(value, (bool, Decimal)):
        return value
    for kind, convert in ((str, str.__str__), (int, int.__int__), (float, float.__float__)):
        if isinstance(value, kind):
            return convert(value)  # type: ignore[operator]
    raise SchemaError(f"A JSON value is expected here, not {kind_of(value)}.", pointer=pointer)


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

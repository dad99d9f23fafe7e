"""A tight JSON Schema from example documents.

    constrain.infer([{"at": "2026-11-21", "n": 1}, {"at": "2026-11-22", "n": 2, "who": null}])

genson finds the structure: types, properties, items, and which keys are always there. A second pass walks its schema
together with the values that stand at each place, and tightens it: a `format` that every text has, an `enum` where few
texts repeat, closed objects, bounds if they are asked for. Whatever is found takes every example, and that is checked
with the engine before it is returned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from ..base.errors import (
    LimitError,
    SourceError,
    UnsupportedError,
    check_choice,
    check_type,
    describe_value,
    shorten_text,
)
from ..base.options import Limits, Style

__all__ = ["infer"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

FORMATS = ("uuid", "date-time", "date", "time", "ipv4", "ipv6", "email", "uri")
"""Formats that are looked for; the first that fits counts. What nearly every word has (hostname, regex) is not."""

MOST_VALUES = 12
"""Most texts of an enum that is guessed."""
MOST_NESTING = Limits().nesting
REPEATS = 3
"""How often, on average, its texts must have been seen: otherwise they are more likely free text."""


class Choices(NamedTuple):
    """How tight: as the arguments of `infer`."""

    bounds: Literal["free", "observed"]
    keys: Literal["closed", "open"]
    formats: Literal["detect", "ignore"]


def infer(
    documents: Iterable[Any],
    *,
    bounds: Literal["free", "observed"] = "free",
    keys: Literal["closed", "open"] = "closed",
    formats: Literal["detect", "ignore"] = "detect",
) -> dict[str, Any]:
    """A JSON Schema (2020-12) that takes all of the documents, JSON values as `json.loads` gives them.

    bounds: whether numbers, lengths of texts and of arrays are bounded by what was seen. keys: whether objects may have
    keys that were never seen. formats: whether a `format` is written where every text has it. Needs the package genson.

    SourceError: no document at all, or one that is no JSON value (NaN, half of a surrogate pair).
    """
    try:
        from genson import SchemaBuilder, SchemaGenerationError
    except ImportError:
        raise UnsupportedError(
            "A schema is inferred with the package genson, which is not installed.",
            hint="pip install 'constrain-lm[infer]'",
        ) from None
    for name, given, known in (
        ("bounds", bounds, ("free", "observed")),
        ("keys", keys, ("closed", "open")),
        ("formats", formats, ("detect", "ignore")),
    ):
        check_choice(name, given, known)
    if isinstance(documents, (str, bytes, dict)):
        raise TypeError(f"documents is a {type(documents).__name__}: give a list of documents, such as [document]")
    check_type("documents", documents, Iterable, "give a list of JSON values")
    examples = list(documents)
    if not examples:
        raise SourceError("There is no example to infer from.", hint="Give at least one document.")
    for number, example in enumerate(examples, 1):
        check_value(example, number)
    texts = [spelled(example, number) for number, example in enumerate(examples, 1)]
    builder = SchemaBuilder(schema_uri=DIALECT)
    try:
        for example in examples:
            builder.add_object(example)
    except SchemaGenerationError as error:
        raise SourceError(f"An example holds a value that is not JSON: {shorten_text(error)}.") from None
    found: dict[str, Any] = builder.to_schema()
    schema = {"$schema": DIALECT, **tightened(found, examples, Choices(bounds, keys, formats))}
    check(schema, texts)
    return schema


def check_value(example: Any, number: int) -> None:
    """SourceError unless an example is made of JSON values, to MOST_NESTING levels at most."""
    level = [example]
    for _ in range(MOST_NESTING + 1):
        if not level:
            return
        odd = next((one for one in level if not isinstance(one, (dict, list, str, int, float, type(None)))), None)
        if odd is not None:
            raise SourceError(f"Example {number} is no JSON value: it holds {describe_value(odd)}.")
        names = [key for one in level if isinstance(one, dict) for key in one]
        if not all(isinstance(key, str) for key in names):
            raise SourceError(f"Example {number} is no JSON value: a key in it is not a text.")
        level = [
            item for one in level if isinstance(one, (dict, list))
            for item in (one.values() if isinstance(one, dict) else one)
        ]  # fmt: skip
    raise LimitError(
        f"Example {number} is nested deeper than {MOST_NESTING} levels (Limits.nesting).", hint="Give flatter examples."
    )


def spelled(example: Any, number: int) -> bytes:
    """The JSON text of an example; SourceError if it has none."""
    try:
        return json.dumps(example, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise SourceError(f"Example {number} is no JSON value: {error}.") from None


def check(schema: dict[str, Any], texts: list[bytes]) -> None:
    """SourceError if an example is not taken, which only what the engine itself refuses (a huge number) can cause."""
    from ..compilation.constraint_compiler import compile
    from ..vocabulary.vocabulary import Vocabulary
    from .explanations import first_refusal, joined

    constraint = compile(Vocabulary.bytes(), schema=schema, style=Style.any())
    for number, text in enumerate(texts, 1):
        refusal = first_refusal(constraint, text)
        if refusal is not None:
            raise SourceError(
                f"Example {number} is not taken by the schema found: {refusal.found}, where {joined(refusal.expected)} "
                "is expected.",
                source=text.decode(),
                position=len(text[: refusal.offset].decode(errors="ignore")),
            )


def is_number(value: Any) -> bool:
    """Whether it is a JSON number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


# ---- the second pass -------------------------------------------------------------------------------------------


def tightened(node: dict[str, Any], values: list[Any], choices: Choices) -> dict[str, Any]:
    """The schema of one place, tightened by the values that were seen there."""
    if "anyOf" in node:
        return merged([tightened(branch, of_types(branch, values), choices) for branch in node["anyOf"]])
    types = names(node)
    out: dict[str, Any] = {key: value for key, value in node.items() if key != "$schema"}
    if len(types) > 1:  # null comes last, as people write it
        out["type"] = sorted(types, key=lambda name: (name == "null", name))
    if "string" in types:
        texts = [value for value in values if isinstance(value, str)]
        words = repeated(texts) if types <= {"string", "null"} else None
        forms = FORMATS if choices.formats == "detect" else ()
        form = next((name for name in forms if all(map(accepts(name), texts))), None)
        if form is not None:
            out["format"] = form
        elif words is not None:
            return {"enum": [*words, None]} if "null" in types else {"type": "string", "enum": words}
        elif choices.bounds == "observed":
            out |= between("minLength", "maxLength", map(len, texts))
    if types & {"integer", "number"} and choices.bounds == "observed":
        out |= between("minimum", "maximum", filter(is_number, values))
    if "object" in types:
        out |= of_objects(node, [value for value in values if isinstance(value, dict)], choices)
    if "array" in types:
        arrays = [value for value in values if isinstance(value, list)]
        if "items" in node:
            out["items"] = tightened(node["items"], [item for array in arrays for item in array], choices)
        if choices.bounds == "observed":
            out |= between("minItems", "maxItems", map(len, arrays))
    return out


def of_objects(node: dict[str, Any], objects: list[dict[str, Any]], choices: Choices) -> dict[str, Any]:
    """The keywords of objects: properties in the order in which they were first seen, required in the same."""
    found = node.get("properties", {})
    order = dict.fromkeys(key for value in objects for key in value)
    out: dict[str, Any] = {}
    if found:
        out["properties"] = {
            key: tightened(found[key], [value[key] for value in objects if key in value], choices) for key in order
        }
    always = set(node.get("required", ()))
    if always:
        out["required"] = [key for key in order if key in always]
    if choices.keys == "closed":
        out["additionalProperties"] = False
    return out


def merged(branches: list[dict[str, Any]]) -> dict[str, Any]:
    """Branches as one: null becomes a type beside the other, if there is one other and it says no more than a type."""
    null = {"type": "null"}
    others = [branch for branch in branches if branch != null]
    if len(others) == 1 and len(branches) == 2 and isinstance(others[0].get("type"), str) and "enum" not in others[0]:
        return {**others[0], "type": [others[0]["type"], "null"]}
    return {"anyOf": others + [null] * (len(branches) - len(others))}


def names(node: dict[str, Any]) -> frozenset[str]:
    """The types of a node that genson made."""
    given = node.get("type", ())
    return frozenset((given,) if isinstance(given, str) else given)


def of_types(branch: dict[str, Any], values: list[Any]) -> list[Any]:
    """Those of the values that a branch is about."""
    return [value for value in values if any(TYPES[name](value) for name in names(branch))]


def accepts(name: str) -> Callable[[str], bool]:
    """Whether a text has a format, as the engine asserts it."""
    from ..frontends.json_schema.strings.formats import format_dfa

    dfa = format_dfa(name)
    assert dfa is not None
    return dfa.accepts


def repeated(texts: list[str]) -> list[str] | None:
    """The different texts in the order in which they were seen, if they are few and repeat."""
    words = list(dict.fromkeys(texts))
    return words if len(words) <= MOST_VALUES and len(texts) >= REPEATS * len(words) else None


def between(low: str, high: str, sizes: Iterable[Any]) -> dict[str, Any]:
    """Both bounds; none if nothing was seen."""
    seen = list(sizes)
    return {low: min(seen), high: max(seen)} if seen else {}

"""Infer a tight JSON Schema from example documents.

    constrain.infer([{"at": "2026-11-21", "n": 1}, {"at": "2026-11-22", "n": 2, "who": null}])

genson finds the structure: types, properties, items and required keys. A second pass walks its schema together with the
values at each location, and tightens it: a `format` that every string has, an `enum` where few strings repeat, closed
objects, and bounds on request. Before the schema is returned, the engine checks that it accepts every example.
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
from ..compilation.constraint_compiler import compile
from ..frontends.json_schema.strings.formats import format_dfa
from ..vocabulary.vocabulary import Vocabulary
from .explanations import first_refusal, join_words

__all__ = ["infer"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

FORMATS = ("uuid", "date-time", "date", "time", "ipv4", "ipv6", "email", "uri")
"""Formats that are detected; the first that fits is used. Formats that nearly every word has (hostname, regex) are left
out."""

MOST_VALUES = 12
"""Maximum number of strings of an inferred enum."""
MOST_NESTING = Limits().nesting
REPEATS = 3
"""Minimum average number of occurrences of the strings of an enum: with fewer, they are more likely free text."""


class Choices(NamedTuple):
    """How tight the schema is: the arguments of `infer`."""

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
    """Return a JSON Schema (2020-12) that accepts all of the documents.

    Parameters
    ----------
    documents : iterable
        JSON values, as `json.loads` returns them.
    bounds : {"free", "observed"}
        Whether numbers, string lengths and array lengths are bounded by the observed values.
    keys : {"closed", "open"}
        Whether objects may have keys that were not observed ("open").
    formats : {"detect", "ignore"}
        Whether a `format` is added where every string has it.

    Returns
    -------
    dict
        The schema.

    Raises
    ------
    SourceError
        If there are no documents, or one is not a JSON value (NaN, an unpaired surrogate).
    LimitError
        If a document is nested too deeply.

    Notes
    -----
    Requires the package genson.
    """
    try:
        from genson import SchemaBuilder, SchemaGenerationError
    except ImportError:
        raise UnsupportedError(
            "A schema is inferred with the package genson, which is not installed.",
            hint='pip install "constrain-lm[infer]"',
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
    texts = [spell_example(example, number) for number, example in enumerate(examples, 1)]
    builder = SchemaBuilder(schema_uri=DIALECT)
    try:
        for example in examples:
            builder.add_object(example)
    except SchemaGenerationError as error:
        raise SourceError(f"An example holds a value that is not JSON: {shorten_text(error)}.") from None
    inferred: dict[str, Any] = builder.to_schema()
    schema = {"$schema": DIALECT, **tighten_node(inferred, examples, Choices(bounds, keys, formats))}
    check_examples(schema, texts)
    return schema


def check_value(example: Any, number: int) -> None:
    """Check that an example consists of JSON values.

    Raise SourceError if it does not, LimitError if it is nested deeper than MOST_NESTING.
    """
    level = [example]
    for _ in range(MOST_NESTING + 1):
        if not level:
            return
        odd = next((one for one in level if not isinstance(one, (dict, list, str, int, float, type(None)))), None)
        if odd is not None:
            raise SourceError(f"Example {number} is not a JSON value: it holds {describe_value(odd)}.")
        names = [key for one in level if isinstance(one, dict) for key in one]
        if not all(isinstance(key, str) for key in names):
            raise SourceError(f"Example {number} is not a JSON value: one of its keys is not a str.")
        level = [
            item for one in level if isinstance(one, (dict, list))
            for item in (one.values() if isinstance(one, dict) else one)
        ]  # fmt: skip
    raise LimitError(
        f"Example {number} is nested deeper than {MOST_NESTING} levels (Limits.nesting).", hint="Give flatter examples."
    )


def spell_example(example: Any, number: int) -> bytes:
    """Return the JSON text of an example. Raise SourceError if it cannot be serialised."""
    try:
        return json.dumps(example, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise SourceError(f"Example {number} is not a JSON value: {error}.") from None


def check_examples(schema: dict[str, Any], texts: list[bytes]) -> None:
    """Check that the engine accepts the examples.

    Raise SourceError otherwise; the only cause is a value that the engine itself rejects, such as a huge number.
    """

    constraint = compile(Vocabulary.bytes(), schema=schema, style=Style.any())
    for number, text in enumerate(texts, 1):
        refusal = first_refusal(constraint, text)
        if refusal is not None:
            raise SourceError(
                f"Example {number} is not taken by the schema found: {refusal.found}, "
                f"where {join_words(refusal.expected)} "
                "is expected.",
                source=text.decode(),
                position=len(text[: refusal.offset].decode(errors="ignore")),
            )


def is_number(value: Any) -> bool:
    """Return whether a value is a JSON number."""
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


def tighten_node(node: dict[str, Any], values: list[Any], choices: Choices) -> dict[str, Any]:
    """Return the schema of one location, tightened by the values observed there."""
    if "anyOf" in node:
        return merge_branches([tighten_node(branch, of_types(branch, values), choices) for branch in node["anyOf"]])
    types = type_names(node)
    out: dict[str, Any] = {key: value for key, value in node.items() if key != "$schema"}
    if len(types) > 1:  # null comes last, as is usual in hand-written schemas
        out["type"] = sorted(types, key=lambda name: (name == "null", name))
    if "string" in types:
        texts = [value for value in values if isinstance(value, str)]
        words = repeated_texts(texts) if types <= {"string", "null"} else None
        forms = FORMATS if choices.formats == "detect" else ()
        form = next((name for name in forms if all(map(accepts_format(name), texts))), None)
        if form is not None:
            out["format"] = form
        elif words is not None:
            return {"enum": [*words, None]} if "null" in types else {"type": "string", "enum": words}
        elif choices.bounds == "observed":
            out |= size_bounds("minLength", "maxLength", map(len, texts))
    if types & {"integer", "number"} and choices.bounds == "observed":
        out |= size_bounds("minimum", "maximum", filter(is_number, values))
    if "object" in types:
        out |= of_objects(node, [value for value in values if isinstance(value, dict)], choices)
    if "array" in types:
        arrays = [value for value in values if isinstance(value, list)]
        if "items" in node:
            out["items"] = tighten_node(node["items"], [item for array in arrays for item in array], choices)
        if choices.bounds == "observed":
            out |= size_bounds("minItems", "maxItems", map(len, arrays))
    return out


def of_objects(node: dict[str, Any], objects: list[dict[str, Any]], choices: Choices) -> dict[str, Any]:
    """Return the keywords of objects: properties and required keys in the order in which they were first observed."""
    properties = node.get("properties", {})
    order = dict.fromkeys(key for value in objects for key in value)
    out: dict[str, Any] = {}
    if properties:
        out["properties"] = {
            key: tighten_node(properties[key], [value[key] for value in objects if key in value], choices)
            for key in order
        }
    always = set(node.get("required", ()))
    if always:
        out["required"] = [key for key in order if key in always]
    if choices.keys == "closed":
        out["additionalProperties"] = False
    return out


def merge_branches(branches: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the branches of an anyOf into one schema where possible.

    null becomes a second type if there is one other branch, with no keyword but its type.
    """
    null = {"type": "null"}
    others = [branch for branch in branches if branch != null]
    if len(others) == 1 and len(branches) == 2 and isinstance(others[0].get("type"), str) and "enum" not in others[0]:
        return {**others[0], "type": [others[0]["type"], "null"]}
    return {"anyOf": others + [null] * (len(branches) - len(others))}


def type_names(node: dict[str, Any]) -> frozenset[str]:
    """Return the types of a node that genson made."""
    given = node.get("type", ())
    return frozenset((given,) if isinstance(given, str) else given)


def of_types(branch: dict[str, Any], values: list[Any]) -> list[Any]:
    """Return those of the values whose type a branch allows."""
    return [value for value in values if any(TYPES[name](value) for name in type_names(branch))]


def accepts_format(name: str) -> Callable[[str], bool]:
    """Return a predicate that tells whether a string has a format, as the engine asserts it."""

    dfa = format_dfa(name)
    assert dfa is not None
    return dfa.accepts


def repeated_texts(texts: list[str]) -> list[str] | None:
    """Return the distinct strings in the order of first occurrence, None unless they are few and repeat."""
    words = list(dict.fromkeys(texts))
    return words if len(words) <= MOST_VALUES and len(texts) >= REPEATS * len(words) else None


def size_bounds(low: str, high: str, sizes: Iterable[Any]) -> dict[str, Any]:
    """Return both bounds; none if no values were observed."""
    seen = list(sizes)
    return {low: min(seen), high: max(seen)} if seen else {}

"""Warm-up: one-time work of a process before its first constraint, so that no request waits for it.

The first constraint of a process is slow for reasons unrelated to it: kernels are loaded from disk, the interpreter
executes each function for the first time, the automata of formats and the rows of their states are made, and a forked
process copies the memory pages that it writes to. So a server compiles a few small schemas that cover the common
keywords and formats, and computes the masks along an instance of each, before it forks or serves. This does not change
any result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..base.options import Limits, Style
from .constraint_compiler import check_options, compile, compile_grammar, to_grammar

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["warm_up"]

DIALECTS = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2020-12/schema",
)
TEXT: dict[str, Any] = {"type": "string", "description": "any"}
FORMATS = {
    "date-time": "2024-05-06T07:08:09.5Z",
    "date": "2024-05-06",
    "time": "07:08:09+01:00",
    "email": "a.b@example.org",
    "uri": "https://example.org/a/b?c=d#e",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "hostname": "www.example.org",
    "ipv4": "127.0.0.1",
    "ipv6": "2001:db8::1",
    "uri-reference": "/a/b?c=d#e",
    "iri": "https://example.org/a",
    "json-pointer": "/a/b~1c/0",
    "duration": "P1DT2H",
}
"""The formats that schemas use most, and those whose automata take longest to make, with a text of each."""
PIECES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": (
        {
            "text": TEXT,
            "count": {"type": "integer"},
            "number": {"type": "number"},
            "flag": {"type": "boolean"},
            "none": {"type": "null"},
        },
        {"text": "Ab c", "count": -120, "number": 1.25e-7, "flag": True, "none": None},
    ),
    "texts": (
        {
            "short": {"type": "string", "minLength": 1, "maxLength": 9},
            "word": {"type": "string", "pattern": "^[a-z]+(-[0-9]{2})?$"},
        },
        {"short": "a", "word": "ab-01"},
    ),
    "listed": (
        {
            "kind": {"enum": ["a", "b", 1, None]},
            "only": {"enum": ["x"]},
            "state": {"type": "string", "enum": ["on", "off"]},
        },
        {"kind": 1, "only": "x", "state": "on"},
    ),
    "numbers": (
        {
            "count": {"type": "integer", "minimum": 1},
            "index": {"type": "integer", "minimum": 0},
            "part": {"type": "number", "minimum": 0, "maximum": 1},
            "step": {"type": "integer", "multipleOf": 5},
            "some": {"type": "number", "minimum": 0},
        },
        {"count": 12, "index": 0, "part": 0.5, "step": 10, "some": 1.5},
    ),
    "lists": (
        {
            "tags": {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3, "uniqueItems": True},
            "rows": {"type": "array", "items": {"type": "object", "properties": {"x": TEXT}, "required": ["x"]}},
        },
        {"tags": ["a"], "rows": [{"x": "b"}]},
    ),
    "choices": (
        {
            "or": {"anyOf": [TEXT, {"type": "null"}]},
            "one": {"oneOf": [{"type": "integer"}, {"type": "array"}]},
            "all": {"allOf": [{"$ref": "#/definitions/part"}, {"required": ["a"]}]},
            "not": {"not": {"type": "null"}},
        },
        {"or": "a", "one": 1, "all": {"a": "b"}, "not": [1.5, {"c": False}]},
    ),
    "formats": ({name: {"type": "string", "format": name} for name in FORMATS}, dict(FORMATS)),
    "maps": (
        {
            "by": {"type": "object", "patternProperties": {"^x-": TEXT}, "additionalProperties": False},
            "any": {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 1},
        },
        {"by": {"x-a": "b"}, "any": {"c": 1}},
    ),
    "linked": ({"part": {"$ref": "#/definitions/part"}, "self": {"$ref": "#"}}, {"part": {"a": "b"}}),
}
"""Properties of the schemas, grouped by the features that they use, and an instance of each."""
TABLES: tuple[dict[str, Any], ...] = (
    {"$ref": "http://json-schema.org/draft-07/schema#"},  # modules and files of the meta-schemas
    {"type": "string", "pattern": r"\p{L}"},  # tables of Unicode
    {"type": "string", "notes": ""},  # the index of misspelt keywords, for a name that resembles some
)
"""Schemas whose first use in a process takes 3 to 50 ms and more, since they need modules or tables of their own."""
OTHER_SOURCES: tuple[dict[str, Any], ...] = (
    {"choices": ["a", "b"]},
    {"regex": r"\w+(-\d{2})?\s*"},
    {"grammar": 'root ::= "a" [0-9]+'},
    {"grammar": 'start: "a" WORD\n%import common.WORD'},
)
"""Sources that are no schemas, one for each front end."""


def warm_up(vocabulary: Vocabulary) -> None:
    """Compile small sources and compute their first masks, so that the first request of a process is fast.

    They are schemas of the common styles and dialects, a pattern, and small grammars. Call this once per process, from
    any thread. Kernels that have not been compiled yet are compiled first.

    A server should call `gc.collect()` and `gc.freeze()` after it, as `constrain serve` does: Python's collector then
    no longer searches the modules, tables and models of the process, which stops a request for 70 to 110 ms now and
    then. This function does not, since it concerns all objects of the process.

    Parameters
    ----------
    vocabulary : Vocabulary
        The vocabulary that requests will use.

    Raises
    ------
    TypeError
        If `vocabulary` is not a Vocabulary.
    """
    check_options(vocabulary, Style(), None, Limits())
    for style in (Style(), Style.any()):
        for dialect in DIALECTS:
            for properties, instance in PIECES.values():
                schema = make_schema(properties, dialect)
                grammar = to_grammar(schema=json.dumps(schema), style=style)
                matcher = compile_grammar(grammar, vocabulary).matcher()  # bypasses the disk cache
                text = json.dumps(instance).encode()
                for byte in text if dialect == DIALECTS[-1] else text[: text.index(b":")]:
                    matcher.mask()
                    matcher.advance_bytes(bytes([byte]))
    for document in (schema, *TABLES):
        compile(vocabulary, schema=json.dumps(document)).matcher().mask()
    for source in OTHER_SOURCES:
        compile(vocabulary, **source).matcher().mask()


def make_schema(properties: dict[str, Any], dialect: str) -> dict[str, Any]:
    """Return an object schema whose first property is required."""
    return {
        "$schema": dialect, "title": "warm-up", "type": "object", "properties": properties,
        "required": [next(iter(properties))], "additionalProperties": False,
        "definitions": {"part": {"type": "object", "properties": {"a": TEXT}}},
    }  # fmt: skip

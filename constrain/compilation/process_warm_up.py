"""Warm-up: what a process does once before its first constraint, so that no request waits for it.

The first constraint of a process is slow for reasons that have nothing to do with it: kernels are loaded from disk, the
interpreter meets each function and each type for the first time, and a process that was forked copies the pages on
which they stand. So a server takes a few small schemas, of all usual keywords, to their first masks before it forks or
serves. It is a matter of some 50 ms behind the loading of kernels, and changes no answer.
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
PIECES: dict[str, dict[str, Any]] = {
    "plain": {
        "text": TEXT,
        "count": {"type": "integer"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "none": {"type": "null"},
    },
    "texts": {
        "short": {"type": "string", "minLength": 1, "maxLength": 9},
        "word": {"type": "string", "pattern": "^[a-z]+(-[0-9]{2})?$"},
    },
    "listed": {
        "kind": {"enum": ["a", "b", 1, None]},
        "only": {"enum": ["x"]},
        "state": {"type": "string", "enum": ["on", "off"]},
    },
    "numbers": {
        "count": {"type": "integer", "minimum": 1},
        "part": {"type": "number", "minimum": 0, "maximum": 1},
        "step": {"type": "integer", "multipleOf": 5},
        "some": {"type": "number", "minimum": 0},
    },
    "lists": {
        "tags": {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3, "uniqueItems": True},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"x": TEXT}, "required": ["x"]}},
    },
    "choices": {
        "or": {"anyOf": [TEXT, {"type": "null"}]},
        "one": {"oneOf": [{"type": "integer"}, {"type": "array"}]},
        "all": {"allOf": [{"$ref": "#/definitions/part"}, {"required": ["a"]}]},
        "not": {"not": {"type": "null"}},
    },
    "formats": {"day": {"type": "string", "format": "date"}, "where": {"type": "string", "format": "uri"}},
    "maps": {
        "by": {"type": "object", "patternProperties": {"^x-": TEXT}, "additionalProperties": False},
        "any": {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 1},
    },
    "linked": {"part": {"$ref": "#/definitions/part"}, "self": {"$ref": "#"}},
}
"""Properties by what they use."""


def warm_up(vocabulary: Vocabulary) -> None:
    """Takes small schemas to their first masks for a vocabulary, in the usual styles and dialects.

    Once in a process, from any thread; the kernels are compiled first where they are not yet.
    """
    check_options(vocabulary, Style(), None, Limits())
    for style in (Style(), Style.any()):
        for dialect in DIALECTS:
            for properties in PIECES.values():
                schema = make_schema(properties, dialect)
                grammar = to_grammar(schema=json.dumps(schema), style=style)
                matcher = compile_grammar(grammar, vocabulary).matcher()  # Past the store, which has no front end.
                matcher.mask()
                matcher.advance_bytes(b'{"' + schema["required"][0].encode() + b'"')
                matcher.mask()
    compile(vocabulary, schema=json.dumps(schema)).matcher().mask()


def make_schema(properties: dict[str, Any], dialect: str) -> dict[str, Any]:
    """A schema of which the first property must be there."""
    return {
        "$schema": dialect, "title": "warm-up", "type": "object", "properties": properties,
        "required": [next(iter(properties))], "additionalProperties": False,
        "definitions": {"part": {"type": "object", "properties": {"a": TEXT}}},
    }  # fmt: skip

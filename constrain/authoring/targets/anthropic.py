"""Anthropic, structured outputs (`output_config.format`) and strict tool use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .subschemas import Document, LocatedSubschema
from .target_tables import Limit, Target, TargetRow, make_rows

__all__ = ["ANTHROPIC"]

FORMATS = frozenset("date-time time date duration email hostname uri ipv4 ipv6 uuid".split())
BEYOND_REGEX = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<|\\[bB]")
"""Lookaround, back references and word boundaries."""
LARGE = 100
"""Repetition count from which a quantifier is regarded as large; the documentation says 'large' and states no
number."""


def is_complex(value: Any) -> bool:
    """Return whether a value is an array or an object."""
    return isinstance(value, (list, dict))


def large_quantifier(subschema: LocatedSubschema) -> bool:
    """Return whether the pattern has a quantifier with a large count."""
    return any(int(number) >= LARGE for number in re.findall(r"\{\d*,?(\d+)\}", str(subschema.get("pattern"))))


def is_external(subschema: LocatedSubschema) -> bool:
    """Return whether the reference leads out of the document."""
    return not str(subschema.get("$ref")).startswith("#")


def optional_count(document: Document) -> Iterator[tuple[str, int]]:
    """Yield (pointer, number of optional properties) of each object."""
    for subschema in document.subschemas:
        properties = subschema.get("properties")
        if isinstance(properties, dict):
            yield f"{subschema.pointer}/properties", len(set(properties) - set(subschema.get("required", ())))


def union_count(document: Document) -> Iterator[tuple[str, int]]:
    """Yield (pointer, 1) of each subschema with anyOf or several types."""
    for subschema in document.subschemas:
        if subschema.has("anyOf") or isinstance(subschema.get("type"), list):
            yield f"{subschema.pointer}/{'anyOf' if subschema.has('anyOf') else 'type'}", 1


NOT_TAKEN = "Documented as not supported: the API answers 400 (the SDKs move it into `description` instead)."
CHECK_LATER = "Leave it out, describe it in `description`, and validate the answer with constrain."

ANTHROPIC = Target(
    name="anthropic",
    title="Anthropic structured outputs",
    read="2026-11-21",
    sources=(
        "platform.claude.com, guide 'Structured outputs', sections 'JSON Schema limitations', 'Pattern support' and "
        "'Schema complexity limits' (stored copies of 2026)",
        "error messages of the API in public issues (minItems, maxItems), 2026",
    ),
    table=(
        TargetRow("additionalProperties", "refused", "additionalProperties has to be false.",
            "Write `\"additionalProperties\": false`; express a map as an array of objects with key and value.",
            when=lambda schema: schema.get("additionalProperties") is not False),
        TargetRow("additionalProperties", "refused", "Objects must be closed: additionalProperties has to be false.",
            "Write `\"additionalProperties\": false`.", when=lambda schema: schema.is_object, missing=True),
        TargetRow("enum", "refused", "Enum values may be strings, numbers, booleans and null, not arrays or objects.",
            "Write anyOf with one closed object each.",
            when=lambda schema: any(map(is_complex, schema.get("enum", ())))),
        TargetRow("enum", "changed", "The capitalisation of string values is not guaranteed.",
            "Compare case-insensitively.",
            when=lambda schema: any(isinstance(value, str) and value.lower() != value.upper()
                                   for value in schema.get("enum", ()))),
        TargetRow("const", "changed", "The capitalisation of string values is not guaranteed.",
            "Compare case-insensitively.",
            when=lambda schema: isinstance(schema.get("const"), str)),
        TargetRow("$ref", "refused", "Recursive schemas are not supported.", "Unroll it to the depth that you need.",
            when=lambda schema: schema.is_recursive),
        TargetRow("$ref", "refused", "A reference must stay in the document.", "Copy the schema into $defs.",
                  when=is_external),
        TargetRow("allOf", "refused", "allOf with a $ref in it is not supported.", "Copy the definition in.",
            when=lambda schema: any("$ref" in one for one in schema.get("allOf") if isinstance(one, dict))),
        TargetRow("format", "refused", "Not one of the supported formats: " + ", ".join(sorted(FORMATS)) + ".",
            "Leave it out, or express it by `pattern`.", when=lambda schema: schema.get("format") not in FORMATS),
        TargetRow("minItems", "refused", "Only 0 and 1 are supported.",
                  "Describe the number in `description`, and validate the answer.",
            when=lambda schema: schema.get("minItems") not in (0, 1)),
        TargetRow("pattern", "refused", "Back references, lookaround and \\b are not supported in patterns.",
            "Rewrite the pattern without them, or use an enum.",
            when=lambda schema: bool(BEYOND_REGEX.search(str(schema.get("pattern"))))),
        TargetRow("pattern", "limit", "Large {n,m} quantifiers are not supported (the documentation states no number).",
            "Use *, + or a small number.", when=large_quantifier),
        *make_rows("enforced", "additionalProperties enum const $ref allOf format minItems pattern type anyOf "
                   "properties "
              "required items"),
        *make_rows("refused", "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength "
                   "maxItems "
              "uniqueItems", NOT_TAKEN, CHECK_LATER),
        *make_rows("refused", "oneOf", "Not listed as supported.",
            "Write anyOf, and distinguish the branches by a const."),
    ),
    unlisted=TargetRow("", "refused", "Not listed as supported: an unsupported feature is answered with 400.",
                       CHECK_LATER),
    limits=(
        Limit("properties", 24, optional_count,
              "All schemas of a request may have 24 optional properties together.",
              "List more of them in `required`."),
        Limit("anyOf", 16, union_count,
              "All schemas of a request may have 16 parameters with anyOf or several types together.",
              "Use fewer nullable properties."),
    ),
)  # fmt: skip

"""llama.cpp, `json_schema` of the server and `-j` of the tools: json-schema-to-grammar.

For each subschema its converter tests a fixed list of conditions and acts on the first that holds: $ref, then oneOf or
anyOf, a list of types, const, enum, properties, allOf, items, pattern, format, length, bounds. Keywords beside the one
that it acts on are silently ignored.
"""

from __future__ import annotations

import re

from .subschemas import LocatedSubschema
from .target_tables import Target, TargetRow, make_rows

__all__ = ["LLAMACPP"]

ORDER = ("$ref", "oneOf", "anyOf", "const", "enum", "properties", "allOf", "items", "prefixItems", "pattern", "format")
"""The keyword that the converter acts on is the first of these that is present."""

LOOKAROUND = re.compile(r"\(\?[=!<]")
FORMATS = frozenset(("date", "time", "date-time", "uuid"))
READ_WITH = {
    "properties": {"required", "additionalProperties", "type"},
    "items": {"type", "minItems", "maxItems"},
    "prefixItems": {"type"},
}
"""Keywords that are read together with the one that the converter acts on."""
ASSERTS = frozenset((
    "type", "enum", "const", "properties", "required", "additionalProperties", "allOf", "anyOf", "oneOf", "items",
    "prefixItems", "minItems", "maxItems", "pattern", "format", "minLength", "maxLength", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum",
))  # fmt: skip


def acted_on(subschema: LocatedSubschema) -> str:
    """Return the keyword that the converter acts on; "" if none of the list is present."""
    return next((name for name in ORDER if subschema.has(name)), "")


def row_of_shadowed(keyword: str) -> TargetRow:
    """Return the row of a keyword that is ignored because of the one that the converter acts on."""

    def when(subschema: LocatedSubschema) -> bool:
        first = acted_on(subschema)
        return first not in ("", keyword) and keyword not in READ_WITH.get(first, set())

    reason = "Ignored beside a keyword with precedence: " + ", ".join(ORDER[:-2]) + "."
    return TargetRow(keyword, "ignored", reason, "Write it in the branches or in the definition.", when)


def harmless_type(subschema: LocatedSubschema) -> bool:
    """Return whether an ignored `type` would have had no effect anyway."""
    return acted_on(subschema) in ("const", "enum", "pattern", "format", "properties", "items", "prefixItems", "allOf")


def lacks_string_type(subschema: LocatedSubschema) -> bool:
    """Return whether the schema does not have the single type `string`."""
    return bool(subschema.get("type") != "string")


CHECK_LATER = "Describe it in the prompt, and validate the answer with constrain."

LLAMACPP = Target(
    name="llamacpp",
    title="llama.cpp json-schema-to-grammar",
    read="2026-11-21",
    sources=(
        "ggml-org/llama.cpp, grammars/README.md, section 'JSON Schemas -> GBNF' (stored copy of 2026)",
        "ggml-org/llama.cpp, common/json-schema-to-grammar.cpp (stored copy of 2026)",
    ),
    table=(
        TargetRow("", "refused", "true and false as subschemas are not recognised: 'Unrecognized schema'.", "Write {}.",
            when=lambda schema: isinstance(schema.raw, bool) and schema.step[:1] != ("additionalProperties",)),
        TargetRow("$ref", "refused", "Only references that begin with #/ are resolved.",
            "Copy the schema into $defs, and refer to it by a pointer.",
            when=lambda schema: not str(schema.get("$ref")).startswith("#/")),
        TargetRow("$ref", "enforced"),
        TargetRow("type", "enforced", when=harmless_type),
        *[row_of_shadowed(name) for name in sorted(ASSERTS)],
        TargetRow("additionalProperties", "changed", "Objects are closed by default.",
            "Write `\"additionalProperties\": true`.",
            when=lambda schema: acted_on(schema) == "properties", missing=True),
        TargetRow("required", "ignored", "A required key that is not a declared property is dropped.",
                  "Declare it in `properties`.",
            when=lambda schema: not set(schema.get("required", ())) <= set(schema.get("properties", ()))),
        TargetRow("oneOf", "changed", "Read as anyOf: an instance of several branches is allowed.",
            "Make the branches exclude each other, by a const for example."),
        TargetRow("allOf", "changed", "Only properties and enums of the branches are merged; all their "
                  "properties become "
            "required, and the object is closed.", "Write the conjunction out as one schema."),
        TargetRow("prefixItems", "changed", "Becomes a tuple of exactly that many items.",
                  "State the length by minItems and "
            "maxItems too, so that the meaning is the same everywhere."),
        TargetRow("items", "changed", "A list becomes a tuple of exactly that many items.",
                  "State the length by minItems and "
            "maxItems too, so that the meaning is the same everywhere.",
            when=lambda schema: isinstance(schema.get("items"), list)),
        *make_rows("ignored", "minItems maxItems", "Supported beside `items` only.", "Write `\"items\": {}`.",
              when=lambda schema: acted_on(schema) != "items"),
        TargetRow("pattern", "refused", "A pattern must begin with ^ and end with $.",
            "Add `^.*` before and `.*$` after it if a partial match is intended.",
            when=lambda schema: not re.fullmatch(r"\^.*\$", str(schema.get("pattern")), re.DOTALL)),
        TargetRow("pattern", "ignored", "Lookaround is skipped.", "Write the pattern without it.",
            when=lambda schema: bool(LOOKAROUND.search(str(schema.get("pattern"))))),
        TargetRow("format", "ignored", "Only date, time, date-time and uuid are supported.", "Express it by `pattern`.",
            when=lambda schema: schema.get("format") not in FORMATS),
        *make_rows("ignored", "minLength maxLength", "Supported beside `\"type\": \"string\"` only.", "Write the type.",
            when=lacks_string_type),
        *make_rows("ignored", "minimum maximum exclusiveMinimum exclusiveMaximum",
                   "Supported for `\"type\": \"integer\"` only.",
              CHECK_LATER, when=lambda schema: schema.get("type") != "integer"),
        *make_rows("enforced", "type properties required additionalProperties anyOf const enum items minItems maxItems "
              "pattern format minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum"),
    ),
    unlisted=TargetRow("", "ignored", "Not supported: unsupported features are skipped silently.", CHECK_LATER),
)  # fmt: skip

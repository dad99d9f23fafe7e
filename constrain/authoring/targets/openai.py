"""OpenAI, structured outputs with `strict: true` (response_format or a function's parameters)."""

from __future__ import annotations

from collections.abc import Iterator

from .subschemas import Document, LocatedSubschema
from .target_tables import Limit, Target, TargetRow, make_rows

__all__ = ["OPENAI"]

FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())


def other_format(subschema: LocatedSubschema) -> bool:
    """Return whether the format is not among the documented ones."""
    return subschema.get("format") not in FORMATS


def open_object(subschema: LocatedSubschema) -> bool:
    """Return whether undeclared keys are allowed."""
    return subschema.get("additionalProperties") is not False


def is_optional(subschema: LocatedSubschema) -> bool:
    """Return whether a declared property is optional."""
    properties = subschema.get("properties")
    return isinstance(properties, dict) and not set(properties) <= set(subschema.get("required", ()))


def no_type(subschema: LocatedSubschema) -> bool:
    """Return whether the subschema has neither a type nor a keyword that determines it."""
    return subschema.document.root is not subschema.raw and not subschema.has("anyOf", "$ref", "enum", "const")


def beside_ref(subschema: LocatedSubschema) -> bool:
    """Return whether the reference has adjacent assertion keywords."""
    return any(name not in ("$ref", "$defs", "definitions", "$schema", "$id") for name in subschema.raw)


def property_count(document: Document) -> Iterator[tuple[str, int]]:
    """Yield (pointer, number of properties) of each object."""
    for subschema in document.subschemas:
        properties = subschema.get("properties")
        if isinstance(properties, dict):
            yield f"{subschema.pointer}/properties", len(properties)


def nesting_depth(document: Document) -> Iterator[tuple[str, int]]:
    """Yield (pointer, increase in depth) of each object that is nested deeper than all before it."""
    deepest = 0
    for subschema in document.subschemas:
        if subschema.is_object and subschema.depth > deepest:
            yield subschema.pointer, subschema.depth - deepest
            deepest = subschema.depth


def enum_count(document: Document) -> Iterator[tuple[str, int]]:
    """Yield (pointer, number of values) of each enum."""
    for subschema in document.subschemas:
        if isinstance(subschema.get("enum"), list):
            yield f"{subschema.pointer}/enum", len(subschema.get("enum"))


def text_length(document: Document) -> Iterator[tuple[str, int]]:
    """Yield (pointer, number of characters) of property names, definition names, enum values and const values."""
    for subschema in document.subschemas:
        for name in ("properties", "$defs", "definitions"):
            if isinstance(subschema.get(name), dict):
                yield f"{subschema.pointer}/{name}", sum(map(len, subschema.get(name)))
        if isinstance(subschema.get("enum"), list):
            yield f"{subschema.pointer}/enum", sum(len(str(value)) for value in subschema.get("enum"))
        if subschema.has("const"):
            yield f"{subschema.pointer}/const", len(str(subschema.get("const")))


def long_enum(subschema: LocatedSubschema) -> bool:
    """Return whether an enum has more than 250 strings with more than 15,000 characters in total."""
    values = subschema.get("enum")
    texts = [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
    return len(texts) > 250 and sum(map(len, texts)) > 15_000


UNLISTED = "Not among the keywords that the documentation lists; the API answers 400, '... is not permitted'."
LEFT_OUT = "Leave it out, describe it in `description`, and validate the answer with constrain."

OPENAI = Target(
    name="openai",
    title="OpenAI structured outputs, strict",
    read="2026-11-21",
    sources=(
        "developers.openai.com, guide 'Structured Outputs', section 'Supported schemas' (its limits as quoted in a "
        "copy with 5 levels of nesting and in a profile of February 2026 with 10)",
        "jsonschemaprofiles.unitvectorylabs.com, OpenAI profile 202602",
        "error messages of the API in public issues (uniqueItems, oneOf, format uri, $ref siblings), 2025 and 2026",
    ),
    table=(
        TargetRow("type", "refused", "The root must be an object.", "Wrap it in an object with one property.",
            when=lambda schema: schema.is_root and schema.types != {"object"}),
        TargetRow("type", "enforced"),
        TargetRow("type", "refused", "The root must have `\"type\": \"object\"`.",
                  "Wrap it in an object with one property.",
            when=lambda schema: schema.is_root, missing=True),
        TargetRow("type", "refused", "A subschema must have a type: '... must have a type key'.",
            "Write `type`, or anyOf with the types that it may have.", when=no_type, missing=True),
        TargetRow("additionalProperties", "refused", "Objects must be closed: additionalProperties has to be false.",
            "Write `\"additionalProperties\": false`; express a map as an array of objects with key and value.",
            when=open_object),
        TargetRow("additionalProperties", "enforced"),
        TargetRow("additionalProperties", "refused", "Objects must be closed: additionalProperties has to be false.",
            "Write `\"additionalProperties\": false`.", when=lambda schema: schema.is_object, missing=True),
        TargetRow("required", "refused", "All properties must be in `required`.",
            "List them all; make optional ones nullable: `\"type\": [\"string\", \"null\"]`.",
            when=is_optional),
        TargetRow("required", "enforced"),
        TargetRow("required", "refused", "All properties must be in `required`.",
            "List them all; make optional ones nullable: `\"type\": [\"string\", \"null\"]`.",
            when=is_optional, missing=True),
        TargetRow("anyOf", "refused", "The root must not be an anyOf.", "Wrap it in an object with one property.",
            when=lambda schema: schema.is_root),
        TargetRow("format", "refused", "Not one of the supported formats: " + ", ".join(sorted(FORMATS)) + ".",
            "Leave it out, or express it by `pattern`.", when=other_format),
        TargetRow("enum", "limit", "An enum of more than 250 strings may have 15,000 characters in total.",
            "Shorten the values.",
            when=long_enum),
        TargetRow("$ref", "refused", "No other keywords are allowed beside $ref.", "Move them into the definition.",
            when=beside_ref),
        *make_rows("enforced", "$ref anyOf format enum const properties items pattern minimum maximum exclusiveMinimum "
              "exclusiveMaximum multipleOf minItems maxItems"),
        *make_rows("refused", "allOf", "Documented as not supported.", "Write the conjunction out as one schema."),
        *make_rows("refused", "oneOf", "Not listed; the API answers 400, 'oneOf is not permitted'.",
              "Write anyOf, and distinguish the branches by a const."),
        *make_rows("refused", "not if then else dependentRequired dependentSchemas",
            "Documented as not supported.", LEFT_OUT),
        *make_rows("refused", "minLength maxLength", "For strings the guide lists only pattern and format.",
              "Express the length by a pattern: `^.{1,80}$`."),
        *make_rows("refused", "default", "Reported as refused: '... default is not permitted'.",
              "Leave it out; every property is required anyway."),
    ),
    unlisted=TargetRow("", "refused", UNLISTED, LEFT_OUT),
    limits=(
        Limit("properties", 5_000, property_count, "A schema may have 5,000 properties in total.", "Split the schema."),
        Limit("properties", 10, nesting_depth, "Objects may be nested 10 levels deep (5 in an older copy of the "
              "guide).",
              "Flatten it; references were not followed in this count."),
        Limit("enum", 1_000, enum_count, "A schema may have 1,000 enum values in total.",
            "Use a string, and validate it."),
        Limit("properties", 120_000, text_length,
              "Names of properties and definitions, enum and const values may have 120,000 characters in total.",
              "Shorten the names, or split the schema."),
    ),
)  # fmt: skip

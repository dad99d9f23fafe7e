"""Google Gemini, `responseJsonSchema`: unknown keywords are ignored."""

from __future__ import annotations

from .subschemas import LocatedSubschema
from .target_tables import Target, TargetRow, make_rows

__all__ = ["GEMINI"]


def beside_ref(subschema: LocatedSubschema) -> bool:
    """Return whether a keyword that does not start with $ is adjacent to the reference."""
    return any(not name.startswith("$") for name in subschema.raw)


def other_enum(subschema: LocatedSubschema) -> bool:
    """Return whether the enum has values that are neither strings nor numbers."""
    values = subschema.get("enum", ())
    return any(isinstance(value, (bool, list, dict)) or value is None for value in values)


CHECK_LATER = "Describe it in `description`, and validate the answer with constrain."

GEMINI = Target(
    name="gemini",
    title="Gemini responseJsonSchema",
    read="2026-11-21",
    sources=(
        "ai.google.dev, API reference, GenerationConfig.responseJsonSchema (v1beta; as in generated clients of 2026)",
        "ai.google.dev, guide 'Structured outputs', section 'JSON Schema support' (updated 2026-02-26)",
    ),
    table=(
        TargetRow("$ref", "refused", "A cycle may only go through properties that are not required.",
            "Remove the property from `required` (nullable is not enough).",
            when=lambda schema: schema.is_recursive and schema.is_required),
        TargetRow("$ref", "changed", "A cycle is unrolled to a limited depth.", "Unroll it to the depth that you need.",
            when=lambda schema: schema.is_recursive),
        TargetRow("$ref", "refused", "Only keywords that begin with $ are allowed beside $ref.",
            "Move them into the definition.", when=beside_ref),
        TargetRow("oneOf", "changed", "Read as anyOf: an instance of several branches is allowed.",
            "Make the branches exclude each other, by a const for example."),
        TargetRow("enum", "ignored", "enum is read for strings and numbers only.", CHECK_LATER, when=other_enum),
        *make_rows("enforced", "$ref enum type format items prefixItems minItems maxItems minimum maximum anyOf "
                   "properties "
              "additionalProperties required"),
        *make_rows("ignored", "const", "The keyword is not supported and is ignored.", "Write an enum with one value."),
        *make_rows("ignored", "exclusiveMinimum exclusiveMaximum", "The keyword is not supported and is ignored.",
              "For integers write minimum or maximum, one further."),
        *make_rows("ignored", "allOf", "The keyword is not supported and is ignored.",
                   "Write the conjunction out as one schema."),
        *make_rows("ignored", "pattern minLength maxLength", "The keyword is not supported and is ignored.",
              "If there are few values write an enum; otherwise validate the answer with constrain."),
    ),
    unlisted=TargetRow("", "ignored", "The keyword is not supported and is ignored.", CHECK_LATER),
)  # fmt: skip

"""vLLM, structured outputs with the backend `auto`: XGrammar, llguidance or Outlines.

vLLM looks for a few keywords (`seen_by_vllm`); if it finds one it selects llguidance ("guidance"), which refuses what
it cannot enforce; with patternProperties anywhere it selects Outlines, which refuses those. All other schemas go to
XGrammar, in its strict mode, which ignores unknown keywords. The behaviour of the three was also tested:
`tests/authoring/test_targets.py` runs XGrammar 0.2.8 and llguidance 1.9.1 where they are installed.
"""

from __future__ import annotations

import re
from typing import Any

from .subschemas import Document, LocatedSubschema
from .target_tables import Target, TargetRow, make_rows

__all__ = ["GUIDANCE", "OUTLINES", "XGRAMMAR", "choose_backend"]

READ = "2026-11-21"
SOURCES = (
    "vllm-project/vllm, vllm/v1/structured_output/backend_xgrammar.py, backend_guidance.py (stored, autumn 2026)",
    "guidance-ai/llguidance, docs/json_schema.md",
    "tried: xgrammar 0.2.8 (strict mode, as vLLM calls it) and llguidance 1.9.1",
)

XGRAMMAR_FORMATS = frozenset(
    "email date time date-time duration ipv4 ipv6 hostname uuid uri uri-reference uri-template json-pointer "
    "relative-json-pointer".split()
)
GUIDANCE_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid uri".split())

LOOKAROUND = re.compile(r"\(\?<?[=!]")
REFUSED_REGEX = re.compile(r"\\[bB]|\\[1-9]|\\[pP]\{|\(\?[a-z]")
"""Word boundaries, back references, Unicode properties and flags: errors in XGrammar's regex parser."""

NUMBERS = "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
TEXTS = "minLength maxLength pattern format"
OBJECTS = "minProperties maxProperties propertyNames patternProperties"
ARRAYS = "minItems maxItems"
ASSERTS = frozenset(f"{NUMBERS} {TEXTS} {OBJECTS} {ARRAYS} type enum const properties required items prefixItems "
                    "additionalProperties not if then else allOf oneOf anyOf uniqueItems contains".split())  # fmt: skip


def seen_by_vllm(raw: Any) -> bool:
    """Return whether vLLM itself detects a keyword that XGrammar does not enforce.

    It inspects objects with a `type` only.
    """
    if isinstance(raw, list):
        return any(map(seen_by_vllm, raw))
    if not isinstance(raw, dict):
        return False
    given = raw.get("type")
    types = {given} if isinstance(given, str) else {t for t in given if isinstance(t, str)} if given else set()
    names = raw.get("propertyNames")
    patterns = raw.get("patternProperties")
    seen = (
        (types & {"integer", "number"} and "multipleOf" in raw)
        or ("array" in types and raw.keys() & {"uniqueItems", "contains", "minContains", "maxContains"})
        or ("string" in types and ("format" in raw and raw["format"] not in XGRAMMAR_FORMATS))
        or ("string" in types and both_bounds(raw))
        or ("object" in types and isinstance(names, dict) and both_bounds(names))
        or (
            "object" in types
            and names is not None
            and (
                raw.keys() & {"properties", "patternProperties"}
                or isinstance(raw.get("additionalProperties"), dict)
                or raw.get("unevaluatedProperties", True) is not True
            )
        )
        or ("object" in types and isinstance(patterns, dict) and ("properties" in raw or len(patterns) > 1))
    )
    return bool(seen) or any(seen_by_vllm(value) for value in raw.values())


def both_bounds(raw: dict[str, Any]) -> bool:
    """Return whether a schema has both a pattern or format and a bound on the length."""
    return bool(raw.keys() & {"pattern", "format"} and raw.keys() & {"minLength", "maxLength"})


def choose_backend(document: Document) -> Target:
    """Return the backend that vLLM selects for this schema."""
    if not seen_by_vllm(document.root):
        return XGRAMMAR
    return OUTLINES if any(subschema.has("patternProperties") for subschema in document.subschemas) else GUIDANCE


CLOSING = (("additionalProperties",), ("items",), ("unevaluatedProperties",), ("unevaluatedItems",))
"""Where `false` closes an object or array, and is not an error."""


def no_type(subschema: LocatedSubschema) -> bool:
    """Return whether the subschema has no `type`."""
    return not subschema.has("type")


def is_anchored(pattern: str) -> bool:
    """Return whether a pattern is anchored at both ends."""
    return pattern.startswith("^") and pattern.endswith("$")


def has_neighbours(subschema: LocatedSubschema, *own_keywords: str) -> bool:
    """Return whether other assertion keywords are present too."""
    return bool(ASSERTS & subschema.raw.keys() - set(own_keywords))


def has_undeclared(subschema: LocatedSubschema) -> bool:
    """Return whether a required key is not a declared property."""
    return not set(subschema.get("required", ())) <= set(subschema.get("properties", ()))


KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"), (type(None), "null"), (str, "string"), (list, "array"), (dict, "object"),
)  # fmt: skip


def has_type(value: Any, types: frozenset[str]) -> bool:
    """Return whether a constant is of one of the types."""
    for kind, name in KINDS:
        if isinstance(value, kind):
            return name in types
    return "number" in types or ("integer" in types and value == int(value))


def has_overlap(subschema: LocatedSubschema) -> bool:
    """Return whether two branches of a oneOf are not known to be disjoint by their types or a const."""
    branches = [branch for branch in subschema.get("oneOf") if isinstance(branch, dict)]
    for number, one in enumerate(branches):
        for other in branches[:number]:
            if not are_disjoint(one, other):
                return True
    return len(branches) < len(subschema.get("oneOf"))


def are_disjoint(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether no value satisfies both schemas, as far as types and constants tell."""
    left, right = (({t} if isinstance(t, str) else set(t)) for t in (one.get("type", ()), other.get("type", ())))
    if left and right and not left & right and not (left | right) >= {"integer", "number"}:
        return True
    if "const" in one and "const" in other:
        return bool(one["const"] != other["const"])
    shared = set(one.get("required", ())) & set(other.get("required", ()))
    pairs = [(one.get("properties", {}).get(key), other.get("properties", {}).get(key)) for key in shared]
    return any(isinstance(a, dict) and isinstance(b, dict) and are_disjoint(a, b) for a, b in pairs)


CHECK_LATER = "Leave it out, describe it in the prompt, and validate the answer with constrain."
NOT_ENFORCED = "XGrammar does not support it, and ignores it silently."

XGRAMMAR = Target(
    name="vllm",
    title="vLLM, auto: XGrammar",
    read=READ,
    sources=SOURCES,
    table=(
        TargetRow("", "refused", "An unsatisfiable schema is an error: 'cannot accept any value'.",
            "Leave the property out, and close the object.",
            when=lambda schema: schema.raw is False and schema.step[:1] not in CLOSING),
        TargetRow("$ref", "ignored", "Only #/ pointers are followed; anchors and other documents allow any value.",
            "Copy the schema into $defs, and refer to it by a pointer.",
            when=lambda schema: not str(schema.get("$ref")).startswith("#/") and schema.get("$ref") != "#"),
        TargetRow("$ref", "changed", "Keywords beside $ref are ignored.", "Move them into the definition.",
            when=lambda schema: has_neighbours(schema, "$ref")),
        TargetRow("additionalProperties", "changed", "In strict mode objects are closed by default.",
            "Write `\"additionalProperties\": true`.",
            when=lambda schema: schema.has("properties", "required"), missing=True),
        TargetRow("items", "changed", "In strict mode no items beyond prefixItems are allowed where `items` is "
                  "not written.",
            "Write `\"items\": {}`.",
            when=lambda schema: schema.has("prefixItems", "minItems", "maxItems"), missing=True),
        TargetRow("items", "refused", "A list of schemas is an error: 'items must be a boolean or an object'.",
            "Write prefixItems.", when=lambda schema: isinstance(schema.get("items"), list)),
        TargetRow("required", "ignored", "A required key that is not a declared property is dropped.",
                  "Declare it in `properties`.",
            when=has_undeclared),
        TargetRow("exclusiveMinimum", "refused", "A boolean (draft 4) is an error.", "Write the number itself.",
            when=lambda schema: isinstance(schema.get("exclusiveMinimum"), bool)),
        TargetRow("exclusiveMaximum", "refused", "A boolean (draft 4) is an error.", "Write the number itself.",
            when=lambda schema: isinstance(schema.get("exclusiveMaximum"), bool)),
        *make_rows("ignored", NUMBERS, "Without `type` it is ignored.", "Write `type`.", when=no_type),
        *make_rows("ignored", TEXTS, "Without `type` it is ignored.", "Write `\"type\": \"string\"`.", when=no_type),
        *make_rows("ignored", OBJECTS, "Without `type` it is ignored.", "Write `\"type\": \"object\"`.",
              when=lambda schema: not schema.has("type", "properties")),
        *make_rows("ignored", ARRAYS, "Without `type` it is ignored.", "Write `\"type\": \"array\"`.",
              when=lambda schema: not schema.has("type", "items", "prefixItems")),
        TargetRow("pattern", "refused", "\\b, \\p{...}, back references and flags are errors in its regex parser.",
            "Write it with character classes.",
            when=lambda schema: bool(REFUSED_REGEX.search(str(schema.get("pattern"))))),
        TargetRow("pattern", "ignored", "Lookaround is skipped.", "Write the pattern without it.",
            when=lambda schema: bool(LOOKAROUND.search(str(schema.get("pattern"))))),
        TargetRow("pattern", "changed", "The pattern must match the whole text, not a part of it.",
            "Add `^.*` before and `.*$` after it if a partial match is intended.",
            when=lambda schema: not is_anchored(str(schema.get("pattern")))),
        TargetRow("patternProperties", "changed", "A pattern must match the whole key.",
            "Add `^.*` before and `.*$` after it if a partial match is intended.",
            when=lambda schema: not all(map(is_anchored, schema.get("patternProperties")))),
        TargetRow("enum", "changed", "`type` beside enum is ignored.", "Remove the values of other types.",
            when=lambda schema: schema.has("type")
            and not all(has_type(v, schema.types) for v in schema.get("enum", ()))),
        TargetRow("anyOf", "changed", "Keywords beside anyOf are ignored.", "Move them into the branches.",
            when=lambda schema: has_neighbours(schema, "anyOf")),
        TargetRow("oneOf", "changed", "Read as anyOf, without adjacent keywords: an instance of several "
                  "branches is "
            "allowed.", "Make the branches exclude each other, by a const for example."),
        TargetRow("allOf", "ignored", "With several branches nothing is enforced.",
                  "Write the conjunction out as one schema.",
            when=lambda schema: len(schema.get("allOf")) > 1 or has_neighbours(schema, "allOf")),
        *make_rows("enforced", "type const enum anyOf allOf $ref properties required additionalProperties items "
                   "prefixItems "
              f"unevaluatedProperties unevaluatedItems {NUMBERS} {TEXTS} {OBJECTS} {ARRAYS}"),
    ),
    unlisted=TargetRow("", "ignored", NOT_ENFORCED, CHECK_LATER),
)  # fmt: skip

REFUSES = "llguidance refuses the schema: 'Unimplemented keys'."

GUIDANCE = Target(
    name="vllm",
    title="vLLM, auto: llguidance",
    read=READ,
    sources=SOURCES,
    table=(
        TargetRow("$ref", "refused", "References to other documents are refused.", "Copy the schema into $defs.",
            when=lambda schema: not str(schema.get("$ref")).startswith("#")),
        TargetRow("format", "refused", "llguidance refuses formats other than " + ", "
                  "".join(sorted(GUIDANCE_FORMATS)) + ".",
            "Leave it out, or express it by `pattern`.",
            when=lambda schema: schema.get("format") not in GUIDANCE_FORMATS),
        TargetRow("pattern", "refused", "Lookaround, \\b and back references are refused.",
                  "Rewrite the pattern without them.",
            when=lambda schema: bool(re.search(r"\(\?<?[=!]|\\[bB]|\\[1-9]", str(schema.get("pattern"))))),
        TargetRow("oneOf", "refused", "Supported only if the branches provably exclude each other.",
            "Write anyOf, or distinguish the branches by their types or a const.",
            when=has_overlap),
        *[TargetRow(name, "refused", "Supported only if all declared properties are required.",
              "List them all in `required`, or leave it out.",
              when=lambda schema: set(schema.get("properties", ())) > set(schema.get("required", ())))
          for name in ("minProperties", "maxProperties")],
        *make_rows("enforced", f"type const enum anyOf allOf oneOf $ref properties required additionalProperties items "
              f"additionalItems prefixItems minProperties maxProperties {NUMBERS} {TEXTS} {ARRAYS}"),
    ),
    unlisted=TargetRow("", "refused", REFUSES, CHECK_LATER),
)  # fmt: skip

OUTLINES = Target(
    name="vllm",
    title="vLLM, auto: Outlines",
    read=READ,
    sources=SOURCES,
    table=(
        TargetRow("patternProperties", "refused", "It excludes llguidance in vLLM, and Outlines refuses it.",
            "Declare the properties, or use additionalProperties."),
    ),
    unlisted=TargetRow("", "enforced"),
)  # fmt: skip

"""JSON Schema: damaged schemas, and schemas whose instances other implementations judge.

schema-text     any text: compiles and its masks are consistent, or it raises a ConstrainError
schema-verdict  random schemas and values: the mask's verdict is the reference validator's and jsonschema-rs's
"""

from __future__ import annotations

import json
import random
import warnings
from dataclasses import replace
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

import constrain
from constrain import Style
from tests import schema_strategies as strategies
from tests.text_acceptance import accepts_text

from ..edits import edit_text, nest_text
from ..explained import Case, find_explanation
from ..findings import Disagreement
from ..reference import NotJson, Undecided, Validator, parse
from ..reference.json_text import TooLarge
from ..target import Target, suppress_our_errors
from ..walk import BYTES, MIXED, walk

__all__ = ["TARGETS", "compare_verdicts"]

ANY = replace(Style.any(), formats="annotate")
STYLES = (Style(), ANY, Style.any(), Style(whitespace="compact"), Style(whitespace=2, key_order="any"))
KEYWORDS = (
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "multipleOf",
    "anyOf",
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$defs",
    "$id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$schema",
    "dependentSchemas",
    "dependentRequired",
    "propertyNames",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "additionalItems",
    "definitions",
    "nullable",
    "$vocabulary",
)
VALUES = (
    "true",
    "false",
    "null",
    "{}",
    "[]",
    "[{}]",
    "1",
    "0",
    "-1",
    "1e400",
    "1e9999999999999999999",
    "0.1",
    '"#"',
    '"#/$defs/a"',
    '"string"',
    '"integer"',
    '"^(a+)+$"',
    '"\\\\p{L}+"',
    '"(?=a)b"',
    '"date-time"',
    '"regex"',
    '"uri"',
    '"http://["',
    '"a{999}"',
    '{"$ref":"#"}',
    '["a","a"]',
    "1e-400",
    "100000",
    "18446744073709551616",
)
PIECES = [f'"{word}":' for word in KEYWORDS] + [f'"{word}":{value},' for word in KEYWORDS[:12] for value in VALUES[:6]]
PIECES += [*VALUES, *(f'{{"{word}":{value}}}' for word, value in zip(KEYWORDS * 2, VALUES * 4))]

member = st.tuples(st.sampled_from(KEYWORDS), st.sampled_from(VALUES)).map(lambda t: f'"{t[0]}":{t[1]}')
odd_schemas = st.lists(member, max_size=4).map(lambda members: "{" + ",".join(members) + "}")
deep = st.one_of(
    nest_text('{"items":', "}", "{}"),
    nest_text('{"const":[', "]}", "1"),
    nest_text("[", "]", ""),
    nest_text('{"not":', "}", "true"),
    nest_text('{"anyOf":[', "]}", "true"),
    nest_text('{"properties":{"a":', "}}", "{}"),
    nest_text('{"enum":[[', "]]}", "0"),
)
texts = st.one_of(
    strategies.schemas.map(json.dumps),
    strategies.evaluating.map(json.dumps),
    strategies.counting.map(json.dumps),
    odd_schemas,
    deep,
)


def check_text(drawn: tuple[str, int]) -> None:
    """Compile the text and walk along its masks."""
    text, seed = drawn
    with suppress_our_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", constrain.SchemaWarning)
        constraint = constrain.compile(MIXED, schema=text, style=STYLES[seed % len(STYLES)])
        made = walk(constraint, seed)
        if made is not None and seed % len(STYLES) < 2:
            check_instance(text, made, seed)


def check_instance(text: str, made: bytes, seed: int) -> None:
    """Check that the text of a walk is an instance."""
    try:
        judged = Validator(text)
    except (Undecided, ValueError, TypeError, AttributeError):
        return  # The reference supports valid schemas only.
    try:
        valid = judged.is_valid(parse(made))
    except NotJson as error:
        raise Disagreement("a walk wrote no JSON", f"{text}\n{made!r}: {error}") from None
    except (Undecided, ValueError, TypeError, AttributeError):
        return
    if not valid and find_explanation(Case(text, made.decode(), True, False)) is None:
        raise Disagreement("a walk wrote what the reference refuses", f"{text}\n{made!r}")


def check_verdict(drawn: tuple[Any, list[Any], int]) -> None:
    """Compare the verdicts on every value, spelled as JSON, with the reference and with jsonschema-rs."""
    schema, values, seed = drawn
    text = json.dumps(schema)
    try:
        constraint = constrain.compile(BYTES, schema=text, style=ANY)
    except constrain.UnsatisfiableError:
        constraint = None
    except constrain.ConstrainError:
        return
    spelled = [json.dumps(value) for value in values]
    if constraint is not None:
        with suppress_our_errors():
            spelled += [made.decode() for k in range(2) if (made := walk(constraint, seed + k, 20)) is not None]
            spelled += [vary_text(one, random.Random(seed)) for one in spelled[-2:]]
    for one in spelled:
        with suppress_our_errors():  # A limit that is exceeded while masking is an answer.
            compare_verdicts(text, one, constraint is not None and accepts_text(constraint, one.encode()))


def compare_verdicts(schema: str, instance: str, ours: bool) -> None:
    """Raise Disagreement if another implementation differs and no rule explains why."""
    verdicts = {"reference": judge_with_reference(schema, instance), "jsonschema-rs": judge_with_rust(schema, instance)}
    for judge_name, theirs in verdicts.items():
        if theirs is None or theirs == ours:
            continue
        if judge_name != "reference" and verdicts["reference"] == ours:
            continue  # The exact reference agrees with us; jsonschema-rs computes with floats.
        if find_explanation(Case(schema, instance, ours, theirs, judge_name == "reference")) is None:
            word = "accepts" if ours else "refuses"
            raise Disagreement(f"constrain {word} against the {judge_name}", f"{schema}\n{instance}")


def judge_with_reference(schema: str, instance: str) -> bool | None:
    """Return the exact verdict, or None."""
    try:
        return compile_validator(schema).is_valid(parse(instance))
    except NotJson:
        return False
    except (Undecided, TooLarge):
        return None


@lru_cache(maxsize=64)
def compile_validator(schema: str) -> Validator:
    return Validator(schema)


def judge_with_rust(schema: str, instance: str) -> bool | None:
    """Return the verdict of jsonschema-rs, or None."""
    try:
        import jsonschema_rs
    except ImportError:
        return None
    try:
        value = json.loads(instance)
        return bool(jsonschema_rs.validator_for(json.loads(schema), validate_formats=False).is_valid(value))
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def vary_text(text: str, rng: random.Random) -> str:
    """Return a JSON text with one character changed, left out or doubled."""
    if not text:
        return text
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(["", text[at] * 2, rng.choice('0123456789aeE.-+,:{}[]" ')]) + text[at + 1 :]


seeds = st.integers(0, 2**16)
schemas = st.one_of(strategies.schemas, strategies.evaluating, strategies.counting)
values = st.lists(st.one_of(strategies.values, strategies.item_values), max_size=5)
LOOPS = (
    '{"if": false, "then": {"$ref": "#"}}',
    '{"$ref":"#"}',
    '{"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}',
)
SLIPS = (
    '{"$id":"http://["}',
    '{"$ref":"//[::x]/#"}',
    '{"$ref":"#/allOf/' + "1" * 5_000 + '"}',
    '{"minimum":1' + "0" * 5_000 + "}",
    '{"pattern":"a{' + "9" * 5_000 + '}"}',
    '{"minimum":1e9999999999999999999999}',
)

TARGETS = (
    Target(
        "schema-text",
        "damaged schemas",
        st.tuples(edit_text(texts, PIECES), seeds),
        check_text,
        corpus=tuple((text, seed) for text in (*LOOPS, *SLIPS) for seed in (0, 1)),
    ),
    Target(
        "schema-verdict",
        "schemas and values, judged by others",
        st.tuples(schemas, values, seeds),
        check_verdict,
        corpus=(({"uniqueItems": True, "minItems": 3}, [[1, 1.0, 2], [1, 2, 3]], 1),),
    ),
)

"""Railroad diagrams of the source of a Constraint: a JSON Schema, a regex, choices, a grammar, or a Form of these.

A schema is drawn as people read it: members in their order, optional ones with a bypass, arrays as loops, `$ref` as a
rule of its own; the commas between members are left out. Keywords that no track can show (`uniqueItems`, `not`, ...)
are named on the track. The Constraint enforces all of them; the diagram is for reading.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...base.errors import ConstrainError
from ...base.json_documents import parse_json
from ..grammar_tools.written_grammar import read_grammar
from ..rendering.readable_tokens import show_characters
from .railroad_rules import Drawn, draw_rules
from .railroad_shapes import Box, DiagramShape, Remark, ShapeChoice, ShapeLoop, ShapeRow, Skip, fold_row

__all__ = ["MOST_PARTS", "MOST_RULES", "draw_source"]

MOST_RULES = 24
"""Maximum number of rules that are drawn."""
MOST_PARTS = 16
"""Maximum number of members, options or other parts of one shape that are drawn; of more, the others are counted."""
DEEPEST = 8
"""Nesting beyond which a subschema is drawn as one box."""
LONGEST = 40
"""Maximum number of characters in a box."""
NUMBERS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
SIGNS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<", "multipleOf": "multiple of"}
STRINGS = {"minLength": "length ≥", "maxLength": "length ≤", "pattern": "pattern", "format": ""}
DRAWN = frozenset((
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems",
    "maxItems", "anyOf", "oneOf", "$ref", "$defs", "definitions", *NUMBERS, *STRINGS, "title", "description", "$schema",
    "$id", "$comment", "default", "examples",
))  # fmt: skip
"""Keywords that the diagram shows, or that assert nothing."""
BY_TYPE = {
    "object": ("properties", "required", "additionalProperties"), "array": ("items", "prefixItems", "minItems"),
    "string": tuple(STRINGS), "number": NUMBERS,
}  # fmt: skip


def draw_source(source: Mapping[str, Any]) -> tuple[list[Drawn], str]:
    """Return the diagrams of a source (`Constraint.source`), at most MOST_RULES, and a note on what is left out."""
    drawing = _Drawing()
    try:
        drawing.add_source(source)
    except (ConstrainError, RecursionError) as error:
        reason = error.cause if isinstance(error, ConstrainError) else "the source is nested too deeply"
        return [], f"No diagram: {reason}"
    left = len(drawing.drawn) - MOST_RULES
    return drawing.drawn[:MOST_RULES], f"The first {MOST_RULES} rules of {len(drawing.drawn)}." if left > 0 else ""


class _Drawing:
    """The diagrams of one source. document: the schema that is drawn; wanted: the references still to be drawn."""

    def __init__(self) -> None:
        self.drawn: list[Drawn] = []

    def add_source(self, source: Mapping[str, Any]) -> None:
        """Draw a source: its start first."""
        if "schema" in source:
            schema = source["schema"]
            self.add_schema(parse_json(schema) if isinstance(schema, str) else schema, "schema")
        elif "regex" in source:
            self.drawn.append(Drawn("regex", "rule", Box(shorten(source["regex"], 90), "pattern")))
        elif "choices" in source:
            self.drawn.append(Drawn("choices", "rule", choose([Box(quote(one), "text") for one in source["choices"]])))
        elif "form" in source:
            self.add_form(source["form"])

    # ---- forms ------------------------------------------------------------------------------------------------

    def add_form(self, form: Mapping[str, Any]) -> None:
        """Draw a Form, as `Form.plain` writes it."""
        if form.get("kind") in ("LarkText", "GbnfText"):
            self.add_grammar(form)
            return
        place = len(self.drawn)
        shape = self.form(form, 0)
        self.drawn.insert(place, Drawn("form", "rule", shape, "start"))

    def add_grammar(self, form: Mapping[str, Any]) -> None:
        """Draw the rules of a grammar; one that cannot be drawn, such as one with imports from files, is one box."""
        is_gbnf = form["kind"] == "GbnfText"
        self.drawn += draw_rules(read_grammar(form["text"], kind="gbnf" if is_gbnf else "lark", start=form["start"]))

    def form(self, form: Mapping[str, Any], depth: int) -> DiagramShape:
        """Return the shape of a form within another one."""
        kind, parts = str(form.get("kind")), list(inner_forms(form))
        if depth > DEEPEST:
            return Remark("…")
        if kind == "LiteralText":
            return Box(quote(str(form.get("text", ""))), "text")
        if kind == "RegexPattern":
            return Box(shorten(str(form["pattern"])), "pattern")
        if kind == "SchemaText":
            name = f"schema-{len(self.drawn) + 1}"
            self.add_schema(parse_json(form["schema"]), name)
            return Box(name, "rule", f"rule-{name}")
        if kind in ("LarkText", "GbnfText"):
            self.add_grammar(form)
            return Box(str(form["start"]), "rule", f"rule-{form['start']}")
        shapes = [self.form(part, depth + 1) for part in parts[:MOST_PARTS]]
        if kind == "Concatenated":
            return fold_row(shapes)
        if kind == "Either":
            return choose(shapes)
        if kind == "RepeatedForm":
            return repeat(shapes[0], int(form.get("low", 0)), form.get("high"), Skip())
        return fold_row([Remark(kind), *shapes]) if shapes else Box(kind, "terminal")

    # ---- schemas ----------------------------------------------------------------------------------------------

    def add_schema(self, schema: Any, name: str) -> None:
        """Draw a schema, then the definitions that it refers to."""
        shapes = _SchemaShapes(name)
        self.drawn.append(Drawn(name, "rule", shapes.shape(schema, 0), "start"))
        done: set[str] = set()
        while len(done) < len(shapes.wanted) and len(self.drawn) <= MOST_RULES:
            reference = next(one for one in shapes.wanted if one not in done)
            done.add(reference)
            target = find_target(schema, reference)
            if target is not None:
                self.drawn.append(Drawn(reference_name(reference), "rule", shapes.shape(target, 0)))


class _SchemaShapes:
    """Shapes of subschemas. start: the name of the whole schema. wanted: the references met so far, in order."""

    def __init__(self, start: str) -> None:
        self.start = start
        self.wanted: dict[str, None] = {}

    def shape(self, schema: Any, depth: int) -> DiagramShape:
        """Return the shape of a schema."""
        if not isinstance(schema, dict):
            return Box("any value" if schema is not False else "nothing", "pattern")
        if depth > DEEPEST:
            return Remark("…")
        rest = [name for name in schema if name not in DRAWN]
        named = [Remark(shorten(f"and {', '.join(rest)}", 60))] if rest else []
        if "$ref" in schema:
            if schema["$ref"] != "#":
                self.wanted[str(schema["$ref"])] = None
            name = self.start if schema["$ref"] == "#" else reference_name(str(schema["$ref"]))
            return fold_row([Box(name, "rule", f"rule-{name}"), *named])
        if "const" in schema or isinstance(schema.get("enum"), list):
            values = [schema["const"]] if "const" in schema else schema["enum"]
            return fold_row([choose([Box(shorten(to_json(value)), "text") for value in values]), *named])
        for name in ("anyOf", "oneOf"):
            if isinstance(schema.get(name), list):
                options = [self.shape(one, depth + 1) for one in schema[name][:MOST_PARTS]]
                return fold_row([choose(options, len(schema[name])), *named])
        shapes = [self.typed(schema, kind, depth) for kind in types_of(schema)]
        return fold_row([choose(shapes) if shapes else Box("any value", "pattern"), *named])

    def typed(self, schema: dict[str, Any], kind: str, depth: int) -> DiagramShape:
        """Return the shape of the values of one type."""
        if kind == "object":
            return self.object(schema, depth)
        if kind == "array":
            return self.array(schema, depth)
        if kind in ("null", "boolean"):
            return Box("null", "text") if kind == "null" else choose([Box("true", "text"), Box("false", "text")])
        bounds = describe_bounds(schema, kind)
        return Box(shorten(f"{kind} {bounds}".strip(), 60), "pattern")

    def object(self, schema: dict[str, Any], depth: int) -> DiagramShape:
        """Return the shape of an object."""
        properties = schema.get("properties")
        members = list(properties.items()) if isinstance(properties, dict) else []
        required = schema.get("required") if isinstance(schema.get("required"), list) else []
        parts: list[DiagramShape] = [Box("{", "text")]
        for name, value in members[:MOST_PARTS]:
            member = ShapeRow((Box(f"{shorten(to_json(name))} :", "text"), self.shape(value, depth + 1)))
            parts.append(member if name in (required or []) else ShapeChoice((Skip(), member), 1))
        if len(members) > MOST_PARTS:
            parts.append(Remark(f"… and {len(members) - MOST_PARTS} more members"))
        if schema.get("additionalProperties") is not False:
            more = ShapeRow((Box("string :", "pattern"), self.shape(schema.get("additionalProperties"), depth + 1)))
            parts.append(repeat(more, 0, None, Skip()))
        return fold_row([*parts, Box("}", "text")])

    def array(self, schema: dict[str, Any], depth: int) -> DiagramShape:
        """Return the shape of an array."""
        prefix = schema.get("prefixItems")
        first = [self.shape(one, depth + 1) for one in prefix[:MOST_PARTS]] if isinstance(prefix, list) else []
        if schema.get("items") is False:
            return fold_row([Box("[", "text"), *first, Box("]", "text")])
        low = schema.get("minItems", 0)
        high = schema.get("maxItems")
        item = self.shape(schema.get("items", True), depth + 1)
        bounds = (int(low) if isinstance(low, (int, float)) else 0, high)
        return fold_row([Box("[", "text"), *first, repeat(item, *bounds, Box(",", "text")), Box("]", "text")])


def types_of(schema: dict[str, Any]) -> list[str]:
    """Return the types of a schema: those that it names, or those that its keywords are about."""
    named = schema.get("type")
    if isinstance(named, str):
        return [named]
    if isinstance(named, list):
        return [str(one) for one in named[:MOST_PARTS]]
    return [kind for kind, keywords in BY_TYPE.items() if any(keyword in schema for keyword in keywords)]


def describe_bounds(schema: dict[str, Any], kind: str) -> str:
    """Return the bounds of a number or string in short."""
    if kind in ("number", "integer"):
        return ", ".join(f"{SIGNS[name]} {to_json(schema[name])}" for name in NUMBERS if name in schema)
    words = [f"{word} {schema[name]}".strip() for name, word in STRINGS.items() if name in schema]
    return ", ".join(words) if kind == "string" else ""


def find_target(document: Any, reference: str) -> Any:
    """Return the subschema that a reference within the document points to; None for any other reference."""
    if not reference.startswith("#"):
        return None
    value = document
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key in (places := {str(place): place for place in range(len(value))}):
            value = value[places[key]]
        else:
            return None
    return value


def reference_name(reference: str) -> str:
    """Return a short name of what a reference points to."""
    return shorten(reference.rstrip("/").rpartition("/")[2] or "schema")


def inner_forms(form: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the forms within a form, as `Form.plain` writes it."""
    for value in form.values():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(one, Mapping) and "kind" in one:
                yield one


def choose(options: Sequence[DiagramShape], count: int = 0) -> DiagramShape:
    """Return a choice of at most MOST_PARTS options; the others are counted."""
    left = max(count, len(options)) - min(len(options), MOST_PARTS)
    shown = [*options[:MOST_PARTS], *([Remark(f"… and {left:,} more")] if left > 0 else [])]
    return shown[0] if len(shown) == 1 else ShapeChoice(tuple(shown))


def repeat(shape: DiagramShape, low: int, high: Any, between: DiagramShape) -> DiagramShape:
    """Return a loop with its numbers."""
    if high is None and low <= 1:
        times = ""
    else:
        times = f"{low:,}×" if high == low else f"{low:,}–{'∞' if high is None else high}×"
    way_back: DiagramShape = ShapeRow((between, Remark(times))) if times else between
    loop = ShapeLoop(shape, way_back)
    return ShapeChoice((Skip(), loop), 1) if low == 0 else loop


def to_json(value: Any) -> str:
    """Return a value as JSON for a box."""
    return json.dumps(value, ensure_ascii=False, default=str)


def quote(text: str) -> str:
    """Return a text in quotes for a box."""
    return f'"{shorten(text)}"'


def shorten(text: str, most: int = LONGEST) -> str:
    """Return a text of at most `most` characters, without invisible ones."""
    shown = show_characters(text[: 4 * most])
    return shown if len(shown) <= most and len(text) <= 4 * most else shown[: most - 1] + "…"

"""The rows of the table: inputs that have broken constrain 0.1 or another engine.

An origin "faults 1.2" is a section of `../shared/faults.md`; other origins are the advisory or issue that reported this
kind of input (see `../shared/peers.md`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from constrain import Style

from . import answers, scenarios
from .call_scenarios import CALLS
from .playground_scenarios import PLAYGROUND
from .request_scenarios import REQUESTS

__all__ = ["ROWS", "Row"]

Kind = Literal["schema", "regex", "gbnf", "lark", "ours"]


@dataclass(frozen=True)
class Row:
    """A hostile input.

    kind: of `text`; "ours" for a scenario, which only constrain runs. check: called with the Constraint of the text (of
    a scenario: without arguments); raises `answers.WrongAnswer`. By default `answers.use_constraint`. seconds: limit of
    CPU time. refusal: whether a typed error is a right answer.
    """

    name: str
    origin: str
    kind: Kind
    text: str = ""
    check: Callable[..., Any] = answers.use_constraint
    style: Style = Style()
    seconds: float = 10.0
    refusal: Literal["right", "wrong"] = "right"


def build_schema_row(name: str, origin: str, source: Any, **more: Any) -> Row:
    """Return the row of a schema, given as JSON text or as a value."""
    return Row(name, origin, "schema", source if isinstance(source, str) else json.dumps(source), **more)


def list_wrong_results() -> Iterator[Row]:
    """Yield the rows of section 1 of faults.md, except 1.6: wrong results."""
    for name, origin, scenario, seconds in scenarios.SCENARIOS:
        yield Row(name, origin, "ours", check=scenario, seconds=seconds, refusal="wrong")
    for name, origin, scenario, seconds in scenarios.FORGED:
        yield Row(name, origin, "ours", check=scenario, seconds=seconds)
    dead = {
        "two names without a space": 'start: NAME NAME ";" | "1"\nNAME: /[a-z]+/',
        "look-ahead that cannot come": 'start: /a(?=b)/ | "c"',
        "two equal terminals in a row": "start: A A\nA: /[ab]+/",
        "a declared terminal as the start": "%declare X\nstart: X",
        "a surrogate as a terminal": 'start: "\\uD800"',
    }
    for name, text in dead.items():
        yield Row(f"Lark dead end: {name}", "faults 1.7", "lark", text, check=answers.check_no_dead_end)
    yield Row("Lark conflict that loses texts", "faults 1.8", "lark", 'start: "a" start "b" | "b" "a" |',
              check=answers.check_accepted("", "ab", "ba", "abab", "aabb"))  # fmt: skip
    for keyword in (
        '{"maxlenght": 5}',
        '{"propertys": {}}',
        '{"format": "phone"}',
        '{"type": "string", "nullable": true}',
    ):
        yield build_schema_row(
            f"slip {keyword[:22]}", "faults 1.9", keyword, check=answers.check_warning, refusal="wrong"
        )
    yield build_schema_row(
        "a loop that no instance takes",
        "faults 1.11",
        {"if": False, "then": {"$ref": "#"}},
        check=answers.check_accepted("1"),
        refusal="wrong",
    )


def list_exhausted_budgets() -> Iterator[Row]:
    """Yield the rows of section 2 of faults.md: time or memory beyond a budget."""
    any_style = Style.any()
    yield Row("(x{2,} ';')* in GBNF", "faults 2", "gbnf", 'root ::= (x{2,} ";")*\nx ::= "a"')
    yield Row("(x{2,3})* in GBNF", "faults 2", "gbnf", 'root ::= (x{2,3})*\nx ::= "a"')
    yield Row("literal.repeat(2).repeat(0)", "faults 2", "ours", check=answers.check_repeated_repeat, refusal="wrong")
    three = {"type": "array", "uniqueItems": True, "minItems": 3}
    yield build_schema_row(
        "three unique items, after [1",
        "faults 2",
        three,
        style=any_style,
        check=answers.check_completion(b"[1"),
        refusal="wrong",
    )
    yield build_schema_row(
        "three unique items, after [nu",
        "faults 2",
        three,
        style=any_style,
        check=answers.check_completion(b"[nu"),
        refusal="wrong",
    )
    yield Row("Lark '1' ',' with an ignored comma", "faults 2", "lark", 'start: "1" ","\n%ignore /[ ,]/')
    yield Row("60 GBNF rules that double", "faults 2", "gbnf", build_doubling_rules(60, "::=", "root ::= r0"))
    yield Row("Lark template t{x}: t{t{x}}", "faults 2", "lark", 'start: t{A}\nt{x}: t{t{x}}\nA: "a"')
    yield Row("16 Lark terminals that double", "faults 2", "lark",
              "start: A0\n" + "\n".join(f"A{i}: A{i + 1} A{i + 1}" for i in range(16)) + '\nA16: "a"')  # fmt: skip
    yield build_schema_row(
        "oneOf of 200 patterns a{i}b", "faults 2", {"oneOf": [{"pattern": f"a{{{i}}}b"} for i in range(200)]}
    )
    yield build_schema_row("subsets of 12 dynamic anchors", "faults 2", build_dynamic_anchors(12))
    yield build_schema_row("minimum of 100,000 digits", "faults 2", '{"minimum": 1' + "0" * 100_000 + "}")
    for count in (400, 3_000):
        chain = "start: A0\n" + "\n".join(f'A{i}: "a" A{i + 1}' for i in range(count)) + f'\nA{count}: "a"'
        yield Row(f"a chain of {count:,} Lark terminals", "faults 2", "lark", chain)
    chain = "root ::= r0\n" + "\n".join(f'r{i} ::= "a" r{i + 1}' for i in range(20_000)) + '\nr20000 ::= "a"'
    yield Row("a chain of 20,000 GBNF rules", "faults 2", "gbnf", chain)
    yield Row("validate with ^(a+)+b and forty a", "faults 2", "ours", check=answers.check_backtracking_validation)
    yield build_schema_row("definitions that refer to themselves", "faults 2", build_self_references(200))
    yield Row("1,000 bytes of an ambiguous GBNF", "faults 2", "gbnf", 'root ::= "a" root | "a" root "a" | "a"',
              check=answers.check_step(b"a" * 1_000))  # fmt: skip
    yield build_schema_row(
        "20,000 open brackets, completed", "faults 2", {}, check=answers.check_completion(b"[" * 20_000)
    )


def list_foreign_errors() -> Iterator[Row]:
    """Yield the rows of section 3 of faults.md: errors of other types."""
    yield build_schema_row("$id of an open bracket", "faults 3", {"$id": "http://["})
    yield build_schema_row("$ref with an odd host", "faults 3", {"$ref": "//[::x]/#"})
    yield build_schema_row("a repetition of 5,000 digits", "faults 3", {"pattern": "a{" + "9" * 5_000 + "}"})
    yield Row("a regex repetition of 5,000 digits", "faults 3", "regex", "a{" + "9" * 5_000 + "}")
    yield build_schema_row("a pointer of 5,000 digits", "faults 3", {"$ref": "#/allOf/" + "1" * 5_000, "allOf": [{}]})
    yield build_schema_row("1e9999999999999999999999", "faults 3", '{"minimum": 1e9999999999999999999999}')
    yield build_schema_row("a name of 1,000,000 characters in a message", "faults 3", {"$ref": "#/" + "a" * 1_000_000})
    for depth in (900, 100_000):
        yield build_schema_row(f"items, {depth:,} deep", "faults 3", '{"items":' * depth + "{}" + "}" * depth)
        yield build_schema_row(f"const, {depth:,} deep", "faults 3", '{"const":' + "[" * depth + "]" * depth + "}")
    for name, origin, scenario, seconds in scenarios.ERRORS:
        yield Row(name, origin, "ours", check=scenario, seconds=seconds)


def list_published_classes() -> Iterator[Row]:
    """Yield rows for published advisories and issues of other engines."""
    yield build_schema_row("not, 100,000 deep", "CVE-2026-25048", '{"not":' * 100_000 + "{}" + "}" * 100_000)
    for depth in (255, 10_000, 100_000):
        yield Row(f"regex groups, {depth:,} deep", "CVE-2026-25048", "regex", "(" * depth + "a" + ")" * depth)
    yield Row(
        "GBNF groups, 100,000 deep", "CVE-2026-25048", "gbnf", "root ::= " + "(" * 100_000 + '"a"' + ")" * 100_000
    )
    yield Row("Lark groups, 100,000 deep", "CVE-2026-25048", "lark", "start: " + "(" * 100_000 + '"a"' + ")" * 100_000)
    yield Row("infinite left recursion", "CVE-2025-57809", "gbnf", 'root ::= root root | root "a" | "a" | ""')
    yield Row("a rule that is only itself", "CVE-2025-57809", "gbnf", "root ::= root")
    yield Row("rules of no text in a circle", "CVE-2025-57809", "gbnf", 'root ::= (a | "x")* "y"\na ::= b*\nb ::= a?')
    yield Row("(a+)+b", "CVE-2026-55574", "regex", "(a+)+b", check=answers.check_step(b"a" * 2_000))
    yield Row("(a|a)*b", "CVE-2026-55574", "regex", "(a|a)*b", check=answers.check_step(b"a" * 2_000))
    yield Row(
        "a state explosion, .*a.{40}", "CVE-2026-55574", "regex", ".*a.{40}", check=answers.check_step(b"ab" * 500)
    )
    yield Row("nested counts, ((a{100}){100}){100}", "CVE-2026-55574", "regex", "((a{100}){100}){100}")
    yield Row("a count of a billion", "CVE-2026-55574", "regex", "a{1000000000}")
    yield Row("two million optional letters", "CVE-2026-55574", "regex", "a?" * 200_000)
    yield Row("an unclosed class", "CVE-2025-48943", "regex", "[a")
    yield Row("a NUL in a pattern", "NUL in XGrammar", "regex", "a\0b")
    yield build_schema_row("a type that does not exist", "CVE-2025-48944", {"type": "something"})
    yield build_schema_row("a pattern that is none", "CVE-2025-48944", {"type": "string", "pattern": "(?"})
    yield build_schema_row("a schema that is a number", "CVE-2025-48942", "7")
    yield build_schema_row("a remote $ref", "SSRF", {"$ref": "https://example.com/schema.json"})
    yield build_schema_row(
        "50,000 optional keys", "xgrammar#702", {"properties": {f"key{i}": {"type": "string"} for i in range(50_000)}}
    )
    yield build_schema_row("an enum of 200,000", "outlines#658", {"enum": [f"value {i}" for i in range(200_000)]})
    yield build_schema_row("maxLength of a billion", "xgrammar#852", {"type": "string", "maxLength": 10**9})
    yield build_schema_row(
        "a pattern and maxLength", "xgrammar#852", {"type": "string", "pattern": "^(ab|a)*$", "maxLength": 100_000}
    )
    yield build_schema_row("minItems of a billion", "xgrammar#852", {"type": "array", "minItems": 10**9})
    yield build_schema_row("oneOf of oneOf, 3^9 cases", "vllm#54003", nest_one_of(9, 3))
    yield build_schema_row(
        "allOf of anyOf, 3^12 cases",
        "vllm#54003",
        {"allOf": [{"anyOf": [{"required": [f"{i}{k}"]} for k in range(3)]} for i in range(12)]},
    )
    yield build_schema_row(
        "1,000 definitions in a circle",
        "cyclic $ref",
        {"$defs": {f"d{i}": {"$ref": f"#/$defs/d{(i + 1) % 1000}"} for i in range(1_000)}, "$ref": "#/$defs/d0"},
    )
    yield build_schema_row(
        "references that double, 2^60",
        "cyclic $ref",
        {
            "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)} | {"d60": {}},
            "$ref": "#/$defs/d0",
        },
    )
    yield build_schema_row("1e400 and lone surrogates", "odd JSON", '{"enum": [1e400, "\\ud800"]}')
    yield build_schema_row("a key twice", "odd JSON", '{"type": "string", "type": "integer"}')
    yield build_schema_row("a document of 2,000,000 empty lists", "odd JSON", '{"x": [' + "[]," * 2_000_000 + "[]]}")
    for name, origin, scenario, seconds in scenarios.PUBLISHED:
        yield Row(name, origin, "ours", check=scenario, seconds=seconds)


def list_long_steps() -> Iterator[Row]:
    """Yield sources of which one rule, one mask or one choice is large."""
    origin = "a large step"
    keys = {f"key{i}": {"type": "string"} for i in range(10_000)}
    strings = [f"value {i}" for i in range(100_000)]
    for name, style in (("", Style()), (", any order", Style.any())):
        yield build_schema_row(f"a list of 10,000 optional keys{name}", origin, build_array_schema({"properties": keys}), style=style,
                     check=answers.walk_at_random)  # fmt: skip
        yield build_schema_row(f"a list of 100,000 strings{name}", origin, build_array_schema({"enum": strings}), style=style,
                     check=answers.walk_at_random)  # fmt: skip
        branches = [{"properties": {f"x{i}": {"type": "integer"}}, "required": [f"x{i}"]} for i in range(500)]
        yield build_schema_row(f"a list of 500 alternatives{name}", origin, build_array_schema({"anyOf": branches}), style=style,
                     check=answers.walk_at_random)  # fmt: skip
        for kind in ({}, {"items": {"type": "string"}}, {"items": {"type": "number"}}, {"items": {"type": "object"}}):
            source = {"type": "array", "uniqueItems": True, "minItems": 40, **kind}
            yield Row(f"unique items: {json.dumps(kind)}{name}", origin, "ours",
                      check=answers.check_with_words(source, style), refusal="wrong")  # fmt: skip
    needs = {f"key{i}": [f"key{i + 1}"] for i in range(9_999)}
    yield build_schema_row("10,000 keys of which each needs the next", origin,
                 build_array_schema({"properties": keys, "dependentRequired": needs}), check=answers.walk_at_random)  # fmt: skip
    yield build_schema_row("not 100,000 strings nor numbers", origin, build_array_schema({"not": {"enum": [*strings, *range(100_000)]}}),
                 style=Style.any(), check=answers.walk_at_random)  # fmt: skip
    yield build_schema_row("1,000 digits in the bounds of a number", origin,
                 build_array_schema({"minimum": 10**1_000 // 7, "maximum": 10**1_000 // 3}), check=answers.walk_at_random)  # fmt: skip
    members = [{"not": {"additionalProperties": {"not": {"const": i}}}} for i in range(8)]
    yield build_schema_row("8 members that must be there, completed", origin, {"type": "object", "allOf": members},
                 check=answers.check_completion(b'{"x'))  # fmt: skip
    clauses = [[f"x{(7 * i + 3 * k * k) % 40}" for k in range(3)] for i in range(30)]
    choices = [{"anyOf": [{"properties": {x: {"const": len(x)}}, "required": [x]} for x in one]} for one in clauses]
    yield build_schema_row("30 clauses of 3 keys, completed", origin, {"type": "object", "allOf": choices},
                 check=answers.check_completion(b"{"))  # fmt: skip
    chain = "\n".join(f'r{i} ::= r{i + 1} | "b{i}"' for i in range(20_000))
    yield Row(
        "20,000 unit rules", origin, "gbnf", f'root ::= "x" r0\n{chain}\nr20000 ::= "a"', check=answers.walk_at_random
    )
    words = " | ".join(f'[a-z]+ "w{i}" [0-9]*' for i in range(5_000))
    yield Row("a choice of 5,000", origin, "gbnf", f'root ::= "x" (r0 "y")* "end"\nr0 ::= {words}',
              check=answers.walk_at_random)  # fmt: skip
    classes = " | ".join(f'[{chr(97 + i % 26)}-z{chr(256 + i)}-{chr(512 + i)}]+ "w{i}" root' for i in range(1_000))
    yield Row("1,000 classes of characters", origin, "gbnf", f'root ::= "x" r0 "y"\nr0 ::= {classes} | "q"',
              check=answers.walk_at_random)  # fmt: skip


def list_calls() -> Iterator[Row]:
    """Yield calls that generate, score, repair and search, and requests to servers."""
    for name, origin, scenario, seconds in (*CALLS, *REQUESTS, *PLAYGROUND):
        yield Row(name, origin, "ours", check=scenario, seconds=seconds)


def build_array_schema(items: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an array of at least one item, so that `items` is used after the first step."""
    return {"type": "array", "minItems": 1, "items": items}


def build_doubling_rules(count: int, mark: str, head: str) -> str:
    """Return rules, each of which is the next one twice."""
    lines = [f"r{i} {mark} r{i + 1} r{i + 1}" for i in range(count)]
    return "\n".join([head, *lines, f'r{count} {mark} "a"'])


def build_dynamic_anchors(count: int) -> dict[str, Any]:
    """Return a schema of resources, each with or without a dynamic anchor: 2^count different dynamic scopes."""
    documents: dict[str, Any] = {}
    for i in range(count):
        after = {"$ref": f"d{i + 1}"}
        documents[f"d{i}"] = {"$id": f"d{i}", "anyOf": [{"$ref": f"e{i}"}, after]}
        documents[f"e{i}"] = {"$id": f"e{i}", "$defs": {"x": {"$dynamicAnchor": f"x{i}", "type": "string"}}, **after}
    documents[f"d{count}"] = {
        "$id": f"d{count}",
        "properties": {f"p{i}": {"$dynamicRef": f"#x{i}"} for i in range(count)},
        "$defs": {f"y{i}": {"$dynamicAnchor": f"x{i}"} for i in range(count)},
    }
    return {"$id": "http://a.example/", "$ref": "d0", "$defs": documents}


def build_self_references(count: int) -> dict[str, Any]:
    """Return a schema whose definitions refer to themselves."""
    return {"$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i}"}]} for i in range(count)}, "$ref": "#/$defs/d0"}


def nest_one_of(depth: int, width: int) -> dict[str, Any]:
    """Return a schema of nested oneOf."""
    schema: dict[str, Any] = {"type": "string"}
    for level in range(depth):
        schema = {
            "oneOf": [
                {"properties": {f"k{level}": {"const": way}, "next": schema}, "required": [f"k{level}"]}
                for way in range(width)
            ]
        }
        if len(json.dumps(schema)) > 3_000_000:
            break
    return schema


ROWS: tuple[Row, ...] = (
    *list_wrong_results(),
    *list_exhausted_budgets(),
    *list_foreign_errors(),
    *list_published_classes(),
    *list_long_steps(),
    *list_calls(),
)

"""Slips in schemas are warned of, from every entry point, every time, at the caller's line; annotations are not."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain import Style, Vocabulary
from constrain.base.errors import SchemaWarning
from constrain.frontends.json_schema import KEYWORDS
from constrain.frontends.json_schema.reading.schema_references import ReferenceResolver
from constrain.frontends.json_schema.reports import suspicious_keywords
from constrain.frontends.json_schema.reports.suspicious_keywords import (
    build_warnings,
    find_near_keyword,
    find_suspicious_names,
)

BYTES = Vocabulary.bytes()
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def list_suspicious(schema: Any, **style: Any) -> list[str]:
    """Return the subject and the pointer of each suspicious name."""
    found = find_suspicious_names(schema, ReferenceResolver(schema, None), Style(**style))
    return [f"{one.subject} {one.pointer}" for one in found]


# ---- misspelt keywords ------------------------------------------------------------------------------------------


def edits(name: str) -> list[str]:
    """Names one edit away: a letter left out, doubled, replaced, or two letters transposed."""
    out = []
    for k in range(len(name)):
        out += [name[:k] + name[k + 1 :], name[:k] + name[k] + name[k:], name[:k] + "q" + name[k + 1 :]]
        if k + 1 < len(name) and name[k] != name[k + 1]:
            out.append(name[:k] + name[k + 1] + name[k] + name[k + 2 :])
    return out


NAMES = sorted({row.name for row in KEYWORDS})


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) >= 5])
def test_every_name_one_edit_from_a_keyword_is_near_it(name: str) -> None:
    for misspelling in edits(name):
        near = find_near_keyword(misspelling)
        assert near == name or misspelling in NAMES or (near and sum(a != b for a, b in zip(near, name)) <= 2), (
            misspelling
        )
    for written in (name.upper(), name.lower(), name.replace("$", ""), name.replace("I", "_i").replace("P", "-p")):
        assert find_near_keyword(written) == name


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) >= 8])
def test_letters_exclude_nothing_at_a_distance_of_two(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    misspellings = [twice for once in sorted(edits(name))[::7] for twice in sorted(edits(once))[::31]]
    found = [suspicious_keywords._find_near_keyword.__wrapped__(one) for one in misspellings]
    monkeypatch.setattr(suspicious_keywords, "_has_near_letters", lambda _: True)
    assert found == [suspicious_keywords._find_near_keyword.__wrapped__(one) for one in misspellings]


@pytest.mark.parametrize(
    ("misspelling", "meant"),
    [
        ("maxlenght", "maxLength"),
        ("propertys", "properties"),
        ("requried", "required"),
        ("enumm", "enum"),
        ("additionalproperties", "additionalProperties"),
        ("additionnal_properties", "additionalProperties"),
        ("ref", "$ref"),
        ("tpye", "type"),
        ("anyof", "anyOf"),
        ("min_items", "minItems"),
        ("patern", "pattern"),
        ("item", "items"),
        ("unevalutedPropertes", "unevaluatedProperties"),
    ],
)
def test_common_misspellings(misspelling: str, meant: str) -> None:
    assert find_near_keyword(misspelling) == meant


@pytest.mark.parametrize(
    "schema",
    [{"name": "str"}, {"title": "str", "price": "float"}, {"age": {"type": "integer"}, "name": {"type": "string"}}],
)
def test_names_with_types_are_not_taken_for_a_schema(schema: dict[str, Any]) -> None:
    with pytest.warns(SchemaWarning, match=r"without a keyword .* so it asserts nothing; write .*properties"):
        constrain.compile(BYTES, schema=schema)


@pytest.mark.parametrize("schema", [{}, {"title": "str"}, {"name": "text"}, {"$defs": {}}, {"x": {"default": 1}}])
def test_a_schema_of_annotations_is_no_mistake(schema: dict[str, Any]) -> None:
    assert not list_suspicious(schema)


@pytest.mark.parametrize(
    "name",
    [
        "note",
        "name",
        "node",
        "when",
        "label",
        "widget",
        "order",
        "group",
        "hint",
        "help",
        "unit",
        "tags",
        "kind",
        "value",
        "options",
        "version",
        "markdownDescription",
        "enumNames",
        "defaultSnippets",
        "tsType",
        "deprecationMessage",
        "x-order",
        "displayName",
        "constraints",
        "_format",
        "//pattern",
        "propertyOrder",
        "$$target",
        "",
        "a" * 1_000,
    ],
)
def test_annotations_are_not_suspicious(name: str) -> None:
    for value in ("text", 1, True, ["a"], {"a": {}}):
        assert not list_suspicious({name: value})


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"maxlenght": 3}, ["`maxlenght` is /maxlenght"]),
        ({"properties": {"a/b": {"propertys": {}}}}, ["`propertys` is /properties/a~1b/propertys"]),
        ({"anyOf": [{"not": {"minimun": 1}}]}, ["`minimun` is /anyOf/0/not/minimun"]),
        ({"$defs": {"a": {"format": "datetime"}}}, ["The format 'datetime' is /$defs/a/format"]),
        ({"format": "phone"}, ["The format 'phone' is /format"]),
        ({"type": "string", "nullable": True}, ["`nullable` is /nullable"]),
        ({"$schema": DRAFT_7, "dependentRequired": {}}, ["`dependentRequired` is /dependentRequired"]),
        ({"$schema": DRAFT_7, "prefixItems": [{}]}, ["`prefixItems` is /prefixItems"]),
        ({"$schema": DRAFT_4, "const": 1}, ["`const` is /const"]),
        ({"dependencies": {}}, ["`dependencies` is /dependencies"]),
        ({"divisibleBy": 2}, ["`divisibleBy` is /divisibleBy"]),
        ({"inclusiveMaximum": 2}, ["`inclusiveMaximum` is /inclusiveMaximum"]),
    ],
)
def test_suspicious_names_have_a_pointer(schema: Any, found: list[str]) -> None:
    assert list_suspicious(schema) == found


@pytest.mark.parametrize(
    "schema",
    [
        # names of properties and values
        {"properties": {"maxlenght": {}, "nullable": {}, "format": {"const": "phone"}}, "required": ["maxlenght"]},
        {"const": {"maxlenght": 3}},
        {"enum": [{"format": "phone"}]},
        {"default": {"maxlenght": 3}},
        {"examples": [{"maxlenght": 3}]},
        {"patternProperties": {"maxlenght": {}}},
        {"dependentRequired": {"maxlenght": []}},
        # OpenAPI, vendors, and what asserts nothing anyway
        {"example": {"maxlenght": 1}, "xml": {}, "externalDocs": {}, "discriminator": {"propertyName": "a"}},
        {"nullable": False},
        {"type": ["string", "null"], "nullable": True},
        {"nullable": True},
        {"anyOf": [{"type": "null"}, {}], "nullable": True},
        {"format": "int32"},
        {"format": "password"},
        {"additionalItems": True},
        {"id": "a"},
        {"definitions": {}},
        {"$schema": DRAFT_7, "$defs": {}},
        {"$comment": "", "readOnly": True, "title": "", "contentEncoding": "base64", "deprecated": True},
        {"$schema": DRAFT_7, "$ref": "#/definitions/a", "maxlenght": 3, "definitions": {"a": {}}},
        # not what the keyword could have, or beside it
        {"maxlenght": "3"},
        {"formats": ["a"]},
        {"types": "fruit"},
        {"item": 3},
        {"items": {}, "item": {}},
    ],
    ids=str,
)
def test_no_false_alarms(schema: Any) -> None:
    assert list_suspicious(schema) == []


def test_formats_are_not_looked_at_where_they_are_annotations() -> None:
    assert list_suspicious({"format": "phone"}, formats="annotate") == []


def test_a_dialect_below_has_its_own_keywords() -> None:
    inner = {"$id": "http://x/a", "$schema": DRAFT_7, "prefixItems": [{}], "dependencies": {}}
    assert list_suspicious({"properties": {"a": inner}}) == ["`prefixItems` is /properties/a/prefixItems"]


def test_equal_misspellings_are_one_warning() -> None:
    schema = {"properties": {str(k): {"maxlenght": 1} for k in range(50)}}
    messages = build_warnings(find_suspicious_names(schema, ReferenceResolver(schema, None), Style()))
    assert len(messages) == 1 and "and at 49 more" in messages[0] and "did you mean maxLength?" in messages[0]


# ---- who warns -----------------------------------------------------------------------------------------------------

SCHEMA = {"type": "string", "maxlenght": 3}


def generate() -> Any:
    return constrain.generate("demo", schema=SCHEMA, max_tokens=64, seed=1)


ENTRIES: dict[str, Callable[[], Any]] = {
    "compile a dict": lambda: constrain.compile(BYTES, schema=SCHEMA),
    "compile a text": lambda: constrain.compile(BYTES, schema='{"type": "string", "maxlenght": 3}'),
    "a form": lambda: constrain.json_schema(SCHEMA),
    "to_grammar": lambda: constrain.to_grammar(schema=SCHEMA),
    "generate": generate,
}


@pytest.mark.parametrize("name", [name for name in ENTRIES if name != "to_grammar" or hasattr(constrain, "to_grammar")])
def test_every_entry_point_warns_every_time_at_the_caller(name: str) -> None:
    if name == "generate":
        pytest.importorskip("transformers")
    for _ in range(3):
        with pytest.warns(SchemaWarning, match="maxLength") as caught:
            ENTRIES[name]()
        assert [Path(one.filename).name for one in caught if one.category is SchemaWarning] == [Path(__file__).name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SchemaWarning)
        with pytest.raises(SchemaWarning):
            ENTRIES[name]()


def test_a_later_process_issues_the_same_warning(tmp_path: Path) -> None:
    """Also where the program comes from the store; and no warning comes where there is nothing to warn of."""
    code = (
        "import constrain, warnings; warnings.simplefilter('always')\n"
        "v = constrain.Vocabulary.bytes()\n"
        "for schema in ({'type': 'string', 'maxlenght': 3}, {'type': 'string', 'maxLength': 3}):\n"
        "    with warnings.catch_warnings(record=True) as caught:\n"
        "        c = constrain.compile(v, schema=schema); c.matcher().mask()\n"
        "    print(len(caught))\n"
    )
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "", "CONSTRAIN_STORE": str(tmp_path), "PYTHONPATH": str(Path(constrain.__file__).parents[1])},
        )
        assert run.stdout.split() == ["1", "0"]

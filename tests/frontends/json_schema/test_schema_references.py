"""References by relative URI: their base, the dialect of what they name, folders on the command line, wrong URIs."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

import pytest
from hypothesis import given, strategies as st

import constrain
from constrain import Vocabulary
from constrain.base.errors import SchemaError, UnsatisfiableError
from constrain.base.json_documents import References
from constrain.frontends.json_schema import to_grammar
from constrain.frontends.json_schema.reading.schema_references import PLAIN_URI, PLAIN_URI_REFERENCE, split_uri
from tests.recogniser_oracle import accepts

BYTES = Vocabulary.bytes()
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"


def judge(constraint: constrain.Constraint, text: str) -> bool:
    matcher = constraint.matcher()
    try:
        matcher.advance_bytes(text.encode())
    except constrain.ConstrainError:
        return False
    return matcher.is_complete


# ---- the base ------------------------------------------------------------------------------------------------------

BASES = [
    ("http://x/a/b.json", "c.json", "http://x/a/c.json"),
    ("http://x/a/b.json", "/c.json", "http://x/c.json"),
    ("http://x/a/b.json", "../c", "http://x/c"),
    ("http://x/a/b.json#frag", "c", "http://x/a/c"),
    ("file:///d/e/s.json", "f/g.json", "file:///d/e/f/g.json"),
    ("", "c.json", "c.json"),
    ("http://x/a", "http://y/b", "http://y/b"),
]


@pytest.mark.parametrize(("base", "reference", "uri"), BASES)
def test_relative_references_have_a_base(base: str, reference: str, uri: str) -> None:
    schema, registry = {"items": {"$ref": reference + "#/$defs/n"}}, {uri: {"$defs": {"n": {"type": "null"}}}}
    made = [
        constrain.compile(BYTES, schema=schema, registry=registry, base_uri=base),
        constrain.compile(BYTES, schema=json.dumps(schema), registry=registry, base_uri=base),
        constrain.compile(BYTES, constrain.json_schema(schema, registry=registry, base_uri=base)),
    ]
    for constraint in made:
        assert judge(constraint, "[null]") and not judge(constraint, "[1]")


def test_keys_of_the_registry_are_relative_too_and_the_schemas_own_id_comes_first() -> None:
    registry = {"b.json": {"const": 1}}
    assert accepts(to_grammar({"$ref": "b.json"}, registry=References(registry, "http://x/y/a.json")), "1")
    schema = {"$id": "http://z/s.json", "$ref": "b.json"}
    with pytest.raises(SchemaError, match=r"http://z/b\.json"):
        to_grammar(schema, registry=References(registry, "http://x/y/a.json"))
    assert accepts(to_grammar(schema, registry={"http://z/b.json": {"const": 1}}), "1")
    assert accepts(
        to_grammar({"$id": "sub/", "$ref": "b"}, registry=References({"sub/b": {"const": 1}}, "http://x/")), "1"
    )


def test_different_bases_are_different_sources(tmp_path: Path) -> None:
    registry = {"http://x/n": {"const": 1}, "http://y/n": {"const": 2}}
    made = [
        constrain.compile(BYTES, schema={"$ref": "n"}, registry=registry, base_uri=f"http://{host}/") for host in "xyx"
    ]
    assert [[judge(one, text) for text in "12"] for one in made] == [[True, False], [False, True], [True, False]]
    made[1].save(tmp_path / "saved")
    assert judge(constrain.Constraint.load(tmp_path / "saved", BYTES), "2")


@pytest.mark.parametrize("base", ["http://[", "//[::x]/", "http://[::1"])
def test_a_base_that_is_no_uri(base: str) -> None:
    with pytest.raises(SchemaError, match="is not a URI"):
        constrain.compile(BYTES, schema={"$ref": "a"}, base_uri=base)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$id": "http://["}, "/$id"),
        ({"items": {"$id": "http://[", "type": "null"}}, "/items/$id"),
        ({"$ref": "//[::x]/#"}, "/$ref"),
        ({"properties": {"a": {"$ref": "http://["}}}, "/properties/a/$ref"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://["}, "/id"),
        ({"$dynamicRef": "http://[#a"}, "/$dynamicRef"),
        ({"$ref": "#/allOf/" + "1" * 5_000, "allOf": [{}]}, "/$ref"),
        ({"$ref": "#/allOf/00", "allOf": [{}]}, "/$ref"),
        ({"$ref": "#/allOf/\u0660", "allOf": [{}]}, "/$ref"),
        ({"$ref": "#/allOf/-1", "allOf": [{}]}, "/$ref"),
    ],
)
def test_invalid_uris_and_pointers_are_reported_by_pointer(schema: Any, pointer: str) -> None:
    for ask in (to_grammar, lambda one: constrain.compile(BYTES, schema=one)):
        with pytest.raises(SchemaError) as caught:
            ask(schema)
        assert caught.value.pointer == pointer


# ---- the dialect of what is referred to ----------------------------------------------------------------------------

TUPLE = {"items": [{"type": "null"}], "$defs": {"a": {"items": [{"type": "null"}]}}}
"""In draft 7 an array of null, in 2020-12 no schema."""


def test_a_document_is_read_in_the_dialect_of_who_refers_to_it() -> None:
    for reference in ("b", "b#/$defs/a"):
        grammar = to_grammar({"$schema": DRAFT_7, "allOf": [{"$ref": reference}]}, registry={"b": TUPLE})
        assert accepts(grammar, "[null,1]") and not accepts(grammar, "[1]")
        with pytest.raises(SchemaError):
            to_grammar({"allOf": [{"$ref": reference}]}, registry={"b": TUPLE})
    assert accepts(to_grammar({"$ref": "b"}, registry={"b": {"$schema": DRAFT_7, **TUPLE}}), "[null,1]")


def test_one_document_can_be_read_in_two_dialects() -> None:
    """`dependentRequired` is a keyword of 2019-09, and none of draft 7."""
    shared = {"type": "object", "dependentRequired": {"a": ["b"]}, "$defs": {"n": {"$anchor": "n", "type": "null"}}}
    schema = {
        "$schema": DRAFT_7,
        "properties": {"old": {"$ref": "shared"}, "new": {"$ref": "newer"}},
        "required": ["old", "new"],
    }
    newer = {"$schema": DRAFT_2019, "$ref": "shared"}
    grammar = to_grammar(schema, registry={"shared": shared, "newer": newer})
    assert accepts(grammar, '{"old":{"a":1},"new":{"a":1,"b":1}}')
    assert not accepts(grammar, '{"old":{"a":1},"new":{"a":1}}')


# ---- loops ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "takes", "refuses"),
    [
        ({"if": False, "then": {"$ref": "#"}}, "1", None),
        ({"if": True, "else": {"$ref": "#"}}, "1", None),
        ({"if": {"not": {}}, "then": {"$ref": "#"}, "type": "null"}, "null", "1"),
        ({"if": {"enum": []}, "then": {"$ref": "#"}, "else": {"type": "null"}}, "null", "1"),
        ({"if": {"minLength": 5, "maxLength": 3, "type": "string"}, "then": {"allOf": [{"$ref": "#"}]}}, '"a"', None),
        ({"anyOf": [{"type": "null"}, {"allOf": [False, {"$ref": "#"}]}]}, "null", "1"),
    ],
)
def test_unreachable_circular_references_are_accepted(schema: Any, takes: str, refuses: str | None) -> None:
    grammar = to_grammar(schema)
    assert accepts(grammar, takes) and (refuses is None or not accepts(grammar, refuses))


@pytest.mark.parametrize("schema", [
    {"allOf": [{"$ref": "#"}]}, {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, {"not": {"$ref": "#"}},
    {"if": {"type": "null"}, "then": {"$ref": "#"}}, {"$ref": "#"}, {"dependentSchemas": {"a": {"$ref": "#"}}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
])  # fmt: skip
def test_circular_references_are_reported(schema: Any) -> None:
    with pytest.raises(SchemaError, match=r"refers to itself|applies itself"):
        to_grammar(schema)


def test_circular_definitions_need_a_bounded_number_of_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which keywords exclude each other is found by bisection, not by one trial for each keyword."""
    from constrain.frontends.json_schema.emission import unsatisfiable_core

    trials = 0
    empty = unsatisfiable_core._is_empty

    def counted(*arguments: Any) -> bool:
        nonlocal trials
        trials += 1
        return empty(*arguments)

    monkeypatch.setattr(unsatisfiable_core, "_is_empty", counted)
    node = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/$defs/node"}}}
    others = {f"p{k}": {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}} for k in range(100)}
    schema = {"type": "object", "required": ["n"], "properties": {**others, "n": {"$ref": "#/$defs/node"}}}
    with pytest.raises(UnsatisfiableError, match="exclude each other") as caught:
        to_grammar({**schema, "$defs": {"node": node}})
    assert "/required" in str(caught.value) and "/$defs/node/required" in str(caught.value)
    assert trials < 60


# ---- the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line in this process: code, stdout, stderr."""
    pytest.importorskip("typer")
    from constrain.cli import app

    def running(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        return app.run_command(arguments), *capsys.readouterr()

    return running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """order.json refers to common/code.json by path, and that to a document by its $id."""
    here = tmp_path / "schemas"
    (here / "common").mkdir(parents=True)
    (here / "order.json").write_text(json.dumps({"$ref": "common/code.json"}), "utf-8")
    (here / "common" / "code.json").write_text(
        json.dumps({"anyOf": [{"$ref": "http://x/id"}, {"$ref": "n.json"}]}), "utf-8"
    )
    (here / "common" / "n.json").write_text('{"const": 1}', "utf-8")
    (here / "named.json").write_text('{"$id": "http://x/id", "const": 2}', "utf-8")
    (here / "data.json").write_text("[1, 2]", "utf-8")
    return here


@pytest.mark.parametrize("text", ["1", "2", "3"])
def test_a_folder_is_a_registry(run: Any, folder: Path, text: str) -> None:
    pytest.importorskip("jsonschema")
    code, out, err = run("validate", str(folder / "order.json"), "-", "--registry", str(folder), stdin=text)
    assert code == (text == "3") and "jsonschema agrees" in out, out + err
    assert run("check", str(folder / "order.json"), "--registry", str(folder))[0] == 0
    inline = json.dumps({"$ref": "common/code.json"})
    assert run("validate", inline, "-", "--registry", str(folder), stdin=text)[0] == (text == "3")


def test_without_a_folder_nothing_beside_is_read(run: Any, folder: Path) -> None:
    code, _, err = run("check", str(folder / "order.json"))
    assert code == 2 and "not in the registry: file://" in err and "--registry" in err


def test_links_out_of_a_folder_are_not_followed(run: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"const": 7}', "utf-8")
    os.symlink(tmp_path / "secret.json", folder / "link.json")
    os.symlink(tmp_path, folder / "out")
    for reference in ("link.json", "out/secret.json"):
        (folder / "s.json").write_text(json.dumps({"$ref": reference}), "utf-8")
        code, _, err = run("check", str(folder / "s.json"), "--registry", str(folder))
        assert code == 2 and "not in the registry" in err


def test_a_folder_has_a_size(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from constrain.cli import common_arguments

    monkeypatch.setattr(common_arguments, "MOST_FILES", 3)
    code, _, err = run("check", "{}", "--registry", str(folder))
    assert code == 3 and "more than 3 JSON files" in err


@pytest.mark.parametrize("pattern", ["^(a+)+b", "^(a|a)*b$", "(a*)*b", "^(a?){20}a{20}b", "(x+x+)+y"])
def test_the_second_validator_takes_linear_time(run: Any, pattern: str) -> None:
    """It matches by an automaton, so forty characters cannot take for ever; a hang would be this test's failure."""
    pytest.importorskip("jsonschema")
    for schema in (
        {"pattern": pattern},
        {"patternProperties": {pattern: False}, "additionalProperties": {"type": "null"}},
    ):
        text = json.dumps("a" * 40 + "x" * 20)
        code, out, _ = run("validate", json.dumps(schema), "-", stdin=text if "pattern" in schema else f"{{{text}: 1}}")
        assert code == 1 and "jsonschema agrees" in out


URIS = (
    st.from_regex(PLAIN_URI, fullmatch=True)
    | st.from_regex(PLAIN_URI_REFERENCE, fullmatch=True)
    | st.from_regex("((https?:)?//)?[a-zA-Z.:@0-9]*/?[A-Z%20;?-]*#?[a-z#]*", fullmatch=True)
)


@given(URIS)
def test_a_plain_uri_is_split_as_any_other(uri: str) -> None:
    urlsplit(uri)  # does not raise
    assert split_uri(uri, "") == tuple(urldefrag(uri))

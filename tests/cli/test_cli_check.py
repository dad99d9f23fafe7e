"""`constrain check` and `constrain infer` from the command line: their output and exit codes."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

pytest.importorskip("typer")

from constrain.base.json_documents import pointer_token
from constrain.cli import app
from constrain.cli.schema_positions import find_positions
from tests.command_line_factory import Answer, Run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process; a first argument that is not a str is a schema."""

    def running(*arguments: str, stdin: str = "") -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = app.run_command(arguments)
        return Answer(code, *capsys.readouterr())

    return running


# ---- where things stand ------------------------------------------------------------------------------------------

documents = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.sampled_from(['"', "\\", "a/b", "~", "}", ","]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def pointers(value: Any, pointer: str = "") -> set[str]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {pointer}.union(*(pointers(item, f"{pointer}/{pointer_token(key)}") for key, item in inside))


@given(documents, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_pointer_has_its_line(value: Any, indent: int | None, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    found = find_positions(text)
    assert set(found.lines) == pointers(value)
    assert found.twice == []
    lines = text.split("\n")
    for pointer, line in found.lines.items():
        name = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        holder = value
        for part in pointer.split("/")[1:-1]:
            holder = (
                holder[int(part)] if isinstance(holder, list) else holder[part.replace("~1", "/").replace("~0", "~")]
            )
        if pointer and isinstance(holder, dict):
            assert json.dumps(name, ensure_ascii=plain) in lines[line - 1]


def test_keys_that_are_written_twice() -> None:
    found = find_positions('{"a": 1,\n "b/c": [1,\n {"x": {}, "x": 2}],\n "\\u0061": 3}')
    assert found.twice == [("/b~1c/1/x", 3, 3), ("/a", 1, 4)]
    assert found.lines["/a"] == 4


# ---- check -------------------------------------------------------------------------------------------------------


def noted(answer: Answer) -> dict[str, tuple[str, int | None]]:
    return {note["pointer"]: (note["text"], note["line"]) for note in answer.document["notes"]}


def test_check_reports_suspicious_parts_of_a_schema(run: Run) -> None:
    schema = """{"properties": {
        "a": {"minlength": 1},
        "a": {"minLength": 1},
        "n": {"type": "integer", "minimum": 5, "maximum": 3},
        "b": {"contentEncoding": "base64", "title": "B"}},
      "dependencies": {"a": ["n"]}}"""
    notes = noted(run("check", schema, "--json"))
    assert notes["/properties/a"] == ("repeated key: line 3 overrides line 2", 3)
    assert notes["/properties/n"] == ("nothing satisfies this part", 4)
    assert notes["/dependencies"][0].endswith("write dependentRequired or dependentSchemas")
    assert "not looked at" in notes["/properties/b/contentEncoding"][0]
    assert set(notes) == {"/properties/a", "/properties/n", "/dependencies", "/properties/b/contentEncoding"}
    assert "repeated key" in run("check", schema).out


def test_nothing_to_look_at(run: Run) -> None:
    answer = run(
        "check", '{"type": "object", "properties": {"a": {"type": "string", "title": "A"}}, "required": ["a"]}'
    )
    assert answer.code == 0 and "look at" not in answer.out
    assert "/required\tby the set of keys" in answer.out


def test_all_errors_are_reported_at_once(run: Run) -> None:
    schema = '{"type": "strng",\n "minLength": -1,\n "properties": {"a": {"enum": 3}}}'
    answer = run("check", schema)
    assert answer.code == 2 and answer.out == ""
    for said in ("3 errors", "at /type", "at /minLength", "line 3", "at /properties/a/enum"):
        assert said in answer.err
    found = run("check", schema, "--json")
    assert found.code == 2
    assert [error["pointer"] for error in found.document["errors"]] == ["/type", "/minLength", "/properties/a/enum"]


def test_errors_in_unreferenced_definitions_are_only_noted(run: Run) -> None:
    answer = run("check", '{"type": "null", "$defs": {"a": {"type": 5}}}', "--json")
    assert answer.code == 0
    assert noted(answer)["/$defs/a/type"][0].startswith("invalid, although nothing refers to it")


def test_names_in_dependencies_are_no_schema(run: Run) -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#",
              "dependencies": {"a": ["b"], "c": {"minProperties": 3}}}  # fmt: skip
    assert noted(run("check", json.dumps(schema), "--json")) == {}


def test_all_unsupported_keywords_are_reported(run: Run) -> None:
    answer = run("check", '{"prefixItems": [{"const": "\\ud800"}, {"const": "\\udfff"}]}')
    assert answer.code == 3 and answer.out.count("\tnot supported\t") == 2


def test_the_type_is_not_blamed_for_a_clash(run: Run) -> None:
    answer = run("check", '{"type": "integer", "minimum": 5,\n "maximum": 3}')
    assert answer.code == 1
    assert "/maximum  (line 2)" in answer.out and "/type" not in answer.out


def test_targets(run: Run) -> None:
    schema = '{"type": "object",\n "properties": {"a": {"type": "string",\n "minLength": 1}}}'
    answer = run("check", schema, "--target", "openai", "--target", "gemini", "--json")
    assert answer.code == 1
    found = answer.document["targets"]
    assert list(found) == ["openai", "gemini"]
    assert found["openai"]["verdict"] == "refused" and found["openai"]["read"] >= "2026-11-21"
    (finding,) = found["gemini"]["findings"]
    assert (finding["pointer"], finding["line"], finding["verdict"]) == ("/properties/a/minLength", 3, "ignored")
    assert "openai\trefused\t/properties/a/minLength\tminLength\t" in run("check", schema, "--target", "all").out
    assert run("check", '{"type": "integer"}', "--target", "gemini").code == 0
    assert run("check", schema, "--target", "gpt").code == 2
    assert run("check", '{"type": 5}', "--target", "openai").code == 2


def test_a_terminal_gets_a_line_for_each_subschema(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {"properties": {f"p{n}": {"type": "string", "maxLength": n, "colour": n} for n in range(60)}}

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def shown(*arguments: str) -> str:
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setenv("COLUMNS", "100")
        assert app.run_command(("check", json.dumps(many), *arguments)) in (0, 1)
        monkeypatch.undo()
        return re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())

    printed = shown()
    assert "automaton" in printed and "frame" in printed and "p38" in printed
    assert "p59" not in printed and "21 more subschemas" in printed
    assert "/properties/p0/colour and 59 more" in printed
    assert "/properties/p59/colour" in shown("--all")
    assert "and 56 more" in shown("--target", "openai")


# ---- infer -------------------------------------------------------------------------------------------------------


def test_infer(run: Run, tmp_path: Any) -> None:
    pytest.importorskip("genson")
    lines = [{"at": "2026-11-21", "n": n, "state": "on"} for n in range(3)]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n", "utf-8")
    answer = run("infer", str(path), "--tight")
    assert answer.code == 0 and "3 examples, all accepted" in answer.err
    found = json.loads(answer.out)
    assert found["properties"] == {
        "at": {"type": "string", "format": "date"},
        "n": {"type": "integer", "minimum": 0, "maximum": 2},
        "state": {"type": "string", "enum": ["on"]},
    }
    assert found["required"] == ["at", "n", "state"] and found["additionalProperties"] is False
    assert run("infer", "-", stdin='["\x9b31m", "\x9b31m", "\x9b31m"]').out.count("\\u009b31m") == 1
    array = run("infer", "-", "--json", "--open", stdin=json.dumps(lines)).document
    assert array["examples"] == 3 and "additionalProperties" not in array["schema"]
    assert run("infer", "-", stdin='{"a": 1}').code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[]", "no example"),
        ('{"a": 1}\n{"a": }\n', "line 2, column 7"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1}\n{"a": 1e400}', "1e400 is beyond the range of a float"),
        ('"\\ud800"', "is not a JSON value"),
    ],
)
def test_infer_of_what_is_no_example(run: Run, text: str, said: str) -> None:
    pytest.importorskip("genson")
    answer = run("infer", "-", stdin=text)
    assert answer.code == 2 and said in answer.err


# ---- the page that tells of all this -----------------------------------------------------------------------------

PAGE = ROOT / "docs" / "how-to" / "check-a-schema.md"


def test_the_commands_of_the_how_to(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("genson")
    (tmp_path / "schemas").symlink_to(ROOT / "schemas")
    (tmp_path / "examples.jsonl").write_text('{"a": 1}\n{"a": 2}\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ constrain (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        answer = run(*shlex.split(command))
        assert answer.code == ("--target" in command) and answer.out, command


def test_the_python_of_the_how_to() -> None:
    pytest.importorskip("genson")
    for source in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(source, {})
        expected = re.findall(r"^#> (.*)$", source, re.MULTILINE)
        assert expected and set(expected) <= set(printed.getvalue().splitlines())

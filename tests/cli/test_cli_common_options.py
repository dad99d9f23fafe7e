"""The options that every command which compiles shares: they mean what the fields of `Style` and `registry` mean."""

from __future__ import annotations

import dataclasses
import inspect
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("jsonschema")

from constrain.base.options import Style
from constrain.cli import app, common_arguments

Run = Callable[..., tuple[int, str, str]]
COMMANDS = ("generate", "batch", "score", "repair", "check", "validate", "sample", "explain")
COMMON = {"$id": "https://example.org/common", "$defs": {"code": {"type": "string", "pattern": "^[A-Z]{2}$"}}}
ORDER = json.dumps({"type": "object", "properties": {"c": {"$ref": "https://example.org/common#/$defs/code"}},
                    "required": ["c"], "additionalProperties": False})  # fmt: skip


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process: code, stdout, stderr."""

    def running(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        return app.run_command(arguments), *capsys.readouterr()

    return running


@pytest.fixture
def common(tmp_path: Path) -> str:
    """A file with a document that has an $id."""
    path = tmp_path / "common.json"
    path.write_text(json.dumps(COMMON), "utf-8")
    return str(path)


def test_every_field_of_style_is_an_option() -> None:
    options = inspect.signature(common_arguments.read_arguments).parameters
    assert {field.name for field in dataclasses.fields(Style)} <= set(options)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_compiles_has_them(run: Run, command: str) -> None:
    shown = run(command, "--help")[1]
    for name in inspect.signature(common_arguments.read_arguments).parameters:
        option = {"base": "", "anything": "--any"}.get(name, "--" + name.replace("_", "-"))
        assert option in shown


@pytest.mark.parametrize(
    ("schema", "instance", "options", "valid"),
    [
        ('{"format": "date"}', '"soon"', (), False),
        ('{"format": "date"}', '"soon"', ("--formats", "annotate"), True),
        ('{"type": "integer"}', "1.0", (), True),
        ('{"type": "integer"}', "1.0", ("--numbers", "plain"), False),
        ('{"const": "a"}', '"\\u0061"', (), True),
        ('{"const": "a"}', '"\\u0061"', ("--escapes", "canonical"), False),
        ('{"type": "integer"}', "12345", ("--digits", "4"), False),
        ('{"type": "integer"}', "1234", ("--digits", "4"), True),
        ('{"type": "array"}', "[ ]", ("--whitespace", "compact"), False),
    ],
)
def test_style(run: Run, schema: str, instance: str, options: tuple[str, ...], valid: bool) -> None:
    code, out, err = run("validate", schema, "-", *options, "--json", stdin=instance)
    assert (code, json.loads(out)["results"][0]["valid"]) == (int(not valid), valid), err


def test_formats_are_no_difference_where_nobody_asserts_them(run: Run) -> None:
    assert "jsonschema agrees" in run("validate", '{"format": "date"}', "-", "--formats", "annotate", stdin='"soon"')[1]


def test_an_option_that_is_none_is_refused(run: Run) -> None:
    for option, value in (("--formats", "maybe"), ("--escapes", "none"), ("--numbers", "1"), ("--digits", "0")):
        code, _, err = run("sample", "{}", option, value)
        assert code == 2 and option in err


# ---- registry ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_references_into_another_file(run: Run, common: str, command: str, tmp_path: Path) -> None:
    rows, output = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text('{"prompt": "A code."}', "utf-8")
    arguments = {
        "batch": (str(rows), str(output), "--schema", ORDER, "--json"),
        "generate": ("--schema", ORDER, "--max-tokens", "64", "--seed", "1"),
        "score": ('{"c": "AB"}', "--schema", ORDER),
        "repair": ("-", "--schema", ORDER),
        "validate": (ORDER, "-"),
        "explain": ("--schema", ORDER),
    }.get(command, (ORDER,))
    if command in ("generate", "batch", "score"):
        pytest.importorskip("transformers")
    code, out, err = run(command, *arguments, "--registry", common, stdin='{"c": "AB"}')
    assert code == 0 and out, err
    code, _, err = run(command, *arguments, stdin='{"c": "AB"}')
    assert code == 2 and "at /properties/c/$ref" in err and "--registry" in err


def test_both_validators_use_the_registry(run: Run, common: str) -> None:
    for text, code in (('{"c": "AB"}', 0), ('{"c": "ab"}', 1)):
        found, out, _ = run("validate", ORDER, "-", "--registry", common, stdin=text)
        assert found == code and "jsonschema agrees" in out


def test_a_document_is_named_on_the_command_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "n.json"
    path.write_text('{"const": 0.1}', "utf-8")
    code, out, err = run("sample", '{"$ref": "n.json"}', "--registry", f"n.json={path}", "-n", "1")
    assert (code, out) == (0, "0.1\n"), err
    code, out, err = run("check", '{"$ref": "n.json"}', "--registry", f"n.json={path}", "--target", "openai", "--json")
    assert code == 1 and json.loads(out)["targets"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "no $id"), ("true", "no $id"), ('{"$id": "#a"}', "no $id"), ("[1]", "must be an object"),
        ("{", "line 1"), ("", "empty"),
    ],
)  # fmt: skip
def test_registry_documents_without_id_or_invalid_are_refused(
    run: Run, tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content, "utf-8")
    code, _, err = run("sample", "{}", "--registry", str(path))
    assert code == 2 and err.startswith(f"error: {path}: ") and said in err
    if said == "no $id":
        assert f"--registry URI={path}" in err


def test_two_documents_of_one_name(run: Run, common: str, tmp_path: Path) -> None:
    other: Any = tmp_path / "other.json"
    other.write_text(json.dumps(COMMON), "utf-8")
    code, _, err = run("sample", "{}", "--registry", common, "--registry", str(other))
    assert code == 2 and err.startswith(f"error: {other}: ") and f"{common} is the other" in err


def test_a_document_that_is_not_there(run: Run) -> None:
    code, _, err = run("sample", "{}", "--registry", "u=/no/such")
    assert (code, err) == (2, "error: /no/such: No such file or directory\n")

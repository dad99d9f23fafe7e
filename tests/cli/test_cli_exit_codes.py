"""Exit codes: the same fault has the same code in every command that can have it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("transformers")

from constrain.cli import app
from constrain.cli.command_table import COMMANDS
from tests.command_line_factory import Run

ROOT = Path(__file__).resolve().parents[2]
UNSATISFIABLE = '{"type": "integer", "minimum": 5, "maximum": 3}'
UNSUPPORTED = '{"type": "array", "items": {"const": "\\ud800"}}'
DEEP = '{"not":' * 3000 + "{}" + "}" * 3000
Arguments = tuple[str, ...]

SCHEMA_COMMANDS: dict[str, Callable[[str, str], Arguments]] = {
    "generate": lambda schema, file: ("--schema", schema),
    "batch": lambda schema, file: (file, f"{file}.out", "--schema", schema),
    "score": lambda schema, file: ("1", "--schema", schema),
    "repair": lambda schema, file: (file, "--schema", schema),
    "check": lambda schema, file: (schema,),
    "validate": lambda schema, file: (schema, file),
    "sample": lambda schema, file: (schema,),
    "explain": lambda schema, file: ("--schema", schema),
    "demo": lambda schema, file: ("--schema", schema),
}
"""Command -> its arguments for a schema; `file` holds something harmless."""
FILE_COMMANDS: dict[str, Callable[[str], Arguments]] = {
    **{name: lambda path, name=name: SCHEMA_COMMANDS[name](path, path) for name in SCHEMA_COMMANDS},  # type: ignore[misc]
    "serve": lambda path: ("--api-key-file", path),
    "test": lambda path: (f"{path}.lark",),
    "view": lambda path: (f"{path}.lark",),
    "infer": lambda path: (path,),
}
MODEL_COMMANDS: dict[str, Arguments] = {
    "generate": ("--choice", "a", "--model"),
    "choose": ("a", "b", "--model"),
    "score": ("a", "--model"),
    "validate": (),
    "explain": ("--schema", "{}", "--model"),
    "serve": ("--port", "0"),
    "doctor": (),
}
OPTION_COMMANDS: dict[str, Arguments] = {
    "generate": ("--choice", "a", "--chat", "loud"),
    "batch": ("in", "out", "--engine", "steam"),
    "serve": ("--log-format", "yaml"),
    "choose": ("a", "--ends", "never"),
    "score": ("a", "--spellings", "some"),
    "repair": ("-", "--choice", "a", "--key-order", "none"),
    "check": ("{}", "--formats", "maybe"),
    "validate": ("{}", "-", "--numbers", "roman"),
    "sample": ("{}", "--whitespace", "99"),
    "test": ("json", "--lexer", "none"),
    "view": ("json", "--lexer", "none"),
    "explain": ("--schema", "{}", "--escapes", "none"),
}


@pytest.fixture
def harmless(tmp_path: Path) -> str:
    """A file that holds the text 1: a valid instance, answer and row-less job."""
    path = tmp_path / "one.json"
    path.write_text("1", "utf-8")
    return str(path)


@pytest.mark.parametrize("command", SCHEMA_COMMANDS)
@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ('{"type": "integer",}', 2),  # broken JSON
        ('{"type": "integre"}', 2),  # not a schema
        ('{"$ref": "nowhere"}', 2),  # a reference without a document
        (UNSATISFIABLE, 1),
        (UNSUPPORTED, 3),
        (DEEP, 3),  # a limit
    ],
    ids=["json", "schema", "reference", "unsatisfiable", "unsupported", "limit"],
)
def test_faults_of_schemas(run: Run, harmless: str, command: str, schema: str, code: int) -> None:
    answer = run(command, *SCHEMA_COMMANDS[command](schema, harmless))
    said = answer.err + answer.out
    assert answer.code == code, said
    assert said.strip()


@pytest.mark.parametrize("command", FILE_COMMANDS)
def test_a_missing_file(run: Run, command: str) -> None:
    answer = run(command, *FILE_COMMANDS[command]("/no/such/file.json"))
    assert answer.code == 2, answer.err
    assert "/no/such/file.json" in answer.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "-"),
        ("validate", "{}", "-"),
        ("infer", "-"),
        ("repair", "-", "--choice", "a"),
        ("serve", "--api-key-file", "-"),
        ("generate", "--schema", "-"),
        ("generate", "--choice", "a", "--prompt", "-"),
        ("generate", "--choice", "a", "--prompt-file", "-"),
    ],
    ids=" ".join,
)
def test_a_closed_stdin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: Arguments
) -> None:
    """Python has None in place of a stream that the caller has closed (`<&-`)."""
    monkeypatch.setattr(sys, "stdin", None)
    assert app.run_command(arguments) == 2
    assert "error: stdin: the stream is closed" in (said := capsys.readouterr().err) and "through a pipe" in said


@pytest.mark.skipif(os.name != "posix", reason="a shell that closes streams")
@pytest.mark.parametrize(
    ("closed", "arguments", "code", "out", "err"),
    [
        ("2>&-", "--version", 0, "constrain ", ""),
        ("2>&-", "sample '{\"const\": 5}'", 0, "5\n", ""),
        (">&-", "--version", 2, "", "error: stdout: Bad file descriptor\n"),
        (">&-", "validate nofile nofile", 2, "", "error: nofile: No such file or directory\n"),
        (">&- 2>&-", "--version", 2, "", ""),
    ],
)
def test_closed_outputs(closed: str, arguments: str, code: int, out: str, err: str) -> None:
    """Without stderr there are no messages; an answer for which there is no stdout is an error."""
    command = f"{shlex.quote(sys.executable)} -m constrain {arguments} {closed}"
    answer = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (answer.returncode, answer.stderr) == (code, err)
    assert answer.stdout.startswith(out)


@pytest.mark.parametrize("command", [name for name in MODEL_COMMANDS if name != "validate"])
def test_an_unknown_model(run: Run, command: str) -> None:
    answer = run(command, *MODEL_COMMANDS[command], "./no-such-folder")
    assert answer.code == 2, answer.err
    assert "no-such-folder" in answer.err


@pytest.mark.parametrize("command", OPTION_COMMANDS)
def test_an_unknown_value_of_an_option(run: Run, command: str) -> None:
    answer = run(command, *OPTION_COMMANDS[command])
    assert answer.code == 2, answer.err
    option = next(
        one for one in OPTION_COMMANDS[command] if one.startswith("--") and one not in ("--choice", "--schema")
    )
    assert option in answer.err


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option(run: Run, command: str) -> None:
    answer = run(command, "--no-such-option")
    assert answer.code == 2
    assert "--no-such-option" in answer.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--regex", "a("), 2),
        (("--regex", "a(?!.*)"), 1),
        (("--grammar", "/no/such.lark"), 2),
        (("--type", "integre"), 2),
        (("--type", "list[" * 200 + "int" + "]" * 200), 3),
        (("--pydantic", "no_such_module:Thing"), 2),
        (("--tools", "/no/such.json"), 2),
        (("--choice", "a", "--prompt-file", "/no/such.txt"), 2),
        (("--choice", "a", "--sampler", "none"), 2),
        (("--choice", "a", "--check", "sqlite=/no/such.sql"), 2),
        (("--choice", "x = )", "--check", "python", "--retries", "1"), 3),
    ],
)
def test_faults_of_generate(run: Run, arguments: Arguments, code: int) -> None:
    answer = run("generate", *arguments)
    assert answer.code == code, answer.err


@pytest.mark.parametrize("name", ["os:getcwd", "os:path", "os:sep", "os:environ", "math:pi", "typing:cast"])
def test_a_name_of_what_is_no_type(run: Run, name: str) -> None:
    answer = run("generate", "--pydantic", name)
    assert answer.code == 2
    assert f"'{name}' is " in answer.err and "which is not a type" in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("generate", "--regex", "a", "--choice", "b"), "--regex and --choice were given"),
        (("generate", "--schema", "-", "--prompt", "-"), "--schema and --prompt are both stdin"),
        (("repair", "-", "--schema", "-"), "FILE and --schema are both stdin"),
        (("serve", "--tool-format", "foo"), "hermes"),
        (("serve", "--limit", "max_n=-1"), "max_n is -1: it is"),
        (("serve", "--limit", "foo=1"), "the limits are max_body_bytes"),
        (("serve", "--limit", "max_toks=1"), "did you mean max_tokens?"),
        (("generate", "--choice", "a", "--seed", "-1"), "error: seed is -1"),
    ],
)
def test_an_error_names_the_argument(run: Run, arguments: tuple[str, ...], said: str) -> None:
    answer = run(*arguments)
    assert answer.code == 2
    assert said in " ".join(answer.err.replace("│", " ").split())

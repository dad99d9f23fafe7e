"""Junk for every parameter of every command: a documented exit code and a message within a screen, never a traceback.

The commands and their parameters are read from the application, so that a new one is tested, or fails for want of a
right call.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

typer = pytest.importorskip("typer")

from constrain.base.errors import LimitError  # noqa: E402
from constrain.cli import app  # noqa: E402
from constrain.cli.command_table import COMMANDS  # noqa: E402
from constrain.cli.source_options import read_bytes  # noqa: E402
from constrain.integrations import model_hub  # noqa: E402
from tests.model_factory import build_model  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SCREEN = 6_000
"""Most characters of a message."""
SCHEMA = '{"enum": [1, "a"]}'
GROUP = typer.main.get_command(app.app)
for name in COMMANDS:
    GROUP.get_command(None, name)  # commands are imported when they are called
RIGHT: dict[str, dict[str, list[str]]] = {
    "generate": {"choice": ["a", "b"], "max_tokens": ["9"]},
    "batch": {"source": ["EMPTY"], "output": ["NEW"], "choice": ["a", "b"]},
    "serve": {"port": ["0"]},
    "play": {"port": ["0"]},
    "choose": {"options": ["a", "b"]},
    "score": {"text": ["1"], "max_rows": ["64"], "n": ["2"]},
    "repair": {"file": ["FILE"], "schema": [SCHEMA]},
    "check": {"schema": [SCHEMA]},
    "validate": {"schema": [SCHEMA], "instances": ["FILE"]},
    "sample": {"schema": [SCHEMA], "n": ["1"]},
    "test": {"grammar": ["json"], "accept": ["FILE"]},
    "view": {"grammar": ["json"]},
    "infer": {"files": ["FILE"]},
    "explain": {"schema": [SCHEMA]},
    "compare": {"first": [SCHEMA], "second": [SCHEMA]},
    "demo": {"schema": [SCHEMA]},
    "warmup": {},
    "cache": {},
    "doctor": {"model": ["bytes"]},
}
"""A right call of each command; FILE: a file that holds the JSON text 1, EMPTY: an empty one, NEW: a file to write."""
INSTEAD = {"generate": dict.fromkeys(("schema", "regex", "grammar", "type_text", "pydantic", "tools"), "choice"),
           "explain": {"regex": "schema", "grammar": "schema", "choice": "schema"},
           "batch": {"schema": "choice", "regex": "choice", "grammar": "choice", "type_name": "choice"},
           "repair": {"regex": "schema", "grammar": "schema", "choice": "schema"}}  # fmt: skip
"""Parameters that stand in place of another one of the right call."""
DEPTH = 10_000
OF_GRAMMARS = ("empty", "binary", "latin", "deep group", "grammar", "digits")
"""Junk that is also given as a file of a grammar."""


def files() -> dict[str, bytes]:
    """Contents of junk files, by what to call them."""
    return {
        "empty": b"", "blank": b" \n\t\n", "nul": b"\0" * 100, "binary": bytes(range(256)) * 40,
        "latin": b'{"a": "\xe9"}',
        "utf-16": '{"a": 1}'.encode("utf-16"), "bom": b"\xef\xbb\xbf{}", "surrogate": b'{"const": "\\ud800"}',
        "deep list": b"[" * DEPTH, "deep object": b'{"not":' * DEPTH + b"{}" + b"}" * DEPTH,
        "deep closed": b"[" * DEPTH + b"]" * DEPTH, "deep group": b"start: " + b"(" * DEPTH + b'"a"' + b")" * DEPTH,
        "digits": b"9" * 20_000, "exponent": b'{"maximum": 1e999999999, "type": "number"}',
        "count": b'{"type": "array", "minItems": 999999999999}', "list": b"[1, 2]", "text": b'"x"', "null": b"null",
        "half": b'{"type": ', "twice": b'{"a": 1, "a": 2}', "kinds": b'{"type": 5, "properties": [], "$ref": {}}',
        "long line": b'{"' + b"x" * 200_000 + b'": 1}', "escape": b'{"type": "\x1b[31m"}', "nan": b"NaN",
        "circle": b'{"$ref": "#"}', "grammar": b"start: start\n", "blocks": b"--- accept\n--- nonsense\n",
    }  # fmt: skip


TEXTS = ("", "a\udc80b", "x" * 10_000, "\x1b[31m", "-1", "{", "nowhere/at/all", "../" * 2_000, "a=b", "--", "http://[")
"""Values of options that take a text; half surrogates are how Python has bytes of an argument that are not UTF-8."""
NUMBERS = ("", "-1", "0", "nan", "9" * 30, "9" * 5_000, "\udcff")
FIRST = {"generate": "schema", "check": "schema", "validate": "instances", "sample": "schema", "test": "grammar",
         "view": "grammar", "infer": "files", "explain": "schema", "demo": "schema", "doctor": "model",
         "compare": "first"}  # fmt: skip
"""The parameter of each command that is given every junk file; others are given a few."""
FEW = ("missing", "folder", "fifo", "binary.json", "deep object.json", "grammar.lark")


class Junk:
    """Junk files in a folder, and the right files beside them."""

    def __init__(self, folder: Path) -> None:
        self.right = folder / "right.json"
        self.right.write_text("1", encoding="utf-8")
        self.empty = folder / "empty.jsonl"
        self.empty.touch()
        self.outputs = (folder / f"output{number}.jsonl" for number in count())
        self.paths: dict[str, str] = {"missing": str(folder / "missing.json"), "folder": str(folder / "folder")}
        (folder / "folder").mkdir()
        (folder / "folder" / "a.json").write_bytes(b'{"a": "\xe9"}')
        for name, content in files().items():
            for end in (".json", ".lark", ".gbnf") if name in OF_GRAMMARS else (".json",):
                path = folder / f"{name}{end}"
                path.write_bytes(content)
                self.paths[f"{name}{end}"] = str(path)
        if hasattr(os, "mkfifo"):
            os.mkfifo(folder / "fifo.json")
            self.paths["fifo"] = str(folder / "fifo.json")
        (folder / "loop").symlink_to(folder / "loop")
        self.paths["loop"] = str(folder / "loop")


@pytest.fixture(scope="module")
def junk(tmp_path_factory: pytest.TempPathFactory) -> Junk:
    return Junk(tmp_path_factory.mktemp("junk"))


def call(command: str, junk: Junk, parameter: str = "", value: str = "") -> list[str]:
    """The right call of a command with one value put in."""
    given = {name: list(values) for name, values in RIGHT[command].items()}
    given.pop(INSTEAD.get(command, {}).get(parameter, ""), None)
    if parameter:
        given[parameter] = [value]
    options, arguments = [command], ["--"]
    for one in GROUP.commands[command].params:
        for text in given.get(one.name, ()):
            text = str({"FILE": junk.right, "EMPTY": junk.empty}.get(text, text))
            text = str(next(junk.outputs)) if text == "NEW" else text
            if one.param_type_name == "argument":
                arguments.append(text)
            elif one.opts[-1].startswith("--"):
                options.append(f"{one.opts[-1]}={text}")
            else:
                options += [one.opts[-1], text]
    return options + arguments


def hints() -> dict[str, dict[str, Any]]:
    """The type of each parameter of each command."""
    modules = {name: import_module(f"constrain.cli.{row.module}") for name, row in COMMANDS.items()}
    return {name: get_type_hints(getattr(modules[name], row.function)) for name, row in COMMANDS.items()}


def leaves(hint: Any) -> set[Any]:
    """The types that a hint is made of; Literal for any constants."""
    if get_origin(hint) is Literal:
        return {Literal}
    return set().union(*map(leaves, get_args(hint))) if get_args(hint) else {hint}


def parameters() -> Iterator[Any]:
    for command, kinds in hints().items():
        for one in GROUP.commands[command].params:
            if one.name in kinds and bool not in leaves(kinds[one.name]):
                yield pytest.param(command, one.name, id=f"{command} {one.name}")


def values(command: str, parameter: str, junk: Junk) -> dict[str, str]:
    """Junk for a parameter, by what to call it."""
    kinds = leaves(hints()[command][parameter])
    if parameter in ("output", "html"):  # a file to write: nothing in the working folder
        other = junk.paths["text.json"] if command == "batch" else "x.png"
        return {"folder": junk.paths["folder"], "in a file": f"{junk.right}/x.svg", "other": other}
    if kinds & {int, float}:
        return {f"number {text[:20]!r}": text for text in NUMBERS}
    few = {name: junk.paths[name] for name in ("missing", "folder", "empty.json", "latin.json", "half.json")}
    if command == "repair" and parameter in ("file", "regex", "choice"):  # a millisecond for each character
        return few if parameter == "file" else {f"text {text!r}": text for text in TEXTS[:2]}
    if (command, parameter) == ("batch", "source"):  # a model is loaded for each file with a row
        return few | {name: junk.paths[name] for name in ("fifo", "loop") if name in junk.paths}
    first = FIRST.get(command) == parameter
    found = {f"text {text[:20]!r}": text for text in (TEXTS if first else TEXTS[:3])}
    if Literal in kinds:
        return found
    return found | (junk.paths if first else {name: junk.paths[name] for name in FEW if name in junk.paths})


@pytest.fixture(autouse=True)
def small_and_alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small model in place of the embedded one, unless a name of a model is tested, no network, and a server that
    stops at once.
    """
    monkeypatch.setattr(model_hub, "check_hub", lambda: "no network in tests")
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    given = getattr(request.node, "callspec", None)
    if given is None or given.params.get("parameter") != "model":
        for module in ("generate", "demo", "choose", "score", "repair", "serve", "play"):
            monkeypatch.setattr(f"constrain.cli.{module}_command.load_with_note", lambda name: build_model("llama"))


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a command line: what is wrong with how it went, or ""."""

    def running(arguments: list[str], stdin: bytes = b"") -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        try:
            code = app.run_command(arguments)
        except BaseException as error:
            return f"{type(error).__name__}: {str(error)[:200]}"
        out, err = capsys.readouterr()
        if "Traceback" in err + out:
            return "a traceback"
        if code not in (0, 1, 2, 3):
            return f"exit code {code}"
        if len(err) > SCREEN:
            return f"a message of {len(err)} characters"
        return "" if code == 0 or (out + err).strip() else f"exit code {code} without a word"

    return running


@pytest.mark.parametrize("command", list(GROUP.commands))
def test_every_command_has_a_right_call(command: str, junk: Junk, answer: Callable[..., str]) -> None:
    assert answer(call(command, junk)) == ""
    assert app.run_command(call(command, junk)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("command", "parameter"), list(parameters()))
def test_junk_is_refused_with_a_short_message(
    command: str, parameter: str, junk: Junk, answer: Callable[..., str]
) -> None:
    wrong = []
    for name, value in values(command, parameter, junk).items():
        if said := answer(call(command, junk, parameter, value)):
            wrong.append(f"{name}: {said}")
    assert not wrong, "\n".join(wrong)


READS_STDIN = [("check", "schema"), ("validate", "instances"), ("sample", "schema"), ("test", "grammar"),
               ("test", "accept"), ("view", "grammar"), ("infer", "files"), ("explain", "schema"),
               ("generate", "schema")]  # fmt: skip
ON_STDIN = ("empty", "nul", "latin", "utf-16", "half", "deep list", "grammar")


@pytest.mark.parametrize(("command", "parameter"), READS_STDIN)
def test_junk_on_stdin(command: str, parameter: str, junk: Junk, answer: Callable[..., str]) -> None:
    wrong = [
        f"{name}: {said}"
        for name, content in files().items()
        if name in ON_STDIN and (said := answer(call(command, junk, parameter, "-"), content))
    ]
    assert not wrong, "\n".join(wrong)


CODES = {
    "missing": 2, "folder": 2, "loop": 2, "fifo": 2, "empty.json": 2, "blank.json": 2, "nul.json": 2, "binary.json": 2,
    "latin.json": 2, "utf-16.json": 2, "half.json": 2, "list.json": 2, "text.json": 2, "null.json": 2, "kinds.json": 2,
    "digits.json": 2, "nan.json": 2, "deep object.json": 3, "surrogate.json": 3,
}  # fmt: skip


@pytest.mark.parametrize("command", ["check", "validate", "sample", "explain", "generate"])
def test_the_exit_code_of_a_schema_file_is_as_documented(
    command: str, junk: Junk, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = {
        name: app.run_command(call(command, junk, "schema", junk.paths[name])) for name in CODES if name in junk.paths
    }
    capsys.readouterr()
    assert codes == {name: code for name, code in CODES.items() if name in junk.paths}


@pytest.mark.parametrize("command", [name for name in GROUP.commands if name not in ("warmup", "cache", "demo")])
def test_json_of_an_error_is_json(command: str, junk: Junk, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a file cannot be read, --json says so for machines, too."""
    parameter = "schema" if command in ("generate", "score") else next(iter(RIGHT[command]))
    if "as_json" not in [one.name for one in GROUP.commands[command].params] or command == "choose":
        pytest.skip("has no --json, or reads no file")
    capsys.readouterr()
    options = call(command, junk, parameter, junk.paths["folder"])
    assert app.run_command([options[0], "--json", *options[1:]]) == 2
    out = capsys.readouterr().out
    assert "error" in json.dumps(json.loads(out))


@pytest.mark.parametrize("arguments", [["check", b"\xff\xfe"], ["explain", "--regex", b"\xff"], [b"\xff"]])
def test_bytes_that_are_not_utf_8_as_arguments(arguments: list[Any]) -> None:
    """In a process of its own, whose arguments are bytes."""
    code = "from constrain.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, cwd=ROOT, check=False, timeout=300
    )
    assert done.returncode in (1, 2)
    assert done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize(("command", "encoding"), [(["sample", "-n", "1"], "ascii"), (["check"], "latin-1")])
def test_characters_missing_in_the_stream_encoding_are_escaped(command: list[str], encoding: str) -> None:
    code = "from constrain.cli.app import main; main()"
    schema = '{"const": "\u00e9\u4f60\U0001f600", "unknown": 1, "titel": "\u4f60"}'
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-c", code, *command, schema],
        capture_output=True,
        cwd=ROOT,
        env=environment,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    if command[0] == "sample":
        assert json.loads(done.stdout) == "\u00e9\u4f60\U0001f600"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
def test_a_pipe_is_read_and_one_without_a_writer_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert read_bytes(str(tmp_path / "fifo")) == b""
    reading, writing = os.pipe()
    os.write(writing, b"{}")
    os.close(writing)
    assert read_bytes(f"/dev/fd/{reading}") == b"{}"
    os.close(reading)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless file here")
def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(LimitError, match="/dev/zero"):
        read_bytes("/dev/zero")

"""`constrain validate`: violated keywords first, with lines, columns and carets, then what could have stood there."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.cli import app
from tests.command_line_factory import Answer, Run

SCHEMA = json.dumps({
    "type": "object",
    "properties": {"email": {"type": "string"}, "age": {"type": "integer", "maximum": 120}},
    "required": ["email"], "additionalProperties": False,
})  # fmt: skip
BAD = '{"age": 200,\n "emial": 3}'


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process."""

    def running(*arguments: str) -> Answer:
        capsys.readouterr()
        code = app.run_command(arguments)
        printed = capsys.readouterr()
        return Answer(code, printed.out, printed.err)

    return running


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "it.json"
        path.write_bytes(text.encode())
        return str(path)

    return write


def test_violations_are_named_with_places_and_carets(run: Run, file: Callable[[str], str]) -> None:
    path = file(BAD)
    answer = run("validate", SCHEMA, path)
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert lines[0] == f'{path}:1:1: invalid: "email" is required; is it "emial"?'
    assert lines[3] == f"{path}:1:9: invalid: /age: 200 is above maximum 120"
    assert lines[4].index("2") == lines[5].index("^") == 12
    assert lines[6].startswith(f'{path}:2:2: invalid: /emial: "emial" is not allowed')
    assert lines[8].index("^") == lines[7].index('"')
    assert lines[9].startswith("  at 1:12 could stand ")


def test_violations_as_json_are_those_of_the_function(run: Run, file: Callable[[str], str]) -> None:
    (result,) = run("validate", SCHEMA, file(BAD), "--json").document["results"]
    found = constrain.validate(SCHEMA, text=BAD)
    assert [one["message"] for one in result["violations"]] == [one.message for one in found]
    assert result["violations"][1]["line"] == 1 and result["violations"][1]["pointer"] == "/age"
    assert result["refusal"]["line"] == 1 and result["valid"] is False


def test_no_extra_is_needed(run: Run, file: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without(name: str, *more: Any, **options: Any) -> Any:
        if name.split(".")[0] == "jsonschema":
            raise ImportError(name)
        return plain(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    answer = run("validate", SCHEMA, file(BAD))
    assert "200 is above maximum 120" in answer.out and "cross-checked" not in answer.out


def test_many_violations_are_counted(run: Run, file: Callable[[str], str]) -> None:
    answer = run("validate", '{"items": {"type": "string"}}', file(json.dumps([1] * 50)))
    assert answer.out.count("is not a string") == 20
    assert "and 30 more: --json lists all" in answer.out


def test_a_schema_without_an_automaton_still_judges_values(run: Run, file: Callable[[str], str]) -> None:
    """Lengths that eight numbers divide are too large an automaton, and a question that a value answers."""
    schema = json.dumps({"type": "string", "allOf": [{"pattern": f"^(.{{{k}}})*$"} for k in range(31, 39)]})
    good, bad = run("validate", schema, file('""')), run("validate", schema, file('"a"'))
    assert (good.code, bad.code) == (0, 1)
    assert "does not match" in bad.out
    assert "values are judged, and not their spellings" in bad.err

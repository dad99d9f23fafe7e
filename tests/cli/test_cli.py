"""The command line as a user has it: answers, exit codes, and no traceback whatever is given."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("typer")
jsonschema = pytest.importorskip("jsonschema")

from constrain.base.options import Style  # noqa: E402
from constrain.cli import cross_check  # noqa: E402
from constrain.cli.common_arguments import SchemaOptions  # noqa: E402
from constrain.validation.instance_validation import validate  # noqa: E402
from tests.command_line_factory import Run  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PERSON = str(ROOT / "schemas" / "person.json")
UNSATISFIABLE = '{"type": "integer", "minimum": 5, "maximum": 3}'
UNSUPPORTED = '{"type": "array", "items": {"const": "\\ud800"}}'
GOOD = '{"name": "Al", "age": 15, "email": "a@example.org"}'
MODEL = ROOT / "constrain" / "demo" / "model.safetensors"
has_model = pytest.mark.skipif(not MODEL.exists(), reason="the embedded model is not in this checkout")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str | bytes], str]:
    """Writes a file: its path."""

    def writing(content: str | bytes, name: str = "x.json") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return writing


# ---- usage -------------------------------------------------------------------------------------------------------


COMMANDS = (
    "generate", "batch", "choose", "score", "repair", "check", "validate", "sample", "infer", "explain",
    "compare", "demo", "warmup", "cache", "doctor",
)  # fmt: skip


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_lists_the_exit_codes(run: Run, command: str) -> None:
    answer = run(*([command] if command else []), "--help")
    assert answer.code == 0
    assert "Exit codes" in answer.out
    assert command in ("", "warmup") or "--json" in answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_compile_have_the_style(run: Run, command: str) -> None:
    compiles = command in ("generate", "batch", "score", "repair", "check", "validate", "sample", "explain", "compare")
    assert ("--key-order" in run(command, "--help").out) == compiles


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",), ("check",), ("generate",), ("explain",), ("generate", "--regex", "a", "--choice", "b"),
        ("sample", PERSON, "--whitespace", "99"), ("sample", PERSON, "--key-order", "none"),
        ("sample", PERSON, "-n", "x"), ("validate", PERSON), ("choose",), ("score",), ("repair", PERSON),
        ("batch", PERSON),
        ("generate", "--regex", "a", "--search", "deep"), ("generate", "--regex", "a", "--search", "beam:"),
        ("generate", "--regex", "a", "--check", "sqlite"), ("generate", "--regex", "a", "--check", "ruby"),
        ("generate", "--regex", "a", "--retries", "-1"), ("choose", "a", "--ends", "never"),
    ],
)  # fmt: skip
def test_wrong_usage(run: Run, arguments: tuple[str, ...]) -> None:
    answer = run(*arguments)
    assert answer.code == 2
    assert answer.err


def test_version(run: Run) -> None:
    assert run("--version").out.startswith("constrain ")


def test_the_script_is_what_pyproject_says() -> None:
    assert 'constrain = "constrain.__main__:main"' in (ROOT / "pyproject.toml").read_text("utf-8")
    for started in (("-c", "from constrain.cli.app import main; main()"), ("-m", "constrain")):
        command = [sys.executable, *started, "check", "/no/such/file"]
        answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        assert (answer.returncode, answer.stdout) == (2, "")
        assert answer.stderr == "error: /no/such/file: No such file or directory\n"


def test_an_interrupt_during_imports_is_an_exit_code() -> None:
    lines = (
        "import sys",
        "class Interrupting:",
        "    def find_spec(self, name, *_):",
        "        if name == 'constrain.cli.app': raise KeyboardInterrupt",
        "sys.meta_path.insert(0, Interrupting())",
        "from constrain.__main__ import main",
        "main()",
    )
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    "arguments",
    [("validate", "-", "-"), ("validate", "{}", "-", "-"), ("infer", "-", "-"),
     ("explain", "--schema", "-", "--answer", "-")],
)  # fmt: skip
def test_stdin_is_given_once(run: Run, arguments: tuple[str, ...]) -> None:
    answer = run(*arguments)
    assert answer.code == 2
    assert "both stdin" in answer.err


def test_stdin_is_read_once(run: Run) -> None:
    """Whichever arguments name it."""
    answer = run("test", "-", "--accept", "-", stdin=b'start: "a"\n')
    assert answer.code == 2
    assert "given twice" in answer.err


@pytest.mark.parametrize(("code", "said"), [(130, "kept\n"), (1, "kept\nclosed\n")])
def test_an_interrupted_command_ends_without_the_teardown_of_the_interpreter(code: int, said: str) -> None:
    lines = (
        "import atexit",
        "from constrain.cli import app",
        "atexit.register(print, 'closed')",
        f"app.run_command = lambda: print('kept') or {code}",
        "app.main()",
    )
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (ended.returncode, ended.stdout) == (code, said)


# ---- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ('{"type": "string",}', 2, "line 1, column 19"),
        ('{"type": "strin"}', 2, "at /type"),
        ("[1, 2]", 2, "must be an object or a boolean"),
        ("", 2, "empty"),
        (b"\xff\xfe\x00", 2, "UTF-8"),
        ('{"type": "string", "pattern": "a("}', 2, "at /pattern"),
        (UNSUPPORTED, 3, "at /items/const"),
        ('{"not":' * 3000 + "{}" + "}" * 3000, 3, "Limits.nesting"),
    ],
)
@pytest.mark.parametrize("command", ["check", "sample", "validate", "generate", "score", "repair"])
def test_bad_schemas(
    run: Run, file: Callable[[str | bytes], str], command: str, content: str | bytes, code: int, said: str
) -> None:
    path = file(content)
    arguments = {
        "validate": (path, path), "generate": ("--schema", path), "score": ("1", "--schema", path),
        "repair": (path, "--schema", path),
    }.get(command, (path,))  # fmt: skip
    answer = run(command, *arguments)
    assert answer.code == code
    assert answer.err.startswith(f"error: {path}: ")
    assert said in answer.err
    found = json.loads(run(command, *arguments, "--json").out)["error"]
    assert found["file"] == path and found["message"]


def test_paths_that_are_not_files(run: Run, tmp_path: Path) -> None:
    for path, said in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file or directory")):
        for arguments in (("check", str(path)), ("validate", PERSON, str(path))):
            answer = run(*arguments)
            assert (answer.code, answer.err) == (2, f"error: {path}: {said}\n")


def test_a_caret_shows_the_position_in_a_regex(run: Run) -> None:
    answer = run("generate", "--regex", "a(b")
    assert answer.code == 2
    assert answer.err.splitlines()[2:4] == ["    a(b", "     ^"]


# ---- check -------------------------------------------------------------------------------------------------------


def test_check(run: Run) -> None:
    answer = run("check", PERSON, "--json")
    assert answer.code == 0
    found = answer.document
    assert found["schema"] and found["satisfiable"] and found["supported"]
    assert {row["keyword"]: row["how"] for row in found["keywords"]}["minItems"] == "counter"
    assert found["size"]["rules"] > 0 and found["cost"]["first"]["compile_us"] > 0
    schema = json.loads(Path(PERSON).read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(found["shortest"]))
    printed = run("check", PERSON).out
    assert "a JSON Schema" in printed
    assert "/properties/hobbies/minItems\tby a counter" in printed
    assert found["shortest"] in printed


def test_check_names_the_keywords_that_clash(run: Run) -> None:
    answer = run("check", UNSATISFIABLE)
    assert answer.code == 1
    assert "/minimum" in answer.out and "/maximum" in answer.out
    found = run("check", UNSATISFIABLE, "--json")
    assert found.code == 1 and found.document["satisfiable"] is False


def test_check_reports_unsupported_keywords(run: Run) -> None:
    answer = run("check", UNSUPPORTED)
    assert answer.code == 3
    assert "/items/const\tnot supported" in answer.out
    found = run("check", UNSUPPORTED, "--json")
    assert found.code == 3
    assert found.document["supported"] is False and found.document["error"]["pointer"] == "/items/const"


def test_check_of_stdin_and_of_booleans(run: Run) -> None:
    assert run("check", "-", stdin=b'{"const": 3}').out.splitlines()[-1].endswith("3")
    assert run("check", "true").code == 0
    assert run("check", "false").code == 1


# ---- validate ----------------------------------------------------------------------------------------------------


def test_validate(run: Run, file: Callable[..., str]) -> None:
    good, bad = file(GOOD, "good.json"), file(GOOD + " x", "bad.json")
    answer = run("validate", PERSON, good, bad)
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert lines[:2] == [f"{good}: valid", "  jsonschema agrees"]
    assert lines[2] == f"{bad}:1:{len(GOOD) + 2}: invalid"
    assert lines[4].index("^") == 4 + len(GOOD) + 1
    assert lines[5] == '  found "x"; expected white space or the end of the text'
    results = run("validate", PERSON, good, bad, "--json").document["results"]
    assert [result["valid"] for result in results] == [True, False]
    assert [result["jsonschema"]["verdict"] for result in results] == ["valid", "invalid"]


def test_validate_goes_on_after_a_missing_file(run: Run, file: Callable[..., str]) -> None:
    answer = run("validate", PERSON, "/no/such", file(GOOD))
    assert answer.code == 2
    assert ": valid" in answer.out


def test_validate_reads_stdin(run: Run) -> None:
    assert run("validate", PERSON, "-", stdin=GOOD.encode()).out.startswith("stdin: valid")


@pytest.mark.parametrize(
    ("schema", "instance", "reason"),
    [
        ("{}", '{"a": 1, "a": 2}', "is repeated"),
        ("{}", "NaN", "RFC 8259"),
        ("{}", r'"\ud800"', "surrogate"),
        ('{"multipleOf": 0.01}', "0.07", "floating point"),
        ('{"type": "string", "pattern": "^\\\\d$"}', '"٣"', "ECMA 262"),
    ],
)
def test_a_difference_is_explained(run: Run, file: Callable[..., str], schema: str, instance: str, reason: str) -> None:
    (result,) = run("validate", schema, file(instance), "--json").document["results"]
    assert result["valid"] != (result["jsonschema"]["verdict"] == "valid")
    assert reason in result["difference"]


def test_a_style_may_refuse_a_valid_value(run: Run, file: Callable[..., str]) -> None:
    path = file('{"age": 1, "email": "a@b.c", "name": "x"}')
    assert run("validate", PERSON, path).code == 0
    answer = run("validate", PERSON, path, "--key-order", "schema")
    assert answer.code == 1
    assert "--any" in answer.out


def test_huge_nesting(run: Run, file: Callable[..., str]) -> None:
    path = file("[" * 50_000 + "]" * 50_000)
    answer = run("validate", "{}", path)
    assert answer.code == 0
    assert "not cross-checked" in answer.out


def test_an_agreement_is_not_explained_away() -> None:
    theirs = cross_check.validate_independently('{"type": "string"}', b'"x"')
    assert theirs == cross_check.CrossCheck("valid")
    said = cross_check.explain_difference('{"type": "string"}', b'"x"', SchemaOptions(Style.any()), False, theirs)
    assert said.startswith("the reason is unknown")


# ---- sample ------------------------------------------------------------------------------------------------------


def test_sample(run: Run) -> None:
    schema = json.loads(Path(PERSON).read_text("utf-8"))
    answer = run("sample", PERSON, "-n", "7", "--seed", "3")
    values = [json.loads(line) for line in answer.out.splitlines()]
    assert len(values) == 7
    for value in values:
        jsonschema.validate(value, schema)
    assert run("sample", PERSON, "-n", "7", "--seed", "3").out == answer.out
    assert run("sample", PERSON, "-n", "7", "--seed", "3", "--json").document == {"instances": values}
    assert run("sample", PERSON, "-n", "0").out == ""


def test_sample_draws_again_what_jsonschema_computes_with_floats(run: Run) -> None:
    """76.6 is a multiple of 0.01, but not for a validator that divides binary floats."""
    schema = {"type": "number", "multipleOf": 0.01, "minimum": 0}
    for line in run("sample", json.dumps(schema), "-n", "40", "--seed", "1").out.splitlines():
        jsonschema.validate(json.loads(line), schema)


def test_sample_of_nothing(run: Run) -> None:
    assert run("sample", UNSATISFIABLE).code == 1


def test_sample_style(run: Run) -> None:
    assert '": ' in run("sample", PERSON, "-n", "1").out
    assert '": ' not in run("sample", PERSON, "-n", "1", "--whitespace", "compact").out
    assert "\n  " in run("sample", PERSON, "-n", "1", "--whitespace", "2").out


# ---- explain -----------------------------------------------------------------------------------------------------


def test_explain_a_keyword(run: Run) -> None:
    answer = run("explain", "--keyword", "minItems")
    assert answer.code == 0
    assert "by a counter" in answer.out and "json_schema/arrays/" in answer.out
    (row,) = run("explain", "--keyword", "minItems", "--json").document["rows"]
    assert row["parsed_by"].startswith("constrain/frontends/json_schema/core/keyword_values.py:")
    assert "asserts nothing" in run("explain", "--keyword", "title").out
    answer = run("explain", "--keyword", "minItem")
    assert answer.code == 2 and "Did you mean minItems?" in answer.err


def test_explain_a_position(run: Run) -> None:
    asked = ("explain", "--schema", '{"type": "array", "items": {"type": "integer"}}', "--whitespace", "compact")
    answer = run(*asked, "--prefix", "[1", "--token", "2]")
    assert answer.code == 0
    assert 'a digit, "," or "]"' in answer.out and "'2]' may come next" in answer.out
    answer = run(*asked, "--prefix", "[1", "--token", "2x")
    assert answer.code == 1
    assert '"x" is refused at line 1, column 2' in answer.out
    answer = run(*asked, "--prefix", "[1x", "--json")
    assert answer.code == 1 and answer.document["prefix_refused"]["offset"] == 2
    found = run(*asked, "--prefix", "[1", "--json").document
    assert found["shortest_completion"] == "]" and found["may_end"] is False
    assert bytes(found["next_bytes"]) == b",0123456789]"


def test_explain_with_a_vocabulary(run: Run) -> None:
    asked = ("explain", "--regex", "[ab]c", "--vocabulary", "demo", "--json")
    found = run(*asked).document
    assert {token["text"] for token in found["tokens"]} >= {"'a'", "'b'"}
    assert found["tokens_allowed"] >= 2
    assert run(*asked, "--token-id", "999999").code == 2


# ---- generate, demo ----------------------------------------------------------------------------------------------


@has_model
def test_generate(run: Run) -> None:
    pytest.importorskip("transformers")
    chosen = ("generate", "--choice", "yes", "--choice", "no", "-n", "2", "--seed", "1")
    answer = run(*chosen)
    assert answer.code == 0
    assert set(answer.out.splitlines()) <= {"yes", "no"} and len(answer.out.splitlines()) == 2
    assert re.search(r"^2 texts: finish_reason 2 complete · \d tokens · \d+\.\d\d s\n\Z", answer.err)
    explained = run(*chosen, "--stats")
    assert explained.out == answer.out
    for name in ("log Z", "distance", "worth", "reliable"):
        assert name in explained.err and name not in answer.err
    found = run("generate", "--schema", PERSON, "--seed", "1", "--json").document["texts"][0]
    assert found["finish_reason"] in ("complete", "budget") and found["stats"]["tokens"] == len(found["tokens"]) + 1
    jsonschema.validate(found["value"], json.loads(Path(PERSON).read_text("utf-8")))
    assert run("generate", "--schema", PERSON, "--max-tokens", "2").code == 3
    options = ("--presence-penalty", "1", "--frequency-penalty", "1", "--repetition-penalty", "1.5", "--min-p", "0.1")
    word = ("generate", "--regex", "[a-z]{3,9}", "--seed", "1")
    assert len(run(*word, *options).out.strip()) >= 3
    assert run(*word, "--logit-bias", "e=-99", "--show-constraint", "{prompt}: {constraint}").code == 0
    cut = run(*word, "--stop", "a", "--stop", "e", "--stop", "i", "--stop", "o", "--json").document["texts"][0]
    assert not set("aeio") & set(cut["text"][3:])
    assert run(*word, "--logit-bias", "e").code == 2
    assert run(*word, "--chat", "template").code == 2, "the embedded model has no chat template"
    assert run("generate", "--schema", PERSON, "--model", "/no/such/model").code == 2


@has_model
def test_demo(run: Run) -> None:
    pytest.importorskip("transformers")
    answer = run("demo")
    assert answer.code == 0
    free, form, constrained = re.split(r"^[23]  .*\n", answer.out, flags=re.M)
    assert "not valid: " in free, "what the embedded model writes by itself is no person"
    assert json.loads(form)["required"] == ["name", "age", "email"]
    text, verdict, theirs = constrained.splitlines()[:3]
    assert not validate(json.loads(form), text=text)
    assert (verdict, theirs) == ("valid", "the jsonschema package: valid")
    assert "µs a token" in answer.err and "log weight" not in answer.err
    document = run("demo", "--json").document
    assert document["jsonschema"] == "valid" and document["text"] == text and document["unconstrained"] in free


def test_doctor(run: Run) -> None:
    found = run("doctor", "demo", "--json").document
    assert found["self_test"] == "passed" and found["end_ids"]
    assert "passed" in run("doctor", "demo").out
    assert run("doctor", "/no/such").code == 2


def test_warmup(run: Run) -> None:
    assert run("warmup", "--json").document["seconds"] >= 0
    assert "the kernels are ready" in run("warmup").out


def test_untrusted_text_does_not_control_the_terminal(run: Run, file: Callable[..., str]) -> None:
    answer = run("validate", '{"const": 1}', file('"\x1b[31m"'))
    assert answer.code == 1
    assert "\x1b" not in answer.out
    answer = run("check", '{"type": "string", "\\u001b[31m": 1}')
    assert answer.code == 0 and "\x1b" not in answer.out

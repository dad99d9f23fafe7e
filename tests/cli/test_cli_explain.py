"""`constrain explain`, `compare` and `doctor` as a user has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("transformers")

from constrain.cli.compare_command import find_kind, read_style
from tests.authoring.test_answers import HOSTILE, read_html
from tests.command_line_factory import Run

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "tags": {"type": "array", "uniqueItems": True}},
        "required": ["name"],
        "additionalProperties": False,
    }
)
GOOD = b'{"name": "Ada", "tags": [1, 2]}\n'


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes | str, str], str]:
    """Writes a file: its path."""

    def writing(content: bytes | str, name: str) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return writing


# ---- explain -----------------------------------------------------------------------------------------------------


def test_an_answer_in_a_file(run: Run, file: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = run("explain", "--schema", SCHEMA, "--answer", file(GOOD, "a.json"), "--prompt", "Hi", "--html", str(page))
    assert found.code == 0 and "mass left" in found.out and "tokens:" in found.out
    assert "characters" in found.err
    read_html(page.read_text("utf-8"))


def test_an_answer_as_json(run: Run) -> None:
    found = run("explain", "--schema", SCHEMA, "--answer", "-", "--json", stdin=GOOD)
    document = found.document
    assert found.code == 0 and document["refusal"] is None
    assert document["text"] == GOOD.decode().strip()  # without the line break of the file
    assert document["steps"][-1]["is_end"] is True


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b'{"name": "Ada", "tags": [1, 1]}', "uniqueItems at #/properties/tags/uniqueItems"),
        (b'{"name": "Ada", "age": 1}', "additionalProperties"),
        (b'{"name": "Ada"', "the answer is not complete"),
        (b"Sure!", "no JSON text"),
    ],
)
def test_an_answer_that_is_refused(run: Run, answer: bytes, words: str) -> None:
    found = run("explain", "--schema", SCHEMA, "--answer", "-", stdin=answer)
    assert found.code == 1 and words in found.out


def test_hostile_answers(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    schema = '{"type": "string"}'
    stdin = json.dumps(HOSTILE, ensure_ascii=False).encode()
    found = run("explain", "--schema", schema, "--answer", "-", "--html", str(page), stdin=stdin)
    assert found.code in (0, 1) and "\u202e" not in found.out
    read_html(page.read_text("utf-8"))
    assert run("explain", "--schema", schema, "--answer", "-", stdin=b'"\xff"').code == 2


def test_wrong_uses_of_explain(run: Run) -> None:
    assert run("explain", "--schema", SCHEMA, "--html", "x.html").code == 2
    assert run("explain", "--schema", SCHEMA, "--answer", "/no/such").code == 2
    assert run("compare", "{}", "{}", "--html", "x.json").code == 2
    assert run("explain", "--schema", SCHEMA, "--regex", "a").code == 2


def test_a_token_is_refused_by_a_keyword(run: Run) -> None:
    arguments = ("explain", "--schema", SCHEMA, "--prefix", '{"name": "", "tags": [1, ', "--token", "1]")
    found = run(*arguments)
    assert found.code == 1 and "because: refused by uniqueItems" in found.out
    because = run(*arguments, "--json").document["token"]["because"]
    assert because["cause"] == "keywords" and because["keywords"][0]["keyword"] == "uniqueItems"


def test_a_grammar_and_choices(run: Run) -> None:
    found = run("explain", "--choice", "yes", "--choice", "no", "--prefix", "y", "--token", "o")
    assert found.code == 1 and "es" in found.out
    assert run("explain", "--grammar", "json", "--prefix", "[1").code == 0


# ---- compare -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "code", "words"),
    [
        ('{"enum": [1, 2]}', '{"enum": [2, 1]}', 0, "exactly the same"),
        ('{"type": "integer"}', '{"type": "number"}', 1, "A is narrower"),
    ],
)
def test_schemas_are_compared(run: Run, first: str, second: str, code: int, words: str) -> None:
    found = run("compare", first, second)
    assert found.code == code and words in found.out


def test_files_and_patterns_and_styles_are_compared(run: Run, file: Any, tmp_path: Path) -> None:
    old, new = file('{"maximum": 1}', "old.json"), file('{"maximum": 2}', "new.json")
    page = tmp_path / "page.html"
    document = run("compare", old, new, "--json", "--html", str(page)).document
    assert document["relation"] == "narrower" and document["backward"]["method"] == "decided"
    assert "old.json" in read_html(page.read_text("utf-8")).text
    assert run("compare", "[a-z]", "[a-f]", "--as", "patterns", "--json").document["forward"]["example"] == "g"
    schema = '{"type": "array", "items": {"type": "null"}, "maxItems": 2}'
    found = run("compare", "whitespace=compact", "default", "--schema", schema)
    assert found.code == 1 and "whitespace=compact is narrower" in found.out
    grammar = file('start: "a"+', "a.lark")
    assert run("compare", grammar, file('root ::= "a" "a"*', "a.gbnf"), "-n", "5").code == 1  # not decided


def test_samplers_are_compared(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = ("compare", "masked", "exact", "--choice", "yes", "--choice", "no", "-n", "20", "--seed", "1")
    found = run(*arguments, "--html", str(page))
    assert found.code == 0 and "of their answers differ" in found.out
    assert "svg" in {tag for tag, _ in read_html(page.read_text("utf-8")).tags}
    document = run(*arguments, "--json").document
    assert [row["sampler"] for row in document["rows"]] == ["masked", "exact"]


def test_wrong_uses_of_compare(run: Run) -> None:
    assert run("compare", "masked", "exact").code == 2  # no constraint
    assert run("compare", "default", "any").code == 2  # no schema
    assert run("compare", "default", "key_order=none", "--schema", "{}").code == 2
    assert run("compare", "default", "digits=x", "--schema", "{}").code == 2
    assert run("compare", "/no/such.json", "{}").code == 2
    assert run("compare", '{"type": "strin"}', "{}").code == 2
    assert run("compare", "(", "a", "--as", "patterns").code == 2


def test_kinds_are_recognised() -> None:
    assert find_kind("masked", "smc") == "samplers" and find_kind("any", "default") == "styles"
    assert find_kind("a.lark", "b.json") == "texts" and find_kind("a.json", "{}") == "schemas"
    assert read_style("whitespace=2,digits=none,key_order=any").digits is None


# ---- doctor ------------------------------------------------------------------------------------------------------


def test_doctor_has_a_line_for_each_check(run: Run) -> None:
    found = run("doctor", "demo")
    assert found.code == 0
    for check in ("bytes of tokens", "end tokens", "padding", "leading space", "chat template", "widths", "context"):
        assert check in found.out
    assert "why: " in found.out and "set: " in found.out


def test_doctor_fails_on_a_fault(run: Run, tmp_path: Path) -> None:
    from constrain import demo

    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if (demo.model_folder() / name).exists():
            (tmp_path / name).write_bytes((demo.model_folder() / name).read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "vocab_size": 100_000}))
    found = run("doctor", str(tmp_path))
    assert found.code == 1 and "FAULT" in found.out and "found a fault" in found.out
    document = run("doctor", str(tmp_path), "--json").document
    assert not document["fine"] and any(one["status"] == "fault" for one in document["findings"])

"""`constrain generate`: types, tools and files of prompts, several texts as they end, and what Ctrl-C keeps."""

from __future__ import annotations

import datetime
import json
import signal
import sys
import typing
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("typer")
pytest.importorskip("transformers")

import constrain
from constrain.base.errors import LimitError, SourceError
from constrain.cli import display
from constrain.cli.answer_output import AnswerPrinter, is_json
from constrain.cli.generate_command import show_tools
from constrain.cli.prompt_options import parse_prompts
from constrain.cli.type_expressions import GENERIC, PLAIN, parse_type
from constrain.dialogue import read_tools
from constrain.sampling import SAMPLERS
from tests.command_line_factory import Run

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], \
"additionalProperties": false}'
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}, "required": ["city"],
    "additionalProperties": False}}}  # fmt: skip
has_model = pytest.mark.skipif(
    not (ROOT / "constrain" / "demo" / "model.safetensors").exists(),
    reason="the embedded model is not in this checkout",
)


# ---- type expressions --------------------------------------------------------------------------------------------


def nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions of expressions."""
    return st.one_of(
        st.builds("{}[{}]".format, st.sampled_from(["list", "set", "List", "Optional", "Sequence"]), inner),
        st.builds("{}[{}, {}]".format, st.sampled_from(["dict", "Mapping", "tuple", "Union"]), inner, inner),
        st.builds("tuple[{}, ...]".format, inner),
        st.builds("Union[{} , {}]".format, inner, inner),
    )


VALUES = st.one_of(st.text(max_size=5).map(repr), st.integers(-99, 99).map(repr), st.sampled_from(["True", "None"]))
EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(sorted(PLAIN)), st.lists(VALUES, min_size=1).map(lambda v: f"Literal[{', '.join(v)}]")),
    nest,
    max_leaves=6,
)


@given(text=EXPRESSIONS)
@settings(max_examples=60, deadline=None)
def test_expressions_have_the_type_that_python_gives_them(text: str) -> None:
    names = {**PLAIN, **GENERIC, "Literal": typing.Literal}
    assert parse_type(text) == eval(text, {"__builtins__": {}}, names)


@pytest.mark.parametrize("text", ["int | None", "list[int] | str", "None | None", "Literal['a'] | bool"])
def test_unions_by_operator(text: str) -> None:
    parts = [parse_type(part) for part in text.split(" | ")]
    assert parse_type(text) == typing.Union[tuple(parts)]


def test_names_may_have_their_module() -> None:
    assert parse_type("typing.Dict[str, typing.List[datetime.date]]") == dict[str, list[datetime.date]]


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("__import__('os').system('x')", 1, "not a type"), ("int.__class__", 1, "not a type"),
        ("list[int", 5, "not a Python expression"), ("", 1, "not a Python expression"),
        ("dict[str, fload]", 11, "Did you mean float?"), ("Literal[1.5]", 9, "whole number"),
        ("Literal[-True]", 10, "whole number"), ("Literal", 1, "needs arguments"),
        ("int[str]", 1, "has no arguments"), ("lambda: 0", 1, "not a type"), ("[int]", 1, "not a type"),
        ("x := int", 3, "not a Python expression"), ("Person", 1, "--pydantic"), ("'int'", 1, "not a type"),
        ("é[int]", 1, "no type é"), ("dict['é', no]", 6, "not a type"), ("Optional[int, str]", 1, "not valid"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_a_caret(text: str, column: int, said: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_type(text)
    message = str(caught.value)
    assert said in message and f"column {column}\n" in message, message


@pytest.mark.parametrize(
    "text", ["list[" * 101 + "int" + "]" * 101, "|".join(["int"] * 200), "-" * 10_001, "a" * 10_001]
)
def test_expressions_are_bounded(text: str) -> None:
    with pytest.raises(LimitError):
        parse_type(text)


@has_model
def test_a_type_gives_the_value_that_the_function_gives(run: Run) -> None:
    answer = run("generate", "--type", "list[int]", "--seed", "3", "--max-tokens", "40", "--json")
    expected = constrain.generate("demo", None, type=list[int], seed=3, max_tokens=40)
    [text] = answer.document["texts"]
    assert answer.code == 0 and (text["text"], text["value"]) == (expected.text, expected.value)


@has_model
def test_the_type_none(run: Run) -> None:
    assert run("generate", "--type", "None", "--seed", "1").out == "null\n"


# ---- classes and tools -------------------------------------------------------------------------------------------


@has_model
def test_a_class_of_the_current_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pydantic")
    source = "from datetime import date\nfrom pydantic import BaseModel\nclass Day(BaseModel):\n    day: date\n"
    (tmp_path / "days_of_a_test.py").write_text(source, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    answer = run("generate", "--pydantic", "days_of_a_test:Day", "--seed", "1", "--json")
    [text] = answer.document["texts"]
    assert answer.code == 0 and text["value"] == json.loads(text["text"])
    assert run("generate", "--pydantic", "days_of_a_test:Night").code == 2
    assert run("generate", "--pydantic", "days_of_a_test").code == 2


@has_model
def test_tools(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([TOOL]), "utf-8")
    chosen = ("--tool-choice", "weather", "--tool-format", "llama", "--seed", "2", "--json")
    answer = run("generate", "--tools", str(file), "--prompt", "Rain in Oslo?", *chosen, "-n", "2")
    assert answer.code == 0, answer.err
    for text in answer.document["texts"]:
        expected = [
            {"name": one.name, "arguments": one.arguments} for one in constrain.tool_calls(text["text"], "llama")
        ]
        assert text["tool_calls"] == expected and expected
        assert all(one["name"] == "weather" and one["arguments"]["city"] in ("Oslo", "Rome") for one in expected)
    assert run("generate", "--tools", "-", stdin=b'[{"type": "function"}]').code == 2
    assert run("generate", "--tools", str(file), "--tool-choice", "wether").code == 2
    assert run("generate", "--tools", str(file), "--tool-format", "smoke").code == 2


@dataclass
class TemplateTokenizer:
    """A tokenizer with a chat template, which gives one token for each message and each tool."""

    chat_template: str | None = "{{ messages }}"

    def apply_chat_template(self, messages: list[Any], tools: list[Any], **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [len(messages), *(len(one["function"]["name"]) for one in tools)]}


def test_a_chat_template_shows_the_tools() -> None:
    [tool] = read_tools([TOOL])
    model: Any = SimpleNamespace(tokenizer=TemplateTokenizer())
    assert show_tools(model, "text", (tool,), "plain") == "text"
    assert show_tools(model, "text", (tool,), "template") == [1, 7]
    assert show_tools(model, ["text", MESSAGES], (tool, tool), "plain") == ["text", [1, 7, 7]]
    bare: Any = SimpleNamespace(tokenizer=TemplateTokenizer(None))
    assert show_tools(bare, [MESSAGES], (tool,), "template") == [MESSAGES]


# ---- files of prompts --------------------------------------------------------------------------------------------

MESSAGES = [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize(
    ("name", "content", "prompts"),
    [
        ("x.txt", "one\n\n  two \r\n", ["one", "two"]),
        ("-", "{}\n", ["{}"]),
        ("x.jsonl", '"a\\nb"\n\n{"prompt": "c"}\n', ["a\nb", "c"]),
        ("x.jsonl", json.dumps(MESSAGES) + "\n" + json.dumps({"messages": MESSAGES, "id": 3}), [MESSAGES, MESSAGES]),
        ("x.json", json.dumps(MESSAGES, indent=1), [MESSAGES]),
        ("x.json", json.dumps({"messages": MESSAGES}), [MESSAGES]),
        ("x.json", json.dumps(["a", MESSAGES, {"prompt": "b"}]), ["a", MESSAGES, "b"]),
    ],
)
def test_files_of_prompts(name: str, content: str, prompts: list[Any]) -> None:
    assert list(parse_prompts(content, name)) == prompts


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ('"a"\n{"prompt": 1,}', 2, "not JSON"), ('"a"\n\n3', 3, "not a prompt"), ('{"text": "a"}', 1, "not a prompt"),
        ('{"prompt": "a", "messages": []}', 1, "not a prompt"), ('[{"content": "a"}]', 1, "not a prompt"),
        ("[" * 100_000, 1, "JSON"),
    ],
)  # fmt: skip
def test_invalid_prompt_raises_with_its_line_number(content: str, line: int, said: str) -> None:
    with pytest.raises(SourceError) as caught:
        list(parse_prompts(content, "x.jsonl"))
    assert said in str(caught.value) and f"line {line}," in str(caught.value)


def test_one_way_to_give_prompts(run: Run) -> None:
    answer = run("generate", "--choice", "a", "--prompt", "x", "--prompt-file", "-")
    assert answer.code == 2 and "not both" in answer.err
    assert run("generate", "--choice", "a", "--prompt-file", "-", stdin=b" \n").code == 2
    assert run("generate", "--choice", "a", "--prompt-file", "-", stdin=b"\xff").code == 2


@has_model
def test_texts_of_several_prompts(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "prompts.txt"
    file.write_text("Describe Ann.\nDescribe Bob.\n", "utf-8")
    arguments = ("generate", "--schema", SCHEMA, "--prompt-file", str(file), "-n", "2", "--seed", "4")
    found = run(*arguments, "--json").document["texts"]
    expected = constrain.generate("demo", ["Describe Ann.", "Describe Bob."], schema=SCHEMA, n=2, seed=4)
    assert [(one["prompt"], one["text"]) for one in found] == [
        (prompt, one.text) for prompt, texts in enumerate(expected) for one in texts
    ]
    printed = run(*arguments)
    assert Counter(printed.out.splitlines()) == Counter(one["text"] for one in found)
    assert printed.err.count("finish_reason") == 1 and "4 texts" in printed.err


# ---- several texts, and Ctrl-C -----------------------------------------------------------------------------------


@has_model
@pytest.mark.parametrize("sampler", ["masked", "exact"])
def test_several_texts_are_those_of_the_function(run: Run, sampler: str) -> None:
    arguments = ("generate", "--schema", SCHEMA, "-n", "5", "--seed", "1", "--sampler", sampler)
    expected = [one.text for one in constrain.generate("demo", None, schema=SCHEMA, n=5, seed=1, sampler=sampler)]
    assert [one["text"] for one in run(*arguments, "--json").document["texts"]] == expected
    answer = run(*arguments, "--stats")
    assert Counter(answer.out.splitlines()) == Counter(expected)
    assert "all texts together" in answer.err and "their meaning" in answer.err


@has_model
@pytest.mark.parametrize("count", ["1", "3"])
def test_auto_says_which_sampler_it_takes_and_why(run: Run, count: str) -> None:
    answer = run("generate", "--regex", "[0-9]{3}", "--sampler", "auto", "-n", count, "--seed", "1")
    (line,) = [one for one in answer.err.splitlines() if one.startswith("sampler ")]
    name, _, reason = line.removeprefix("sampler ").partition(": ")
    assert name in SAMPLERS and reason


@has_model
def test_one_text_says_its_finish_reason_tokens_and_time(run: Run) -> None:
    answer = run("generate", "--choice", "yes", "--seed", "1")
    assert answer.out == "yes\n"
    assert answer.err.startswith("finish_reason complete · ") and " s\n" in answer.err
    assert answer.err.count("\n") == 1 and "log" not in answer.err
    answer = run("generate", "--schema", '{"type": "array", "minItems": 3, "items": {"type": "string"}}',
                 "--max-tokens", "8", "--seed", "1")  # fmt: skip
    assert "finish_reason budget (complete, but shortened to fit --max-tokens) · 8 tokens" in answer.err


@has_model
@pytest.mark.parametrize("json_option", [(), ("--json",)])
def test_ctrl_c_keeps_the_texts_that_have_ended(
    run: Run, monkeypatch: pytest.MonkeyPatch, json_option: tuple[str, ...]
) -> None:
    take = AnswerPrinter.take

    def take_and_interrupt(self: AnswerPrinter, prompt: int, sample: int, generation: Any) -> None:
        take(self, prompt, sample, generation)
        if len(self.kept) == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(AnswerPrinter, "take", take_and_interrupt)
    monkeypatch.setattr(signal, "getsignal", signal.getsignal)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        answer = run("generate", "--type", "list[str]", "-n", "6", "--seed", "1", "--max-tokens", "60", *json_option)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert answer.code == display.INTERRUPTED == 130
    found = answer.document["texts"] if json_option else answer.out.splitlines()
    assert 2 <= len(found) < 6
    assert f"interrupted: {len(found)} of 6 texts are kept" in answer.err
    if json_option:
        assert answer.document["interrupted"] is True


@has_model
def test_an_interrupted_call_leaves_the_model_usable() -> None:
    """`generate` returns nothing after a KeyboardInterrupt; the next call is not affected."""
    model = constrain.load_model("demo")
    expected = constrain.generate(model, None, schema=SCHEMA, n=3, seed=2)

    def interrupt(piece: Any) -> None:
        if piece.sample == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        constrain.generate(model, None, schema=SCHEMA, n=3, seed=2, stream=interrupt)
    assert constrain.generate(model, None, schema=SCHEMA, n=3, seed=2) == expected


def test_values_of_types_are_not_json() -> None:
    assert is_json({"a": [1, None, "x", 1.5, True]})
    assert not is_json({"a": {1, 2}}) and not is_json([object()]) and not is_json((1,))

"""`AnswerReader` divides what the forms of `constrain.dialogue` write, whatever pieces the text comes in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from constrain import regex, tool_calls
from constrain.dialogue import ENVELOPES, Tool
from constrain.dialogue.custom_tools import CustomTool
from constrain.serving.answer_reader import AnswerReader, Part, find_held
from constrain.serving.call_formats import CALL_FORMATS, choose_tool_format
from constrain.serving.tool_requests import ToolPlan

NAMES = ("weather", "weather_2", "a-b")
PLAN = ToolPlan(
    tuple(Tool(name, "", {"type": "object"}) for name in NAMES) + (CustomTool("sql", "", regex("[a-z]+")),)
)  # fmt: skip
ARGUMENTS = st.dictionaries(
    st.text(max_size=4),
    st.recursive(st.text(max_size=6) | st.integers() | st.none(), st.lists, max_leaves=4),
    max_size=3,
)
CALLS = st.lists(st.tuples(st.sampled_from(NAMES), ARGUMENTS), max_size=3)
PLAIN = st.text(st.sampled_from('abc .,"{}'), max_size=12).map(lambda text: "".join(text.split('{"')))


def write_calls(calls: Sequence[tuple[str, Any]], tool_format: str) -> str:
    """Write calls as the form of a format does."""
    texts = [(name, json.dumps(arguments)) for name, arguments in calls]
    if not texts:
        return ""
    if tool_format == "hermes":
        one = '<tool_call>\n{{"name": "{}", "arguments": {}}}\n</tool_call>'
        return "\n".join(one.format(*text) for text in texts)
    if tool_format == "llama":
        return "; ".join('{{"name": "{}", "parameters": {}}}'.format(*text) for text in texts)
    if tool_format == "mistral-args":
        return "".join("[TOOL_CALLS]{}[ARGS]{}".format(*text) for text in texts)
    listed = ", ".join('{{"name": "{}", "arguments": {}}}'.format(*text) for text in texts)
    return f"[TOOL_CALLS][{listed}]" if tool_format == "mistral" else f"[{listed}]"


def read(reader: AnswerReader, pieces: Sequence[str]) -> list[Part]:
    """Return the parts of a text that comes in pieces, successive ones of a kind joined, with calls numbered."""
    parts: list[Part] = []
    ids: dict[str, str] = {}
    for part in [*(part for piece in pieces for part in reader.feed(piece)), *reader.finish()]:
        call = ids.setdefault(part.call, str(len(ids))) if part.call else ""
        if parts and part.kind != "call" and (parts[-1].kind, parts[-1].call) == (part.kind, call):
            parts[-1] = Part(part.kind, parts[-1].text + part.text, call)
        else:
            parts.append(Part(part.kind, part.text, call))
    return parts


@pytest.mark.parametrize("tool_format", sorted(CALL_FORMATS))
@settings(max_examples=35, deadline=None)
@given(calls=CALLS, before=PLAIN, cuts=st.lists(st.integers(0, 300), max_size=8))
def test_calls_are_found_in_any_pieces(tool_format: str, calls: Any, before: str, cuts: list[int]) -> None:
    text = before + write_calls(calls, tool_format)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[one:other] for one, other in zip(places, places[1:])]
    parts = read(AnswerReader(PLAN, tool_format), pieces)
    names = [part.text for part in parts if part.kind == "call"]
    arguments = [json.loads(part.text) for part in parts if part.kind == "arguments"]
    assert list(zip(names, arguments)) == [tuple(call) for call in calls]
    content = "".join(part.text for part in parts if part.kind == "content")
    assert content == (before.rstrip() if calls else before)
    assert parts == read(AnswerReader(PLAN, tool_format), [text])
    assert [(one.name, one.arguments) for one in tool_calls(text, tool_format)] == [tuple(call) for call in calls]


@settings(max_examples=60, deadline=None)
@given(inputs=st.lists(st.text("ab<>/\n", min_size=1, max_size=8), min_size=1, max_size=3), size=st.integers(1, 7))
def test_inputs_of_custom_tools_are_found_in_any_pieces(inputs: list[str], size: int) -> None:
    text = "\n".join(f'<custom_call name="sql">\n{one}\n</custom_call>' for one in inputs)
    parts = read(AnswerReader(PLAN, "json"), [text[k : k + size] for k in range(0, len(text), size)])
    assert [part.text for part in parts if part.kind == "input"] == inputs
    assert not [part for part in parts if part.kind == "content"]


@settings(max_examples=100, deadline=None)
@given(thought=st.text("ab<t/", max_size=8), answer=st.text("ab<t", max_size=8), size=st.integers(1, 5))
def test_thoughts_end_at_their_mark(thought: str, answer: str, size: int) -> None:
    for begin, text in (("<t>", f"<t>{thought}</t>{answer}"), ("", f"{thought}</t>{answer}")):
        reader = AnswerReader(ToolPlan(), "json", (begin, "</t>"))
        parts = read(reader, [text[k : k + size] for k in range(0, len(text), size)])
        expected = {"thoughts": thought, "content": answer}
        assert {part.kind: part.text for part in parts} == {kind: one for kind, one in expected.items() if one}


def test_formats_whose_calls_are_read_at_the_end() -> None:
    python = AnswerReader(PLAN, "pythonic")
    parts = read(python, ["I look. [weather(ci", 'ty="Oslo")]'])
    assert [(part.kind, part.text) for part in parts] == [
        ("content", "I look."), ("call", "weather"), ("arguments", '{"city": "Oslo"}')
    ]  # fmt: skip
    assert [part.kind for part in read(AnswerReader(PLAN, "pythonic"), ["no call"])] == ["content"]
    text = (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
        '<|constrain|>json<|message|>{"city": "Oslo"}'
    )
    parts = read(AnswerReader(PLAN, "harmony"), [text])
    assert [(part.kind, part.text) for part in parts] == [
        ("thoughts", "hm"), ("call", "weather"), ("arguments", '{"city": "Oslo"}')
    ]  # fmt: skip
    answer = read(AnswerReader(PLAN, "harmony"), ["<|channel|>final<|message|>Hello"])
    assert [(part.kind, part.text) for part in answer] == [("content", "Hello")]


@given(text=st.text("abc", max_size=8), marks=st.lists(st.text("abc", min_size=1, max_size=4), max_size=3))
def test_find_held_returns_the_longest_suffix_that_begins_a_mark(text: str, marks: list[str]) -> None:
    possible = [k for k in range(1, len(text) + 1) for mark in marks if k < len(mark) and mark.startswith(text[-k:])]
    assert find_held(text, marks) == max(possible, default=0)


def test_a_chat_template_shows_its_format() -> None:
    assert choose_tool_format(None) == "json"
    assert choose_tool_format("{{ '<tool_call>' }}") == "hermes"
    assert choose_tool_format("[TOOL_CALLS] [") == "mistral"
    assert choose_tool_format("<|channel|>") == "harmony"
    assert {choose_tool_format(sign) for sign in ("[ARGS]", "<|python_tag|>")} <= set(ENVELOPES)

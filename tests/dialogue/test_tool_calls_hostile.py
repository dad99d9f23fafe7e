"""`tool_calls` on what a model may have written: an answer or a typed error, in bounded work."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from constrain import ConstrainError, tool_calls
from constrain.dialogue import ENVELOPES

OPENINGS = [
    "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "<|channel|>", "<|message|>", "<|start|>",
    " to=functions.f ", '{"name": "', "[f(", ")]", "[", "{", '"', "}", "]", "\\", "x=", ",",
    '{"name": "f", "arguments": ',
    "0x", "1e999", "9" * 5000, "\0", "\ud800", "{}", "f(x={[]: 1})", "'''", "\n",
]  # fmt: skip


@pytest.mark.parametrize("envelope", list(ENVELOPES))
@given(parts=st.lists(st.one_of(st.sampled_from(OPENINGS), st.text(max_size=5)), max_size=12))
def test_any_text_is_read_or_refused(envelope: str, parts: list[str]) -> None:
    try:
        found = tool_calls("".join(parts), envelope)
    except ConstrainError:
        return
    assert all(isinstance(call.name, str) and isinstance(call.arguments, dict) for call in found)


@pytest.mark.parametrize("envelope", list(ENVELOPES))
@pytest.mark.parametrize("piece", [*OPENINGS, '[f(x="', "[f(x=[", '{"name": "f", "arguments": {"a": ['])
def test_long_texts_of_one_piece(envelope: str, piece: str) -> None:
    for text in (piece * 50_000, *(piece * 20_000 + end for end in (")]", "]}", "</tool_call>"))):
        try:
            tool_calls(text[:400_000], envelope)
        except ConstrainError as error:
            assert len(str(error)) < 5000


@pytest.mark.parametrize("depth", [50, 200, 100_000])
def test_depth_is_bounded(depth: int) -> None:
    inner = "[" * depth + "]" * depth
    texts = {
        "hermes": '<tool_call>{"name": "f", "arguments": {"a": %s}}</tool_call>', "pythonic": "[f(a=%s)]",
        "json": '{"name": "f", "arguments": {"a": %s}}',
        "mistral": '[TOOL_CALLS][{"name": "f", "arguments": {"a": %s}}]',
    }  # fmt: skip
    for envelope, text in texts.items():
        try:
            (call,) = tool_calls(text % inner, envelope)
        except ConstrainError:
            assert depth > 50
        else:
            assert call.name == "f"

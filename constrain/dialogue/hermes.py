"""Hermes, Qwen 2.5, Qwen 3: each call a JSON object between `<tool_call>` and `</tool_call>`, on lines of their own.

<tool_call>
{"name": "weather", "arguments": {"city": "Oslo"}}
</tool_call>
"""

from __future__ import annotations

from ..base.errors import SourceError
from ..forms import Form, mark, triggered
from .envelope import Envelope, ToolCall, ToolRequest, any_of, as_call, json_at, listed, named

__all__ = ["HERMES"]

OPEN, CLOSE = "<tool_call>", "</tool_call>"


def form(asked: ToolRequest) -> Form:
    """Free text before, between and behind calls; if calls are required, calls alone."""
    body = '\n{"name": "' + any_of([named(tool, "arguments", asked.style) for tool in asked.tools]) + "\n" + mark(CLOSE)
    if asked.free:
        return triggered({OPEN: body}, most=asked.most)
    return listed(mark(OPEN) + body, "\n", asked.most)


def calls(text: str) -> list[ToolCall]:
    """The calls in a text."""
    found, at = [], 0
    while (begin := text.find(OPEN, at)) >= 0:
        value, at = json_at(text, begin + len(OPEN), "a tool call")
        found.append(as_call(value, "arguments", text, begin))
        end = text.find(CLOSE, at)
        if end < 0 or text[at:end].strip():
            raise SourceError(f"a tool call does not end with {CLOSE}", source=text, position=at)
        at = end + len(CLOSE)
    return found


HERMES = Envelope("hermes", "Hermes 2 and 3, Qwen 2.5, Qwen 3", form, calls)

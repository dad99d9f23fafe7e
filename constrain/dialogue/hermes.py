"""Hermes, Qwen 2.5, Qwen 3: each call a JSON object between `<tool_call>` and `</tool_call>`, on separate lines.

<tool_call>
{"name": "weather", "arguments": {"city": "Oslo"}}
</tool_call>
"""

from __future__ import annotations

from ..base.errors import SourceError
from ..forms import Form, mark, triggered
from .envelope import (
    Envelope,
    ToolCall,
    ToolRequest,
    any_of_forms,
    list_of_calls,
    named_call_form,
    read_call,
    read_json_value,
)

__all__ = ["HERMES"]

OPEN, CLOSE = "<tool_call>", "</tool_call>"


def hermes_form(request: ToolRequest) -> Form:
    """Return the form: free text around calls, or calls only if calls are required."""
    body = (
        '\n{"name": "'
        + any_of_forms([named_call_form(tool, "arguments", request.style) for tool in request.tools])
        + "\n"
        + mark(CLOSE)
    )
    if request.free:
        return triggered({OPEN: body}, most=request.most)
    return list_of_calls(mark(OPEN) + body, "\n", request.most)


def read_hermes_calls(text: str) -> list[ToolCall]:
    """Return the calls in a text."""
    calls, at = [], 0
    while (begin := text.find(OPEN, at)) >= 0:
        value, at = read_json_value(text, begin + len(OPEN), "a tool call")
        calls.append(read_call(value, "arguments", text, begin))
        end = text.find(CLOSE, at)
        if end < 0 or text[at:end].strip():
            raise SourceError(f"a tool call does not end with {CLOSE}", source=text, position=at)
        at = end + len(CLOSE)
    return calls


HERMES = Envelope("hermes", "Hermes 2 and 3, Qwen 2.5, Qwen 3", hermes_form, read_hermes_calls)

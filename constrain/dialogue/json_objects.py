"""Calls as JSON objects in plain text, which begin with `{"name": "`.

json     [{"name": "weather", "arguments": {"city": "Oslo"}}, ...]      a list, or an object if one call is requested
llama    {"name": "weather", "parameters": {"city": "Oslo"}}; {...}     Llama 3.1 and 3.2
"""

from __future__ import annotations

from functools import partial

from ..forms import Form, literal, triggered
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

__all__ = ["JSON", "LLAMA"]

OPEN = '{"name": "'


def json_calls_form(key: str, request: ToolRequest) -> Form:
    """Return the form: free text around calls, or calls only if calls are required."""
    body = any_of_forms([named_call_form(tool, key, request.style) for tool in request.tools])
    if request.free:
        return triggered({OPEN: body}, most=request.most)
    one = literal(OPEN) + body
    if key == "parameters":
        return list_of_calls(one, "; ", request.most)
    return one if request.most == 1 else "[" + list_of_calls(one, ", ", request.most) + "]"


def read_json_calls(key: str, text: str) -> list[ToolCall]:
    """Return the calls in a text: every object in it that begins with a name."""
    calls, at = [], 0
    while (begin := text.find(OPEN, at)) >= 0:
        value, at = read_json_value(text, begin, "a tool call")
        calls.append(read_call(value, key, text, begin))
    return calls


JSON = Envelope(
    "json",
    "any model whose prompt asks for it",
    partial(json_calls_form, "arguments"),
    partial(read_json_calls, "arguments"),
)
LLAMA = Envelope(
    "llama", "Llama 3.1, 3.2, 3.3", partial(json_calls_form, "parameters"), partial(read_json_calls, "parameters")
)

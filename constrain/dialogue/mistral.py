"""Mistral: `[TOOL_CALLS]` and all calls at the end of the text, in one of two formats.

mistral        [TOOL_CALLS][{"name": "weather", "arguments": {"city": "Oslo"}}, ...]       tokenizers v2 to v7
mistral-args   [TOOL_CALLS]weather[ARGS]{"city": "Oslo"}[TOOL_CALLS]...                    tokenizers v11 and v13
"""

from __future__ import annotations

from ..base.errors import SourceError
from ..forms import Form, literal, mark, triggered
from .envelope import (
    Envelope,
    ToolCall,
    ToolRequest,
    any_of_forms,
    arguments_form,
    list_of_calls,
    named_call_form,
    read_call,
    read_json_value,
)

__all__ = ["MISTRAL", "MISTRAL_ARGS"]

OPEN, ARGS = "[TOOL_CALLS]", "[ARGS]"


def calls_at_end(calls: Form, request: ToolRequest) -> Form:
    """Return the form: free text followed by calls, or calls only if calls are required."""
    return triggered({OPEN: calls}, most=1, after="end") if request.free else mark(OPEN) + calls


def mistral_list_form(request: ToolRequest) -> Form:
    """Return the form with all calls in one JSON list."""
    one = '{"name": "' + any_of_forms([named_call_form(tool, "arguments", request.style) for tool in request.tools])
    return calls_at_end((literal("") | " ") + "[" + list_of_calls(one, ", ", request.most) + "]", request)


def read_mistral_list(text: str) -> list[ToolCall]:
    """Return the calls in a text."""
    begin = text.find(OPEN)
    if begin < 0:
        return []
    value, end = read_json_value(text, begin + len(OPEN), "the list of tool calls")
    if not isinstance(value, list) or text[end:].strip():
        raise SourceError(
            f"{OPEN} must be followed by one list of calls, at the end of the text", source=text, position=begin
        )
    return [read_call(one, "arguments", text, begin) for one in value]


def mistral_args_form(request: ToolRequest) -> Form:
    """Return the form with name and arguments, each call after a mark."""
    one = any_of_forms(
        [literal(tool.name) + mark(ARGS) + arguments_form(tool, request.style) for tool in request.tools]
    )
    return calls_at_end(list_of_calls(one, mark(OPEN), request.most), request)


def read_mistral_args(text: str) -> list[ToolCall]:
    """Return the calls in a text."""
    calls, at = [], text.find(OPEN)
    while 0 <= at < len(text):
        middle = text.find(ARGS, at)
        if middle < 0 or not text.startswith(OPEN, at):
            raise SourceError(f"a call must have the format {OPEN}name{ARGS}{{...}}", source=text, position=at)
        value, end = read_json_value(text, middle + len(ARGS), "the arguments of a call")
        calls.append(read_call({"name": text[at + len(OPEN) : middle], "arguments": value}, "arguments", text, at))
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return calls


MISTRAL = Envelope("mistral", "Mistral, tokenizers v2 to v7", mistral_list_form, read_mistral_list)
MISTRAL_ARGS = Envelope("mistral-args", "Mistral, tokenizers v11 and later", mistral_args_form, read_mistral_args)

"""Harmony, the format of gpt-oss: a text is messages in channels, and a call is a message to a function.

    <|channel|>analysis<|message|>The user wants ...<|end|><|start|>assistant
    <|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Oslo"}    (no line breaks)

The prompt ends with `<|start|>assistant`. Reasoning (analysis) and preambles (commentary without recipient) may come
first; the last message is one call, or the answer (final). It ends with an end token, `<|call|>` or `<|return|>`: both
must be in the `eos_ids` of the vocabulary, and are not part of the text.
"""

from __future__ import annotations

import re

from ..base.errors import SourceError
from ..forms import Form, literal, mark
from ..forms.free_text_forms import unconstrained
from .envelope import Envelope, ToolCall, ToolRequest, any_of_forms, arguments_form, read_call, read_json_value

__all__ = ["HARMONY"]

START, CHANNEL, MESSAGE, CONSTRAIN, END = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>"
MARKS = (START, CHANNEL, MESSAGE, CONSTRAIN, END)
HEADER = re.compile(r"to=functions\.(\S+?)(?:\s|<\||$)")


def harmony_form(request: ToolRequest) -> Form:
    """Return the form: messages, then a call or, if no call is required, the answer. Calls are never parallel."""
    written = unconstrained(MARKS, END) + mark(START) + "assistant"
    before = mark(CHANNEL) + (literal("analysis") | "commentary") + mark(MESSAGE) + written
    one = any_of_forms([call_form(name=tool.name, body=arguments_form(tool, request.style)) for tool in request.tools])
    final = mark(CHANNEL) + "final" + mark(MESSAGE) + unconstrained(MARKS)
    return before.repeat() + (one | final if request.free else one)


def call_form(name: str, body: Form) -> Form:
    """Return the form of a call. The recipient is in the channel or, as prompt renderers write it, before it."""
    to = f" to=functions.{name}"
    channel, kind = mark(CHANNEL) + "commentary", mark(CONSTRAIN) + "json"
    return (channel + (literal(to) | to + " ") + kind | to + channel + " " + kind) + mark(MESSAGE) + body


def read_harmony_calls(text: str) -> list[ToolCall]:
    """Return the calls in a text: the messages to functions. An end token at the end is optional."""
    calls = []
    for message in text.split(START):
        head, middle, _ = message.partition(MESSAGE)
        to = HEADER.search(head)
        if to is not None:
            if not middle:
                raise SourceError("a call has no message", source=message, position=0)
            value, _ = read_json_value(message, len(head) + len(MESSAGE), "the arguments of a call")
            calls.append(read_call({"name": to[1], "arguments": value}, "arguments", message, 0))
    return calls


HARMONY = Envelope("harmony", "gpt-oss", harmony_form, read_harmony_calls)

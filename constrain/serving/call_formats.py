"""How each format of tool calls is recognised in a text while it is written.

A format is listed if a call begins with a text that is known but for the name of the tool, which is followed by JSON.
The forms of `constrain.dialogue` write exactly these texts. The formats `pythonic` and `harmony` are read when the text
is complete.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CALL_FORMATS", "CallFormat", "choose_tool_format"]


@dataclass(frozen=True)
class CallFormat:
    """The texts around the arguments of a call.

    heads: texts in front of them, with NAME for the name of the tool. tails: what follows them, step by step, each step
    one of several texts or nothing.
    """

    heads: tuple[str, ...]
    tails: tuple[tuple[str, ...], ...]

    def list_heads(self, name: str) -> list[str]:
        """Return the heads of the calls of a tool."""
        return [head.replace("NAME", name) for head in self.heads]


CALL_FORMATS: dict[str, CallFormat] = {
    "hermes": CallFormat(('<tool_call>\n{"name": "NAME", "arguments": ',), (("}",), ("\n</tool_call>",), ("\n",))),
    "json": CallFormat(
        ('[{"name": "NAME", "arguments": ', '{"name": "NAME", "arguments": '), (("}",), (", ", "]"))
    ),
    "llama": CallFormat(('{"name": "NAME", "parameters": ',), (("}",), ("; ",))),
    "mistral": CallFormat(
        (
            '[TOOL_CALLS][{"name": "NAME", "arguments": ',
            '[TOOL_CALLS] [{"name": "NAME", "arguments": ',
            '{"name": "NAME", "arguments": ',
        ),
        (("}",), (", ", "]")),
    ),
    "mistral-args": CallFormat(("[TOOL_CALLS]NAME[ARGS]",), ()),
}  # fmt: skip

TEMPLATE_SIGNS = (
    ("<|channel|>", "harmony"),
    ("[ARGS]", "mistral-args"),
    ("[TOOL_CALLS]", "mistral"),
    ("<tool_call>", "hermes"),
    ("<|python_tag|>", "llama"),
    ('"parameters":', "llama"),
)
"""A text that occurs in the chat templates of a family, and its format. The first that occurs counts."""


def choose_tool_format(chat_template: object) -> str:
    """Return the format of calls that a chat template renders; "json" if it shows none, or there is no template."""
    text = chat_template if isinstance(chat_template, str) else ""
    return next((name for sign, name in TEMPLATE_SIGNS if sign in text), "json")

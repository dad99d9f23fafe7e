"""Pythonic: a list of calls as Python writes them, at the end of the text (Llama 3.2 and 4, OLMo 3).

[weather(city="Oslo", days=3), now()]
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from ...errors import SourceError, UnsupportedError
from ...forms import Form, json_schema, literal, triggered
from ...grammar.nodes import Grammar
from ...style import Limits, Style
from ..definitions import Tool
from ..python_values import keywords
from .call import Arguments, Asked, Envelope, ToolCall, any_of, listed

__all__ = ["PYTHONIC", "Keywords"]


@dataclass(frozen=True, slots=True)
class Keywords(Form):
    """The objects of a form as keyword arguments."""

    form: Form

    def read(self, limits: Limits) -> Grammar:
        return keywords(self.form.grammar(limits), limits)


def rest(tool: Tool, style: Style) -> Form:
    """A call behind its opening bracket. Of the style, what Python has too: whitespace (no indentation), numbers."""
    if isinstance(style.whitespace, int) or style.key_order != "schema":
        raise UnsupportedError(
            "arguments as Python writes them are neither indented nor in any order",
            hint='Use Style(whitespace="flexible" or "compact", key_order="schema").',
        )
    body = json_schema(dict(tool.parameters), style=replace(style, escapes="canonical"))
    return Arguments(tool.name, Keywords(body)) + ")"


def form(asked: Asked) -> Form:
    """Free text, then the list; if calls are required, the list alone."""
    for tool in asked.tools:
        if not all(part.isidentifier() for part in tool.name.split(".")):
            raise UnsupportedError(
                f"the tool {tool.name!r} has no name in Python", hint="Rename it, or use another envelope."
            )
    bodies = [(f"{tool.name}(", rest(tool, asked.style)) for tool in asked.tools]
    one = any_of([literal(name) + body for name, body in bodies])
    more = None if asked.most is None else asked.most - 1
    others = ((", " + one).repeat(0, more) if more != 0 else literal("")) + "]"
    if asked.free:
        return triggered({f"[{name}": body + others for name, body in bodies}, most=1, after="end")
    return "[" + listed(one, ", ", asked.most) + "]"


def calls(text: str) -> list[ToolCall]:
    """The calls in a text: the last list of calls, with which it ends; none, if it ends otherwise."""
    at = -1
    while (at := text.find("[", at + 1)) >= 0:
        try:
            tree = ast.parse(text[at:].strip(), mode="eval").body
        except (SyntaxError, ValueError):
            continue
        if isinstance(tree, ast.List) and tree.elts and all(isinstance(one, ast.Call) for one in tree.elts):
            return [read(one, text, at) for one in tree.elts if isinstance(one, ast.Call)]
    return []


def read(node: ast.Call, text: str, at: int) -> ToolCall:
    """One call: arguments by name, their values literals."""
    if node.args or any(one.arg is None for one in node.keywords):
        raise SourceError("arguments of a call are given by their names", source=text, position=at)
    try:
        values = {str(one.arg): ast.literal_eval(one.value) for one in node.keywords}
    except ValueError:
        raise SourceError("arguments of a call are literals", source=text, position=at) from None
    return ToolCall(ast.unparse(node.func), values)


PYTHONIC = Envelope("pythonic", "Llama 3.2 and 4, OLMo 3", form, calls)

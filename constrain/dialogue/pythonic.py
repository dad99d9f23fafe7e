"""Pythonic: a list of calls as Python writes them, at the end of the text (Llama 3.2 and 4, OLMo 3).

[weather(city="Oslo", days=3), now()]
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from ..base.errors import LimitError, SourceError, UnsupportedError
from ..base.options import Limits, Style
from ..forms import Form, json_schema, literal, triggered
from ..grammar.nodes import Grammar
from .envelope import Arguments, Envelope, ToolCall, ToolRequest, any_of_forms, list_of_calls
from .python_arguments import to_keyword_arguments
from .tool_definitions import Tool

__all__ = ["PYTHONIC", "KeywordArguments"]

START = re.compile(r"\[\s*[^\W\d][\w.]*\s*\(")
BRACKET = re.compile(r"[()\[\]{}]")
MOST_STARTS = 16
MOST_NESTING = 64
"""Maximum number of levels of brackets; Python's own parser fails at about 90 to 200."""


@dataclass(frozen=True, slots=True)
class KeywordArguments(Form):
    """The JSON objects of a form, written as keyword arguments of Python."""

    form: Form

    def read(self, limits: Limits) -> Grammar:
        return to_keyword_arguments(self.form.grammar(limits), limits)


def call_arguments_form(tool: Tool, style: Style) -> Form:
    """Return the form of a call after its opening bracket. Of the style only white space and numbers apply."""
    if isinstance(style.whitespace, int) or style.key_order != "schema":
        raise UnsupportedError(
            "Python keyword arguments can be neither indented nor in arbitrary order",
            hint='Use Style(whitespace="flexible" or "compact", key_order="schema").',
        )
    body = json_schema(dict(tool.parameters), style=replace(style, escapes="canonical"))
    return Arguments(tool.name, KeywordArguments(body)) + ")"


def pythonic_form(request: ToolRequest) -> Form:
    """Return the form: free text followed by the list of calls, or the list only if calls are required."""
    for tool in request.tools:
        if not all(part.isidentifier() for part in tool.name.split(".")):
            raise UnsupportedError(
                f"the name of the tool {tool.name!r} is not a Python identifier",
                hint="Rename it, or use another envelope.",
            )
    bodies = [(f"{tool.name}(", call_arguments_form(tool, request.style)) for tool in request.tools]
    one = any_of_forms([literal(name) + body for name, body in bodies])
    more = None if request.most is None else request.most - 1
    others = ((", " + one).repeat(0, more) if more != 0 else literal("")) + "]"
    if request.free:
        return triggered({f"[{name}": body + others for name, body in bodies}, most=1, after="end")
    return "[" + list_of_calls(one, ", ", request.most) + "]"


def read_pythonic_calls(text: str) -> list[ToolCall]:
    """Return the calls in the list at the end of a text; none if the text does not end with one.

    At most MOST_STARTS brackets are tried as the start of the list, the first ones that are followed by a name.
    """
    text = text.rstrip()
    if not text.endswith(")]"):
        return []
    starts = [match.start() for match in START.finditer(text)][:MOST_STARTS]
    for at in starts:
        if measure_nesting(text, at) > MOST_NESTING:
            raise LimitError(f"a list of calls is nested deeper than {MOST_NESTING} levels")
        try:
            tree = ast.parse(text[at:], mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        if isinstance(tree, ast.List) and tree.elts and all(isinstance(one, ast.Call) for one in tree.elts):
            return [read_python_call(one, text, at) for one in tree.elts if isinstance(one, ast.Call)]
    return []


def measure_nesting(text: str, at: int) -> int:
    """Return an upper bound of the nesting depth of brackets from an offset on; brackets in strings count too."""
    deepest = depth = 0
    for match in BRACKET.finditer(text, at):
        depth = depth + 1 if match[0] in "([{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def read_python_call(node: ast.Call, text: str, at: int) -> ToolCall:
    """Return one call. Its arguments must be keyword arguments with literal values."""
    if node.args or any(one.arg is None for one in node.keywords):
        raise SourceError("the arguments of a call must be keyword arguments", source=text, position=at)
    try:
        values = {str(one.arg): ast.literal_eval(one.value) for one in node.keywords}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise SourceError("the arguments of a call must be literals", source=text, position=at) from None
    return ToolCall(ast.unparse(node.func), values)


PYTHONIC = Envelope("pythonic", "Llama 3.2 and 4, OLMo 3", pythonic_form, read_pythonic_calls)

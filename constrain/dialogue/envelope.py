"""Shared parts of the envelopes: calls, requests, forms of arguments and lists, parsing of JSON within a text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from ..base.errors import ConstrainError, LimitError, SourceError
from ..base.json_documents import find_deeper
from ..base.options import Limits, Style
from ..forms import Form, json_schema, literal
from ..forms.form import as_form
from ..grammar.nodes import Grammar
from .tool_definitions import Tool

__all__ = [
    "Arguments",
    "ToolRequest",
    "Envelope",
    "ToolCall",
    "any_of_forms",
    "arguments_form",
    "read_json_value",
    "list_of_calls",
    "named_call_form",
]


def parse_integer(text: str) -> int:
    """Return an int. Raise LimitError if it has more digits than Python converts."""
    try:
        return int(text)
    except ValueError:
        raise LimitError(f"an argument is an integer of {len(text):,} digits") from None


DECODER = json.JSONDecoder(parse_int=parse_integer)
MOST_NESTING = Limits().nesting


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call parsed from a text.

    Attributes
    ----------
    name : str
        Name of the tool.
    arguments : dict of str to Any
        Arguments by name.
    """

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """The calls that the form of an envelope must allow.

    free: whether the model may also write text without a call. most: maximum number of calls, None for no limit.
    """

    tools: tuple[Tool, ...]
    free: bool
    most: int | None
    style: Style


@dataclass(frozen=True, slots=True)
class Envelope:
    """A format of tool calls. `form` returns the Form of a request, `calls` parses the calls in a text."""

    name: str
    models: str
    form: Callable[[ToolRequest], Form]
    calls: Callable[[str], list[ToolCall]]


@dataclass(frozen=True, slots=True)
class Arguments(Form):
    """The arguments of a tool: a form whose errors name the tool."""

    tool: str
    form: Form

    def read(self, limits: Limits) -> Grammar:
        try:
            return self.form.grammar(limits)
        except ConstrainError as error:
            error.cause = f"the arguments of the tool {self.tool!r}: {error.cause}"
            error.args = (error.render(),)
            raise


def arguments_form(tool: Tool, style: Style) -> Form:
    """Return the form of the arguments of a tool as a JSON object."""
    return Arguments(tool.name, json_schema(dict(tool.parameters), style=style))


def named_call_form(tool: Tool, key: str, style: Style) -> Form:
    """Return the form of a call as a JSON object, without its opening `{"name": "`."""
    return literal(f'{tool.name}", "{key}": ') + arguments_form(tool, style) + "}"


def any_of_forms(forms: list[Form]) -> Form:
    """Return the union of several forms."""
    return reduce(or_, forms)


def list_of_calls(one: Form, separator: Form | str, most: int | None) -> Form:
    """Return the form of one to `most` calls with separators."""
    if most == 1:
        return one
    return one + (as_form(separator) + one).repeat(0, None if most is None else most - 1)


def read_json_value(text: str, at: int, description: str) -> tuple[Any, int]:
    """Return the JSON value at an offset, after white space, and the offset of its end."""
    while text[at : at + 1].isspace():
        at += 1
    if find_deeper(text, MOST_NESTING, at) >= 0:
        raise LimitError(f"{description} is nested deeper than {MOST_NESTING} levels (Limits.nesting)")
    try:
        return DECODER.raw_decode(text, at)
    except (RecursionError, json.JSONDecodeError) as error:
        if isinstance(error, RecursionError):
            raise LimitError(
                f"{description} is nested too deeply for this interpreter",
                hint="Call tool_calls from a shallower stack.",
            ) from None
        raise SourceError(f"{description} is not JSON: {error.msg}", source=text, position=error.pos) from None


def read_call(value: Any, key: str, text: str, at: int) -> ToolCall:
    """Return the call that a JSON object describes. Raise SourceError if it is not a call."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not isinstance(value.get(key), dict):
        raise SourceError(
            f'a call must be an object with "name", a text, and "{key}", an object', source=text, position=at
        )
    return ToolCall(value["name"], value[key])

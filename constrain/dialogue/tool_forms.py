"""`tools`: the Form of an answer that may call functions; `tool_calls`: the calls in such an answer."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from ..base.errors import SourceError, UnsupportedError, check_count, check_type
from ..base.options import Style
from ..forms import Form
from .envelope import Envelope, ToolCall, ToolRequest
from .envelope_table import ENVELOPES
from .tool_definitions import read_tools

__all__ = ["tool_calls", "tools"]


def tools(
    definitions: Any, envelope: str = "hermes", *, choice: str = "auto", most: int | None = None, style: Style = Style()
) -> Form:
    """The Form of answers of a model that has tools.

    definitions: what tools there are; see `dialogue.tool_definitions` for the shapes that are read. envelope: how the
    model writes calls, one of `dialogue.ENVELOPES`. choice: "auto": text, in which calls may stand; "required": one
    call or more, and nothing else (in harmony, thoughts before it); the name of a tool: the same with that one tool.
    most: how many calls, at most (None: any number; 1: no parallel calls). style: how the arguments are spelled as
    JSON.

    Arguments are exactly what the tool's schema allows. Raises what `dialogue.read_tools` and `json_schema` raise.
    """
    listed = read_tools(definitions)
    most = None if most is None else check_count("most", most, 1)
    check_type("choice", choice, str, "give 'auto', 'required' or the name of a tool")
    check_type("style", style, Style, "give a constrain.Style")
    if choice not in ("auto", "required"):
        names = [tool.name for tool in listed]
        if choice not in names:
            close = get_close_matches(choice, names, 1)
            raise SourceError(
                f"choice is {choice!r}, and no tool is called so",
                hint=f"Did you mean {close[0]!r}?"
                if close
                else f"It is 'auto', 'required' or one of {', '.join(names)}.",
            )
        listed = [tool for tool in listed if tool.name == choice]
    return find_envelope(envelope).form(ToolRequest(tuple(listed), choice == "auto", most, style))


def tool_calls(text: str, envelope: str = "hermes") -> list[ToolCall]:
    """The calls in an answer, in order; none, if it is text. SourceError with its place for a call that is damaged."""
    check_type("text", text, str, "give the text that the model wrote")
    return find_envelope(envelope).calls(text)


def find_envelope(envelope: str) -> Envelope:
    """The envelope of that name."""
    check_type("envelope", envelope, str, f"give one of {', '.join(map(repr, ENVELOPES))}")
    found = ENVELOPES.get(envelope)
    if found is None:
        raise UnsupportedError(
            f"there is no envelope {envelope!r}",
            hint=f"Known are {', '.join(f'{e.name} ({e.models})' for e in ENVELOPES.values())}.",
        )
    return found

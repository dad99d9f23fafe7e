"""`tools`: the Form of an answer that may call tools; `tool_calls`: parse the calls in such an answer."""

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
    """Return the form of the answers of a model that has tools.

    The arguments of a call are exactly what the schema of the tool allows.

    Parameters
    ----------
    definitions : object
        The tools; see `dialogue.tool_definitions` for the accepted formats.
    envelope : str
        How the model writes calls, one of `dialogue.ENVELOPES`.
    choice : str
        "auto": text that may contain calls. "required": one or more calls and nothing else (in harmony, reasoning
        before them). The name of a tool: as "required", with that tool only.
    most : int, optional
        Maximum number of calls. None for any number, 1 for no parallel calls.
    style : Style
        Spelling of the arguments as JSON.

    Returns
    -------
    Form

    Raises
    ------
    SchemaError, UnsupportedError
        As `dialogue.read_tools` and `json_schema` do, or for an unknown envelope.
    SourceError
        If `choice` names no tool.
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
                f"choice is {choice!r}, which is not the name of a tool",
                hint=f"Did you mean {close[0]!r}?"
                if close
                else f"Give 'auto', 'required' or one of {', '.join(names)}.",
            )
        listed = [tool for tool in listed if tool.name == choice]
    return find_envelope(envelope).form(ToolRequest(tuple(listed), choice == "auto", most, style))


def tool_calls(text: str, envelope: str = "hermes") -> list[ToolCall]:
    """Parse the tool calls in an answer.

    Parameters
    ----------
    text : str
        The text that the model wrote.
    envelope : str
        How the model writes calls, one of `dialogue.ENVELOPES`.

    Returns
    -------
    list of ToolCall
        The calls in order, empty if there are none.

    Raises
    ------
    SourceError
        If a call is malformed, with its position.
    """
    check_type("text", text, str, "give the text that the model wrote")
    return find_envelope(envelope).calls(text)


def find_envelope(envelope: str) -> Envelope:
    """Return the envelope with this name. Raise UnsupportedError if there is none."""
    check_type("envelope", envelope, str, f"give one of {', '.join(map(repr, ENVELOPES))}")
    chosen = ENVELOPES.get(envelope)
    if chosen is None:
        raise UnsupportedError(
            f"there is no envelope {envelope!r}",
            hint=f"The envelopes are {', '.join(f'{e.name} ({e.models})' for e in ENVELOPES.values())}.",
        )
    return chosen

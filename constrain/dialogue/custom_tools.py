"""Calls of custom tools, whose input is a text rather than JSON arguments, and may have a form of its own.

    <custom_call name="sql">
    SELECT 1
    </custom_call>

The text is not escaped, so any Form can describe it, including a Lark grammar with a lexer. It does not contain CLOSE,
which ends it. No family of models is trained on a format of such calls, so this one serves all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.errors import ArgumentError, SchemaError, UnsupportedError, check_choice, check_count, check_type
from ..forms import Form, excludes, literal, triggered
from ..forms.free_text_forms import Triggered, unconstrained
from .envelope import any_of_forms
from .tool_definitions import NAME

__all__ = ["CLOSE", "OPEN", "CustomTool", "custom_calls", "custom_input_form", "with_custom_calls"]

OPEN, CLOSE = '<custom_call name="', "\n</custom_call>"


@dataclass(frozen=True)
class CustomTool:
    """A tool whose input is a text.

    form: what the text is, None for any text. definition: the source of the form, to be shown to a model.

    Raises
    ------
    SchemaError
        If the name is not a valid name of a tool.
    TypeError
        If the name, description or definition is no text, or `form` no Form.
    """

    name: str
    description: str
    form: Form | None = None
    definition: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "description", "definition"):
            check_type(name, getattr(self, name), str, "give a text")
        check_type("form", self.form, (Form, type(None)), "give a Form, or None for any text")
        if not NAME.fullmatch(self.name):
            raise SchemaError(
                f"the name of a tool is {self.name!r}",
                hint="A name consists of at most 128 letters, digits and _ . : / -.",
            )


def custom_input_form(tool: CustomTool) -> Form:
    """Return the form of the input of a tool with the CLOSE that ends it."""
    check_type("tool", tool, CustomTool, "give a CustomTool")
    if tool.form is None:
        return unconstrained((), CLOSE)
    return (tool.form & excludes(CLOSE)) + CLOSE


def custom_calls(tools: Sequence[CustomTool]) -> Form:
    """Return the form of a call without its OPEN."""
    check_type("tools", tools, Sequence, "give a list of CustomTools")
    if not tools:
        raise ArgumentError("tools is empty: give at least one")
    forms = [(custom_input_form(tool), tool) for tool in tools]
    return any_of_forms([literal(f'{tool.name}">\n') + form for form, tool in forms])


def with_custom_calls(form: Form | None, tools: Sequence[CustomTool], *, choice: str, most: int | None) -> Form:
    """Return the form of an answer that may also call custom tools.

    Parameters
    ----------
    form : Form or None
        The answers with calls of other tools (`tools`); None if there are no others.
    tools : sequence of CustomTool
        One or more.
    choice : {"auto", "required"}
        As for `tools`. Where calls are required, an answer has either calls of these or calls of the others.
    most : int or None
        Most calls.

    Raises
    ------
    UnsupportedError
        If `form` does not begin its calls with triggers within free text.
    """
    check_choice("choice", choice, ("auto", "required"))
    check_type("form", form, (Form, type(None)), "give the form of other answers, or None")
    most = None if most is None else check_count("most", most, 1)
    calls = custom_calls(tools)
    if choice == "required":
        one = literal(OPEN) + calls
        several = one if most == 1 else one + ("\n" + one).repeat(0, None if most is None else most - 1)
        return several if form is None else form | several
    if form is None:
        return triggered({OPEN: calls}, most=most)
    if not isinstance(form, Triggered):
        raise UnsupportedError(
            "the model's format of calls cannot be combined with custom tools",
            hint="Give function tools only, or custom tools only.",
        )
    return triggered([*form.forms, (OPEN, calls)], most=form.most, after=form.after)

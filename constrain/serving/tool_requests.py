"""The tools of a request, and what its `tool_choice` makes of them.

    tools, tool_choice, parallel_tool_calls -> ToolPlan: which calls are possible, required or not, how many

A tool whose schema or grammar cannot be enforced is left out and reported, and the others work; if it is `strict`, or
the only one that the choice allows, the request is refused. Both shapes are read, that of chat completions
(`{"type": "function", "function": {...}}`) and the flat one of responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..base.errors import ConstrainError
from ..base.json_documents import pointer_token
from ..dialogue import Tool, read_tools
from ..dialogue.custom_tools import CustomTool, custom_input_form
from ..forms import Form, grammar, json_schema, regex
from ..vocabulary.vocabulary import Vocabulary
from .request_errors import RequestError, as_request_error, locate_errors
from .request_objects import RequestObject
from .schema_notes import note_schema_warnings

__all__ = ["RequestedTool", "ToolPlan", "plan_tools"]

MOST_TOOLS = 128
Shape = Literal["nested", "flat"]
FUNCTION = ("name", "description", "parameters", "strict")
CHOICES = ("none", "auto", "required")


@dataclass(frozen=True)
class RequestedTool:
    """A tool of a request. pointer: the place of its schema or grammar. error: why it cannot be enforced."""

    tool: Tool | CustomTool
    pointer: str
    is_strict: bool = False
    error: RequestError | None = None

    @property
    def name(self) -> str:
        return self.tool.name


@dataclass(frozen=True)
class ToolPlan:
    """The calls that an answer may have.

    Attributes
    ----------
    tools : tuple of Tool or CustomTool
        Those that may be called; none means that there are no calls.
    is_required : bool
        Whether the answer is nothing but calls.
    most : int or None
        Most calls.
    refused : tuple of RequestedTool
        The tools that were left out.
    pointer : str
        The place of the tools.
    """

    tools: tuple[Tool | CustomTool, ...] = ()
    is_required: bool = False
    most: int | None = None
    refused: tuple[RequestedTool, ...] = ()
    pointer: str = "/tools"

    @property
    def functions(self) -> list[Tool]:
        """The tools with JSON arguments."""
        return [tool for tool in self.tools if isinstance(tool, Tool)]

    @property
    def customs(self) -> list[CustomTool]:
        """The tools whose input is a text."""
        return [tool for tool in self.tools if isinstance(tool, CustomTool)]


def plan_tools(body: RequestObject, shape: Shape, vocabulary: Vocabulary) -> ToolPlan:
    """Return the calls that a request allows; raise RequestError for what is wrong with them."""
    tools = read_requested_tools(body, shape)
    most = 1 if body.read_flag("parallel_tool_calls") is False else None
    plan, names = read_choice(body, shape, ToolPlan(tuple(one.tool for one in tools), most=most))
    if not plan.tools:
        return plan
    wanted = [check_tool(one, vocabulary) for one in tools if names is None or one.name in names]
    refused = [one for one in wanted if one.error is not None]
    for one in refused:
        if one.error is not None and (one.is_strict or (len(refused) == len(wanted) and plan.is_required)):
            raise one.error
    kept = tuple(one.tool for one in wanted if one.error is None)
    return replace(plan, tools=kept, refused=tuple(refused))


def read_requested_tools(body: RequestObject, shape: Shape) -> list[RequestedTool]:
    """Return the tools of a request. Raise RequestError for one that is malformed."""
    found: list[RequestedTool] = []
    for place, item in body.read_list("tools", MOST_TOOLS) or ():
        given = RequestObject(item, place)
        kind = given.require_text("type")
        if kind not in ("function", "custom"):
            raise given.refuse(
                "type", f"tools of the type {kind[:40]!r} are not supported", hint="Give function or custom tools.",
                code="unsupported_tool",
            )  # fmt: skip
        inner = given.require_object(kind) if shape == "nested" else given
        found.append(read_function(inner) if kind == "function" else read_custom(inner))
        given.finish()
        if any(found[-1].name == other.name for other in found[:-1]):
            raise inner.refuse("name", f"two tools have the name {found[-1].name!r}")
    return found


def read_function(given: RequestObject) -> RequestedTool:
    """Return a function tool."""
    read_calling_members(given)
    given.read("output_schema")
    given.require_text("name")
    given.read_text("description")
    is_strict = bool(given.read_flag("strict"))
    given.read_typed("parameters", lambda value: isinstance(value, dict), "a JSON Schema of an object")
    given.finish()
    definition = {name: given.value[name] for name in FUNCTION if given.has(name)}
    try:
        [tool] = read_tools([definition])
    except ConstrainError as error:
        shown = str(error.pointer or "").removeprefix("/0")
        raise RequestError(error.cause, given.pointer + shown, hint=error.hint) from error
    return RequestedTool(tool, given.place("parameters"), is_strict)


def read_calling_members(given: RequestObject) -> None:
    """Read the members of a tool that say how it may be called. Raise RequestError unless the model may call it in its
    answers, as it can all tools here.
    """
    given.read("type")
    for name in ("async", "defer_loading"):
        if given.read_flag(name):
            raise given.refuse(name, f"{name} is not supported", code="unsupported_field")
    callers = given.read_texts("allowed_callers")
    if callers is not None and "direct" not in callers:
        raise given.refuse(
            "allowed_callers", "there are no programs here that call tools", hint="Add 'direct', or leave it out.",
            code="unsupported_field",
        )  # fmt: skip


def read_custom(given: RequestObject) -> RequestedTool:
    """Return a custom tool. Its format is text, or a grammar in the syntax lark or regex."""
    read_calling_members(given)
    name, description = given.require_text("name"), given.read_text("description") or ""
    form: Form | None = None
    shown, pointer = "", given.place("format")
    layout = given.read_object("format")
    if layout is not None and layout.require_option("type", ("text", "grammar")) == "grammar":
        inner = layout.require_object("grammar") if layout.has("grammar") else layout
        syntax = inner.require_option("syntax", ("lark", "regex"))
        shown, pointer = inner.require_text("definition"), inner.place("definition")
        with locate_errors(pointer):
            form = regex(shown) if syntax == "regex" else grammar(shown)
        inner.finish()
    if layout is not None:
        layout.finish()
    given.finish()
    with locate_errors(given.place("name")):
        return RequestedTool(CustomTool(name, description, form, shown), pointer)


def check_tool(one: RequestedTool, vocabulary: Vocabulary) -> RequestedTool:
    """Return a tool, with the error if what it takes cannot be enforced."""
    tool = one.tool
    with note_schema_warnings(one.pointer):
        form = json_schema(dict(tool.parameters)) if isinstance(tool, Tool) else custom_input_form(tool)
    try:
        form.compile(vocabulary)
    except ConstrainError as error:
        located = as_request_error(error, one.pointer)
        located.cause = f"the tool {tool.name!r}: {located.cause}"
        located.args = (located.render(),)
        return replace(one, error=located)
    return one


def read_choice(body: RequestObject, shape: Shape, plan: ToolPlan) -> tuple[ToolPlan, set[str] | None]:
    """Return the plan of a `tool_choice`, and the names of the tools that it allows; None for all."""
    choice = body.read("tool_choice")
    known = {tool.name: tool for tool in plan.tools}
    if isinstance(choice, str) or choice is None:
        mode = body.read_option("tool_choice", CHOICES) or "auto"
        if mode == "required" and not known:
            raise body.refuse("tool_choice", "a call is required, and there are no tools", code="contradiction")
        return apply_mode(plan, mode), None
    given = body.require_object("tool_choice")
    kind = given.require_option("type", ("function", "custom", "allowed_tools"))
    inner = (
        given
        if shape == "flat" or (kind == "allowed_tools" and kind not in given.value)
        else given.require_object(kind)
    )
    if kind == "allowed_tools":
        names = [
            read_reference(RequestObject(item, place), shape, known) for place, item in inner.read_list("tools") or ()
        ]
        mode = inner.require_option("mode", ("auto", "required"))
        inner.finish()
        if not names:
            raise inner.refuse("tools", "no tool is allowed", hint='Give "tool_choice": "none".')
        return replace(apply_mode(plan, mode), pointer=inner.place("tools")), set(names)
    name = check_reference(inner, known, kind)
    given.finish()
    return replace(plan, is_required=True, most=1, pointer=body.place("tool_choice")), {name}


def apply_mode(plan: ToolPlan, mode: str) -> ToolPlan:
    """Return a plan for none, auto or required."""
    return replace(plan, tools=()) if mode == "none" else replace(plan, is_required=mode == "required")


def read_reference(given: RequestObject, shape: Shape, known: dict[str, Tool | CustomTool]) -> str:
    """Return the name in a reference to a tool."""
    kind = given.require_option("type", ("function", "custom"))
    inner = given if shape == "flat" or kind not in given.value else given.require_object(kind)
    name = check_reference(inner, known, kind)
    given.finish()
    return name


def check_reference(given: RequestObject, known: dict[str, Tool | CustomTool], kind: str) -> str:
    """Return the name of a tool. Raise RequestError if there is none of that name and kind."""
    given.read("type")
    name = given.require_text("name")
    given.finish()
    if name not in known or isinstance(known[name], CustomTool) != (kind == "custom"):
        raise given.refuse(name="name", cause=f"there is no {kind} tool {name[:80]!r}", hint=describe_names(known))
    return name


def describe_names(known: Sequence[str] | dict[str, Any]) -> str:
    """Return a hint that lists names."""
    return f"The tools are {', '.join(pointer_token(name) for name in known)}." if known else "There are no tools."

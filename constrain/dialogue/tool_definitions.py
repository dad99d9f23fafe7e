"""Read tool definitions in the formats of several APIs.

{"type": "function", "function": {"name", "description", "parameters"}}     OpenAI, chat completions
{"type": "function", "name", "description", "parameters"}                   OpenAI, responses
{"name", "description", "input_schema"}                                     Anthropic
{"name", "description", "inputSchema"}, {"tools": [...]}                    MCP: a tool, a list of tools
a Python function                                                           its signature and docstring
a class with fields (Pydantic, dataclass, TypedDict)                        its name, its fields, its docstring

Definitions have no members but those of these formats (`tool_members`): a misspelt one is refused.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, get_type_hints

from ..base.errors import ConstrainError, SchemaError, UnsupportedError
from ..base.json_documents import parse_strictly
from ..base.options import Limits
from ..frontends.python_types import to_schema
from .tool_members import SCHEMAS, check_definition, check_wrapper

__all__ = ["Tool", "read_tools"]

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}")
"""OpenAI allows [A-Za-z0-9_-]{1,64}; MCP servers also use `.`, `/` and `:`.

None of these needs escaping in any envelope.
"""
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call. `parameters` is the JSON Schema of its arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def openai(self) -> dict[str, Any]:
        """Return the definition in the format of OpenAI's chat completions, which chat templates take."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


def read_tools(definitions: Any) -> list[Tool]:
    """Return the tools of a list of definitions, an MCP listing, or one definition; see the module for the formats.

    Raise SchemaError with a JSON pointer into the definitions, or UnsupportedError for a Python function whose
    parameters cannot be passed by name or have types without a JSON Schema.
    """
    if isinstance(definitions, str):
        try:
            definitions = parse_strictly(definitions, Limits().nesting)
        except ValueError as error:
            raise SchemaError(
                f"the tool definitions are not JSON: {error}", hint="Give them as Python lists and dicts."
            ) from None
    pointer = ""
    if isinstance(definitions, Mapping) and isinstance(definitions.get("result"), Mapping):
        definitions, pointer = definitions["result"], "/result"  # a JSON-RPC response
    if isinstance(definitions, Mapping) and "tools" in definitions:
        definitions, pointer = definitions["tools"], pointer + "/tools"
    elif isinstance(definitions, Mapping) or callable(definitions):
        definitions = [definitions]
    if not isinstance(definitions, Iterable) or isinstance(definitions, (Mapping, bytes)):
        raise SchemaError(
            f"tools is {definitions!r}, which is not a list", pointer=pointer, hint="Give a list of definitions."
        )
    tools = [read_tool(one, f"{pointer}/{k}") for k, one in enumerate(definitions)]
    if not tools:
        raise SchemaError("the list of tools is empty", pointer=pointer, hint="Give one or more definitions.")
    seen: dict[str, int] = {}
    for k, tool in enumerate(tools):
        if tool.name in seen:
            raise SchemaError(
                f"two tools have the name {tool.name!r}: the first is at {pointer}/{seen[tool.name]}",
                pointer=f"{pointer}/{k}",
                hint="Calls identify tools by name: rename one of them.",
            )
        seen[tool.name] = k
    return tools


def read_tool(given: Any, pointer: str) -> Tool:
    """Return the tool of one definition."""
    if isinstance(given, Tool):
        return given
    if hasattr(given, "inputSchema") and hasattr(given, "name"):  # mcp.types.Tool
        given = {"name": given.name, "description": given.description or "", "inputSchema": given.inputSchema}
    if isinstance(given, type):
        return Tool(given.__name__, inspect.getdoc(given) or "", read_parameters(to_schema(given), pointer))
    if callable(given):
        return read_function(given, pointer)
    if not isinstance(given, Mapping):
        raise SchemaError(
            f"not a tool definition: {given!r}",
            pointer=pointer,
            hint="Give a definition as a dict, a Python function or a class.",
        )
    kind = given.get("type", "function")
    if "function" in given:
        check_wrapper(given, pointer)
        given, pointer = given["function"], pointer + "/function"
        if not isinstance(given, Mapping):
            raise SchemaError(f'"function" is {given!r}', pointer=pointer, hint='It holds "name" and "parameters".')
    if kind not in ("function", "custom") or (kind == "custom" and not any(key in given for key in SCHEMAS)):
        raise UnsupportedError(
            f"a tool of type {kind!r} has no JSON arguments",
            pointer=pointer,
            hint="Give function tools; for another form use constrain.triggered({mark: form}).",
        )
    return read_mapping(given, pointer)


def read_mapping(given: Mapping[str, Any], pointer: str) -> Tool:
    """Return the tool of a definition with "name" and a schema under one of several keys."""
    check_definition(given, pointer)
    if "name" not in given:
        raise SchemaError(
            'a tool has no "name"', pointer=pointer, hint=f"It has {', '.join(map(repr, given)) or 'nothing'}."
        )
    name = check_tool_name(given["name"], pointer + "/name")
    description = given.get("description") or ""
    if not isinstance(description, str):
        raise SchemaError(
            f"the description of {name!r} is {description!r}", pointer=pointer + "/description", hint="Give a text."
        )
    keys = [key for key in SCHEMAS if given.get(key) is not None]
    if len(keys) > 1:
        raise SchemaError(
            f"the arguments of {name!r} are defined twice, as {' and '.join(map(repr, keys))}",
            pointer=pointer,
            hint="Give one of them.",
        )
    schema = given[keys[0]] if keys else NO_ARGUMENTS
    return Tool(name, description, read_parameters(schema, f"{pointer}/{keys[0]}" if keys else pointer))


def check_tool_name(name: Any, pointer: str) -> str:
    """Return the name of a tool. Raise SchemaError if it is not valid."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise SchemaError(
            f"the name of a tool is {name!r}",
            pointer=pointer,
            hint="A name consists of at most 128 letters, digits and _ . : / -.",
        )
    return name


def read_parameters(schema: Any, pointer: str) -> Mapping[str, Any]:
    """Return the schema of the arguments, which must be that of an object."""
    if not isinstance(schema, Mapping):
        raise SchemaError(
            f"the schema of a tool's arguments is {schema!r}",
            pointer=pointer,
            hint='It describes an object: {"type": "object", "properties": {...}}.',
        )
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise SchemaError(
            f"the arguments of a tool are of type {kind!r}",
            pointer=pointer + "/type",
            hint='They are given by name: {"type": "object", "properties": {...}}.',
        )
    return {**schema, "type": "object"}


def read_function(function: Callable[..., Any], pointer: str) -> Tool:
    """Return the tool of a Python function: parameters by name and annotation; those with a default are optional."""
    name = check_tool_name(getattr(function, "__name__", ""), pointer)
    try:
        signature = inspect.signature(function)
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise UnsupportedError(
            f"the signature of {name} cannot be read: {error}", pointer=pointer, hint="Give a definition as a dict."
        ) from None
    fields: dict[str, Any] = {}
    required: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UnsupportedError(
                f"{name}: the parameter {str(parameter).split(':')[0]!r} cannot be passed by name",
                pointer=pointer,
                hint="Calls pass arguments by name: use plain parameters, or wrap the function.",
            )
        fields[parameter.name] = hints.get(parameter.name, Any)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    try:
        schema = to_schema(TypedDict(name, fields))  # type: ignore[operator]
    except ConstrainError as error:
        raise UnsupportedError(f"{name}: {error.cause}", pointer=pointer, hint=error.hint) from None
    schema.pop("title", None)
    return Tool(name, inspect.getdoc(function) or "", {**schema, "required": required})

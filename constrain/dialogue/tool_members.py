"""The members that a tool definition may have, in the formats of several APIs; any other is refused.

A misspelt "parameters" would otherwise be a tool without arguments. The formats share one list, as programs translate
definitions between them and keep what they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from ..base.errors import SchemaError, describe_value
from ..base.json_documents import pointer_token

__all__ = ["SCHEMAS", "check_definition", "check_wrapper"]

SCHEMAS = ("parameters", "input_schema", "inputSchema")
"""The schema of the arguments: OpenAI's name, Anthropic's, that of MCP."""
ANNOTATIONS = (
    "strict",  # OpenAI and Anthropic; every schema is enforced here
    "async", "defer_loading", "output_schema", "allowed_callers",  # OpenAI, responses
    "cache_control", "eager_input_streaming", "input_examples",  # Anthropic, also with the names of OpenAI (LiteLLM)
    "title", "outputSchema", "annotations", "icons", "execution", "_meta", "meta",  # MCP; `meta` in its Python classes
    "return",  # transformers.utils.get_json_schema: what the function returns
)  # fmt: skip
"""Members that say nothing about the arguments of a call."""
DEFINITION = ("type", "name", "description", *SCHEMAS, *ANNOTATIONS)
WRAPPER = ("type", "function", *ANNOTATIONS)
"""Members around the "function" of OpenAI's chat completions."""


def check_definition(given: Mapping[str, Any], pointer: str) -> None:
    """Raise SchemaError for a member that no format of definitions has, unless it is null."""
    hint = "A definition has 'name', 'description' and 'parameters', 'input_schema' or 'inputSchema'."
    check_members(given, pointer, DEFINITION, (*DEFINITION, "function"), hint)


def check_wrapper(given: Mapping[str, Any], pointer: str) -> None:
    """Raise SchemaError for a member beside "function" that describes no tool, unless it is null."""
    check_members(given, pointer, WRAPPER, WRAPPER, "The name and the parameters of a tool are members of 'function'.")


def check_members(
    given: Mapping[str, Any], pointer: str, known: tuple[str, ...], near: tuple[str, ...], hint: str
) -> None:
    """Raise SchemaError for a member that is not known, with a similar one of `near`, otherwise with the hint."""
    for name, value in given.items():
        if name not in known and value is not None:
            close = get_close_matches(str(name), near, 1)
            raise SchemaError(
                f"a tool definition has no member {describe_value(name)}",
                pointer=f"{pointer}/{pointer_token(str(name))}",
                hint=f"Did you mean {close[0]!r}?" if close else hint,
            )

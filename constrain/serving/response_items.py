"""The input of responses as messages: a text, or items (messages, calls, their outputs, reasoning)."""

from __future__ import annotations

from typing import Any

from .chat_messages import read_content
from .request_errors import RequestError
from .request_objects import RequestObject

__all__ = ["read_input"]

ROLES = ("system", "developer", "user", "assistant")
OUTPUTS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
CALL_MEMBERS = ("name", "namespace", "caller")
"""Members that a call and its output have; the output is shown to the model as that of its `call_id`."""

ITEM_HINT = "Give messages, function and custom calls and their outputs."
REFERENCE_HINT = 'Nothing is stored: give the item itself, as clients do if the request has "store": false.'


def read_input(body: RequestObject) -> list[dict[str, Any]]:
    """Return the input of a request as messages, its instructions in front.

    Raises
    ------
    RequestError
        For an unknown item or member, content that is not text, or an output of a call that is not in the input.
    """
    messages: list[dict[str, Any]] = []
    instructions = body.read_text("instructions")
    if instructions:
        messages.append({"role": "system", "content": instructions})
    given = body.require("input")
    if isinstance(given, str):
        messages.append({"role": "user", "content": str(body.read_text("input"))})
        return messages
    items = body.read_list("input") or []
    if not items:
        raise body.refuse("input", "the input has no items", code="missing")
    calls: set[str] = set()
    for place, item in items:
        add_item(RequestObject(item, place), messages, calls)
    return messages


def add_item(given: RequestObject, messages: list[dict[str, Any]], calls: set[str]) -> None:
    """Add an item to the messages. Successive calls are one message of the assistant."""
    kind = given.read_text("type") or "message"
    for name in ("id", "status", "phase"):
        given.read(name)
    if kind == "message":
        content = read_content(given, "content")
        if content is None:
            raise given.refuse("content", "the message has no content", code="missing")
        messages.append({"role": given.require_option("role", ROLES), "content": content})
    elif kind in OUTPUTS.values():
        call = read_item_call(given, kind)
        calls.add(call["id"])
        if not messages or "tool_calls" not in messages[-1]:
            messages.append({"role": "assistant", "content": None, "tool_calls": []})
        messages[-1]["tool_calls"].append(call)
    elif kind in OUTPUTS:
        name = given.require_text("call_id")
        if name not in calls:
            raise given.refuse("call_id", f"there is no earlier call {name[:80]!r}")
        given.require("output")
        for member in CALL_MEMBERS:
            given.read(member)
        messages.append({"role": "tool", "tool_call_id": name, "content": read_content(given, "output") or ""})
    elif kind == "reasoning":  # thoughts of an earlier answer are not shown to the model again
        for name in ("summary", "content", "encrypted_content"):
            given.read(name)
    else:
        raise RequestError(
            f"items of the type {kind[:40]!r} are not supported", given.place("type"), code="unsupported_item",
            hint=REFERENCE_HINT if kind == "item_reference" else ITEM_HINT,
        )  # fmt: skip
    given.finish()


def read_item_call(given: RequestObject, kind: str) -> dict[str, Any]:
    """Return a call as chat templates take it."""
    function = {"name": given.require_text("name")}
    function["arguments"] = given.require_text("arguments" if kind == "function_call" else "input")
    for name in (*CALL_MEMBERS, "async", "parsed_arguments"):
        given.read(name)
    return {"id": given.require_text("call_id"), "type": "function", "function": function}

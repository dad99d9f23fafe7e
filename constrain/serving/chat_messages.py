"""The messages of chat completions, read strictly: roles, contents, calls and their results."""

from __future__ import annotations

from typing import Any

from .request_objects import RequestObject

__all__ = ["read_content", "read_messages"]

ROLES = ("system", "developer", "user", "assistant", "tool")
TEXT_PARTS = ("text", "input_text", "output_text")
MOST_MESSAGES = 10_000


def read_messages(body: RequestObject) -> list[dict[str, Any]]:
    """Return the messages of a request as chat templates take them.

    Raises
    ------
    RequestError
        For an unknown role or member, content that is not text, or a result of a call that was not made.
    """
    items = body.read_list("messages", MOST_MESSAGES)
    if not items:
        raise body.refuse("messages", "messages is a list of one or more messages", code="missing")
    calls: set[str] = set()
    return [read_message(RequestObject(item, place), calls) for place, item in items]


def read_message(given: RequestObject, calls: set[str]) -> dict[str, Any]:
    """Return a message. calls: the ids of the calls so far, to which this message may add."""
    role = given.require_option("role", ROLES)
    message: dict[str, Any] = {"role": role, "content": read_content(given, "content")}
    if (name := given.read_text("name")) is not None:
        message["name"] = name
    if role == "assistant":
        read_calls(given, message, calls)
    elif message["content"] is None:
        raise given.refuse("content", "the message has no content", code="missing")
    if role == "tool":
        message["tool_call_id"] = given.require_text("tool_call_id")
        if message["tool_call_id"] not in calls:
            raise given.refuse("tool_call_id", f"there is no earlier call {message['tool_call_id'][:80]!r}")
    given.finish()
    return message


def read_calls(given: RequestObject, message: dict[str, Any], calls: set[str]) -> None:
    """Add the calls of an assistant's message to it. A refusal is its content; annotations are what clients echo."""
    refusal = given.read_text("refusal")
    for name in ("annotations", "reasoning_content", "reasoning", "parsed"):
        given.read(name)
    for name in ("function_call", "audio"):
        if given.read(name) is not None:
            raise given.refuse(name, f"{name} is not supported", code="unsupported_field")
    if refusal is not None and message["content"] is None:
        message["content"] = refusal
    made = [read_earlier_call(RequestObject(item, place)) for place, item in given.read_list("tool_calls") or ()]
    if made:
        message["tool_calls"] = made
        calls.update(call["id"] for call in made)
    elif message["content"] is None:
        raise given.refuse("content", "the message has neither content nor calls", code="missing")


def read_earlier_call(given: RequestObject) -> dict[str, Any]:
    """Return a call of an earlier answer. That of a custom tool becomes one of a function with the argument `input`."""
    kind = given.require_option("type", ("function", "custom")) if given.has("type") else "function"
    name = given.require_text("id")
    given.read("index")
    inner = given.require_object(kind)
    function = {"name": inner.require_text("name")}
    function["arguments"] = inner.require_text("arguments" if kind == "function" else "input")
    inner.read("parsed_arguments")
    inner.finish()
    given.finish()
    return {"id": name, "type": "function", "function": function}


def read_content(given: RequestObject, name: str) -> str | None:
    """Return the content of a message: a text, or the texts of its parts. Other parts are refused."""
    content = given.read(name)
    if not isinstance(content, list):
        return given.read_text(name)
    return "".join(read_part(RequestObject(item, place)) for place, item in given.read_list(name) or ())


def read_part(given: RequestObject) -> str:
    """Return the text of a part of a content."""
    kind = given.require_text("type")
    if kind == "refusal":
        text = given.require_text("refusal")
    elif kind in TEXT_PARTS:
        text = given.require_text("text")
    else:
        raise given.refuse(
            "type", f"parts of the type {kind[:40]!r} are not supported", hint="The model reads text only.",
            code="unsupported_content",
        )  # fmt: skip
    for name in ("annotations", "logprobs", "parsed", "prompt_cache_breakpoint"):  # what clients add to answers, too
        given.read(name)
    given.finish()
    return text

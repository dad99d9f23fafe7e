"""Conversations as token ids: by the chat template of the tokenizer, or composed as plain text where there is none.

The embedded model was trained on one form of prompt, `Schema: {...}` between an instruction and `Answer:`
(`constrain.demo`). A conversation is put into that form with what the answer must be, or with the JSON Schema that a
message contains, which clients write there to describe an answer that they do not constrain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import LimitError, shorten_text
from ..base.json_documents import pointer_token
from ..dialogue import Tool
from ..integrations.transformers_models import LoadedModel
from .answer_formats import AnswerFormat
from .request_errors import RequestError
from .tool_requests import ToolPlan

__all__ = ["render_conversation"]

Message = dict[str, Any]
MOST_STARTS = 64
"""Most braces that are tried as the beginning of a JSON Schema in a message."""


def render_conversation(
    model: LoadedModel, messages: Sequence[Message], plan: ToolPlan, wanted: AnswerFormat, template: Mapping[str, Any]
) -> list[int]:
    """Return the prompt of a conversation.

    Parameters
    ----------
    model : LoadedModel
    messages : sequence of dict
        With role, content, and perhaps tool_calls and tool_call_id, as chat templates take them.
    plan : ToolPlan
        The tools, which the template shows.
    wanted : AnswerFormat
        Shown only to the embedded model.
    template : mapping
        Variables of the chat template, as the request gives them.

    Raises
    ------
    RequestError
        If the template refuses the conversation, or a variable is none but an argument of the tokenizer's function.
    """
    if getattr(model.tokenizer, "chat_template", None):
        check_variables(model, template)
        return render_template(model, messages, plan, template)
    if template:
        raise RequestError("the model has no chat template", "/chat_template_kwargs", code="unsupported_field")
    text = "\n".join(text for one in messages if (text := describe_message(one)))
    if model.compose is not None:
        return model.prompt_ids(model.compose(text, **find_shown(messages, plan, wanted)))
    shown = [json.dumps(tool.openai(), ensure_ascii=False) for tool in plan.functions]
    return model.prompt_ids("\n".join([*shown, text, "assistant:"]))


def check_variables(model: LoadedModel, template: Mapping[str, Any]) -> None:
    """Raise RequestError for what a request must not choose: the template itself, how it is encoded or cut."""
    for name in template:
        if name in model.template_arguments:
            raise RequestError(
                f"{name} is not a variable of the model's chat template, but an argument of the tokenizer",
                f"/chat_template_kwargs/{pointer_token(name)}", hint="Leave it out.", code="unsupported_field",
            )  # fmt: skip


def render_template(
    model: LoadedModel, messages: Sequence[Message], plan: ToolPlan, template: Mapping[str, Any]
) -> list[int]:
    """Return the prompt that the chat template renders. Custom tools are shown as functions of one text."""
    shown = [(tool if isinstance(tool, Tool) else describe_custom(tool)).openai() for tool in plan.tools]
    try:
        return model.render([adapt_message(one) for one in messages], shown, template)
    except LimitError:
        raise
    except Exception as error:  # templates raise what they like
        raise RequestError(
            f"the model's chat template refuses the conversation: {shorten_text(error)}", "/messages",
            code="invalid_conversation",
        ) from error  # fmt: skip


def describe_custom(tool: Any) -> Tool:
    """Return a custom tool as a function with the parameter `input`."""
    text = f"{tool.description}\n{tool.definition}".strip()
    parameters = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return Tool(tool.name, text, parameters)


def adapt_message(message: Message) -> Message:
    """Return a message as templates want it: a text as content, arguments as objects, developer as system."""
    adapted = {**message, "content": message.get("content") or ""}
    if message["role"] == "developer":
        adapted["role"] = "system"
    if "tool_calls" in message:
        adapted["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": parse_arguments(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
    return adapted


def parse_arguments(text: str) -> Any:
    """Return the arguments of an earlier call, as an object if they are one."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def describe_message(message: Message) -> str:
    """Return a message as plain text: the system's, the user's and a tool's content as it is."""
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in message.get("tool_calls", ())]
    return "\n".join([*([message["content"].strip()] if message.get("content") else []), *calls])


def find_shown(messages: Sequence[Message], plan: ToolPlan, wanted: AnswerFormat) -> dict[str, Any]:
    """Return what the prompt of the embedded model shows, as arguments of `compose_prompt`."""
    calls = [describe_call(tool) for tool in plan.functions]
    shown = wanted.prompt_arguments()
    if not calls or (plan.customs and not plan.functions):
        if "schema" in shown and shown["schema"] != {"type": "object"}:
            return shown
        found = find_schema(messages) if wanted.is_free or "schema" in shown else None
        return shown if found is None else {"schema": found}
    if "schema" in shown and not plan.is_required:
        calls.append(shown["schema"])
    return {"schema": calls[0] if len(calls) == 1 else {"anyOf": calls}}


def describe_call(tool: Tool) -> dict[str, Any]:
    """Return the schema of a call as a JSON object."""
    closed = {"additionalProperties": False}  # only shown: without it the embedded model invents arguments
    members = {"name": {"const": tool.name}, "arguments": {**closed, **tool.parameters}}
    return {"type": "object", "properties": members, "required": list(members), **closed}


def find_schema(messages: Sequence[Message]) -> dict[str, Any] | None:
    """Return the last JSON Schema of an object that a message contains, or None."""
    decoder = json.JSONDecoder()
    for message in reversed(messages):
        text, found, at = message.get("content") or "", None, 0
        for _ in range(MOST_STARTS):
            at = text.find("{", at)
            if at < 0:
                break
            try:
                value, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                at += 1
                continue
            if isinstance(value, dict) and isinstance(value.get("properties"), dict):
                found = value
        if found is not None:
            return found
    return None

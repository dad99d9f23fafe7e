"""`/v1/responses`: inputs, answers and events in the shape of OpenAI's types."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import jsonschema
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from constrain.decoding.events import AnswerEvent, TextEvent
from constrain.serving.answer_call import AnswerCall
from constrain.serving.application import create_app
from constrain.serving.server_settings import ServerSettings
from tests.serving.request_bodies import CITY, PERSON, PROMPT, post, post_stream, refusal, responses

EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
TEXT = {"format": {"type": "json_schema", "name": "Person", "schema": PERSON, "strict": True}}
WEATHER = {"type": "function", "name": "weather", "description": "d", "parameters": CITY, "strict": True}
SUM = {
    "type": "custom", "name": "sum",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: N ("+" N)*\nN: /[0-9]{1,3}/'},
}  # fmt: skip
NAMED = {"type": "function", "name": "weather"}


def ask(client: TestClient, **more: Any) -> Response:
    return Response.model_validate(post(client, "responses", responses(**more)))


def test_a_schema_is_enforced(client: TestClient) -> None:
    made = ask(client, text=TEXT, instructions="Be brief.", metadata={"a": "b"})
    jsonschema.validate(json.loads(made.output_text), PERSON)
    assert made.status == "completed" and made.error is None and made.metadata == {"a": "b"}
    assert made.usage is not None and made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
    assert isinstance(json.loads(ask(client, text={"format": {"type": "json_object"}}).output_text), dict)


def test_free_text_that_is_cut_off_is_incomplete(client: TestClient) -> None:
    made = ask(client, max_output_tokens=3, seed=1)
    assert made.status == "incomplete" and made.incomplete_details is not None
    assert made.incomplete_details.reason == "max_output_tokens"
    [message] = made.output
    assert message.type == "message" and message.status == "incomplete" and made.output_text


def test_a_limit_below_the_shortest_answer_is_named_as_the_request_names_it(client: TestClient) -> None:
    wanted = {"format": {"type": "json_schema", "name": "word", "schema": {"type": "string", "minLength": 40}}}
    error = refusal(client, "responses", {"model": "demo", "input": "x", "max_output_tokens": 3, "text": wanted})
    assert "max_output_tokens is 3" in error["message"] and "Give max_output_tokens=" in error["message"]


def test_a_call_and_its_output_are_input_again(client: TestClient) -> None:
    made = post(client, "responses", responses(tools=[WEATHER], tool_choice=NAMED, text=TEXT))
    [call] = Response.model_validate(made).output
    assert call.type == "function_call" and call.name == "weather"
    jsonschema.validate(json.loads(call.arguments), CITY)
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    items = [{"role": "user", "content": [{"type": "input_text", "text": PROMPT}]}, *made["output"], output]
    after = ask(client, input=items, text=TEXT, tools=[WEATHER], tool_choice="none")
    jsonschema.validate(json.loads(after.output_text), PERSON)
    echoed = [one.model_dump(exclude_none=True) for one in after.output]
    echoed[0]["content"][0]["parsed"] = {"name": "Ann", "age": 1}  # `parse` of the client for JavaScript adds it
    again = ask(client, input=[*items, *echoed, items[0]])
    assert again.output


def test_custom_tools(client: TestClient) -> None:
    made = ask(client, tools=[WEATHER, SUM], tool_choice={"type": "custom", "name": "sum"}, max_output_tokens=60)
    [call] = made.output
    assert call.type == "custom_tool_call" and all(part.isdigit() for part in call.input.split("+"))


def test_a_reference_to_a_stored_item_is_refused_with_what_to_do(client: TestClient) -> None:
    """The client `@ai-sdk/openai` sends references unless it is told that nothing is stored."""
    error = refusal(client, "responses", responses(input=[{"type": "item_reference", "id": "msg_1"}]))
    assert error["param"] == "/input/0/type" and '"store": false' in error["message"]


@pytest.mark.parametrize(("tool", "kind"), [(WEATHER, "function"), (SUM, "custom")])
def test_members_of_tools_calls_and_outputs_that_change_nothing(
    client: TestClient, tool: dict[str, Any], kind: str
) -> None:
    direct = {"async": False, "defer_loading": False, "allowed_callers": ["direct", "programmatic"]}
    choice = {"type": kind, "name": tool["name"]}
    made = post(client, "responses", responses(tools=[{**tool, **direct}], tool_choice=choice, max_output_tokens=60))
    more = {"name": tool["name"], "namespace": "n", "caller": {"type": "direct"}}
    [call] = made["output"]
    output = {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": "sunny", **more}
    assert ask(client, input=[{**call, **more}, output], max_output_tokens=5)
    for refused in ({"async": True}, {"defer_loading": True}, {"allowed_callers": ["programmatic"]}):
        error = refusal(client, "responses", responses(tools=[{**tool, **refused}]))
        assert error["param"] == f"/tools/0/{next(iter(refused))}"


@pytest.mark.parametrize(("fields", "kinds"), [({}, ["message"]), ({"thinking": {}}, ["reasoning", "message"])])
def test_an_empty_answer_is_a_message(client: TestClient, fields: dict[str, Any], kinds: list[str]) -> None:
    events = post_stream(client, "responses", responses(regex="x{0}", seed=1, max_output_tokens=40, **fields))
    made = Response.model_validate(events[-1]["response"])
    assert [item.type for item in made.output] == kinds and made.status == "completed"
    message = made.output[-1]
    assert message.type == "message" and message.content[0].type == "output_text" and message.content[0].text == ""
    assert [event["type"] for event in events][-5:-1] == [
        "response.output_text.delta", "response.output_text.done", "response.content_part.done",
        "response.output_item.done",
    ]  # fmt: skip


def test_log_probabilities_and_thoughts(client: TestClient) -> None:
    made = ask(client, text=TEXT, include=["message.output_text.logprobs"], top_logprobs=2, seed=1)
    [message] = made.output
    assert message.type == "message" and message.content[0].type == "output_text"
    found = message.content[0].logprobs
    assert found is not None and "".join(one.token for one in found) == made.output_text
    thinking = {"open": "<t>", "close": "</t>", "max_bytes": 20}
    made = ask(client, text=TEXT, thinking=thinking, seed=1, top_logprobs=1)
    assert [item.type for item in made.output] == ["reasoning", "message"]
    found = made.output[1].content[0].logprobs  # type: ignore[union-attr]
    assert found is not None and "".join(one.token for one in found) == made.output_text
    assert made.usage is not None
    assert 7 <= made.usage.output_tokens_details.reasoning_tokens < made.usage.output_tokens  # with marks of 7 bytes


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({"text": TEXT}, ["message"]),
        ({"tools": [WEATHER], "tool_choice": NAMED}, ["function_call"]),
        ({"tools": [SUM], "tool_choice": "required", "parallel_tool_calls": False}, ["custom_tool_call"]),
        ({"text": TEXT, "thinking": {"open": "<t>", "close": "</t>", "max_bytes": 20}}, ["reasoning", "message"]),
    ],
    ids=str,
)
def test_events_come_in_order_and_add_up(client: TestClient, fields: dict[str, Any], kinds: list[str]) -> None:
    body = responses(**fields, seed=5, max_output_tokens=80)
    events = post_stream(client, "responses", body)
    for number, event in enumerate(events):
        assert event["sequence_number"] == number
        EVENTS.validate_python(event)
    names = [event["type"].removeprefix("response.") for event in events]
    assert names[:2] == ["created", "in_progress"] and names[-1] == "completed"
    final = events[-1]["response"]
    assert [item["type"] for item in final["output"]] == kinds
    expected: list[str] = []
    for kind in kinds:
        part = kind in ("message", "reasoning")
        expected += ["output_item.added", *["content_part.added"] * part, "delta", "done"]
        expected += [*["content_part.done"] * part, "output_item.done"]
    seen = ["delta" if name.endswith(".delta") else name for name in names[2:-1]]
    seen = [name for k, name in enumerate(seen) if name != "delta" or seen[k - 1 : k] != ["delta"]]
    seen = [
        "done" if name.endswith("done") and not name.startswith(("content_part", "output_item")) else name
        for name in seen
    ]
    assert seen == expected
    whole = post(client, "responses", body)
    for streamed, made in zip(final["output"], whole["output"]):
        for member in ("arguments", "input", "name"):
            assert streamed.get(member) == made.get(member)
        assert [one["text"] for one in streamed.get("content", ())] == [one["text"] for one in made.get("content", ())]
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert text == Response.model_validate(whole).output_text


def test_a_stream_that_is_interrupted_ends_with_an_event(served: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(served.state.service.engine, ServerSettings(request_seconds=0.4))

    async def write_and_wait(call: AnswerCall) -> AsyncGenerator[AnswerEvent, None]:
        yield TextEvent(0, 0, "a", (5,))
        await asyncio.sleep(60)

    monkeypatch.setattr(app.state.service, "stream", write_and_wait)
    with TestClient(app) as client:
        events = post_stream(client, "responses", responses())
    last = EVENTS.validate_python(events[-1])
    assert (last.type, last.code, last.sequence_number) == ("error", "request_timeout", len(events) - 1)
    assert events[-1]["error"]["message"] == last.message


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"input": []}, "/input"),
        ({"input": None}, "/input"),
        ({"input": [{"type": "file_search_call"}]}, "/input/0/type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
         "/input/0/content/0/type"),
        ({"input": [{"role": "user", "content": "x", "colour": 1}]}, "/input/0/colour"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "/input/0/call_id"),
        ({"previous_response_id": "resp_1"}, "/previous_response_id"),
        ({"background": True}, "/background"),
        ({"include": ["file_search_call.results"]}, "/include/0"),
        ({"tools": [{"type": "web_search"}]}, "/tools/0/type"),
        ({"tools": [{**WEATHER, "parameters": {"type": "object", "properties": 3}}]}, "/tools/0/parameters/properties"),
        ({"tools": [{**SUM, "format": {**SUM["format"], "definition": "start: x"}}]}, "/tools/0/format/definition"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "other"}}, "/tool_choice/name"),
        ({"text": {"format": {"type": "json_schema", "schema": PERSON}}}, "/text/format/name"),
        ({"text": {"format": {"type": "json_schema", "name": "P", "schema": {"type": "thing"}}}},
         "/text/format/schema/type"),
        ({"text": TEXT, "regex": "a"}, "/regex"),
        ({"max_tokens": 5}, "/max_tokens"),
    ],
    ids=lambda value: str(value)[:50],
)  # fmt: skip
def test_errors_have_their_place(client: TestClient, fields: dict[str, Any], pointer: str) -> None:
    if "tools" in fields and "parameters" in fields["tools"][0]:
        fields = {"tool_choice": "required", **fields}
    if "tools" in fields and "format" in fields["tools"][0]:
        fields = {"tool_choice": "required", **fields}
    assert refusal(client, "responses", responses(**fields))["param"] == pointer

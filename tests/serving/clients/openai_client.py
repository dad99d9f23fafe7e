"""Scenarios of the `openai` package, sync and async: chat, parse, streaming, tools, responses, completions, errors.

Run by `clients.run_clients`, with the address of a server as argument; any assertion that fails ends it.
"""

from __future__ import annotations

import asyncio
import json
import sys

import openai
from pydantic import BaseModel, ConfigDict

MESSAGES = [{"role": "user", "content": "Describe a person."}]


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    age: int


SCHEMA = Person.model_json_schema()
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "Weather of a city.", "strict": True, "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"],
        "additionalProperties": False,
    }},
}  # fmt: skip
FLAT_TOOL = {"type": "function", **TOOL["function"]}


def check_chat(client: openai.OpenAI) -> None:
    parsed = client.chat.completions.parse(model="demo", messages=MESSAGES, response_format=Person)
    assert isinstance(parsed.choices[0].message.parsed, Person)
    several = client.chat.completions.create(
        model="demo", messages=MESSAGES, n=3, seed=7, max_completion_tokens=60, logprobs=True, top_logprobs=2,
        response_format={"type": "json_schema", "json_schema": {"name": "P", "schema": SCHEMA, "strict": True}},
    )  # fmt: skip
    assert [choice.index for choice in several.choices] == [0, 1, 2]
    for choice in several.choices:
        Person.model_validate_json(choice.message.content)
        assert "".join(one.token for one in choice.logprobs.content) == choice.message.content
        assert all(len(one.top_logprobs) == 2 for one in choice.logprobs.content)
    assert several.usage.total_tokens == several.usage.prompt_tokens + several.usage.completion_tokens
    free = client.chat.completions.create(model="demo", messages=MESSAGES, max_tokens=3, seed=1)
    assert free.choices[0].finish_reason == "length" and free.usage.completion_tokens == 3


def check_tools(client: openai.OpenAI) -> None:
    made = client.chat.completions.parse(
        model="demo", messages=MESSAGES, tools=[openai.pydantic_function_tool(Person)], tool_choice="required",
        parallel_tool_calls=False,
    ).choices[0]  # fmt: skip
    assert made.finish_reason == "tool_calls" and made.message.content is None
    [call] = made.message.tool_calls
    assert isinstance(call.function.parsed_arguments, Person)
    answered = client.chat.completions.create(model="demo", response_format={"type": "json_object"}, messages=[
        *MESSAGES, made.message, {"role": "tool", "tool_call_id": call.id, "content": "thank you"},
    ])  # fmt: skip
    assert isinstance(json.loads(answered.choices[0].message.content), dict)
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": 'start: "SELECT " /[a-z]{1,8}/'}}
    custom = client.chat.completions.create(
        model="demo", messages=MESSAGES, tools=[{"type": "custom", "custom": {"name": "sql", "format": grammar}}],
        tool_choice={"type": "custom", "custom": {"name": "sql"}},
    )  # fmt: skip
    [call] = custom.choices[0].message.tool_calls
    assert call.custom.input.startswith("SELECT ")


def check_streams(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model="demo", messages=MESSAGES, response_format=Person, stream_options={"include_usage": True}
    ) as stream:
        partial = [event.parsed for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Person) and final.usage.completion_tokens > 0
    assert len(partial) > 2 and any(one for one in partial)
    with client.chat.completions.stream(
        model="demo", messages=MESSAGES, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "weather"}}
    ) as stream:
        kinds = [event.type for event in stream]
        [call] = stream.get_final_completion().choices[0].message.tool_calls
    assert "tool_calls.function.arguments.delta" in kinds
    assert set(json.loads(call.function.arguments)) == {"city"}


def check_responses(client: openai.OpenAI) -> None:
    parsed = client.responses.parse(model="demo", input="Describe a person.", text_format=Person)
    assert isinstance(parsed.output_parsed, Person) and parsed.status == "completed"
    with client.responses.stream(model="demo", input=MESSAGES, text_format=Person) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert isinstance(final.output_parsed, Person)
    assert kinds[:4] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"
    ]  # fmt: skip
    assert kinds[-1] == "response.completed"
    called = client.responses.create(
        model="demo", input=MESSAGES, tools=[FLAT_TOOL], tool_choice={"type": "function", "name": "weather"}
    )
    [call] = called.output
    assert set(json.loads(call.arguments)) == {"city"}
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    after = client.responses.parse(
        model="demo", input=[*MESSAGES, call.model_dump(exclude_none=True), output], text_format=Person
    )
    assert isinstance(after.output_parsed, Person)


def check_completions(client: openai.OpenAI) -> None:
    made = client.completions.create(model="demo", prompt="Name:", echo=True, logprobs=2, max_tokens=4, n=2, seed=1)
    assert len(made.choices) == 2 and all(one.text.startswith("Name:") for one in made.choices)
    chosen = client.completions.create(
        model="demo", prompt="x", extra_body={"structured_outputs": {"choice": ["red", "blue"]}}
    )
    assert chosen.choices[0].text in ("red", "blue")
    weighted = client.completions.create(
        model="demo", prompt="x", n=2, seed=1, extra_body={"regex": "[ab]{1,3}", "sampler": "awrs"}
    )
    assert all(isinstance(one.constrain["log_weight"], float) for one in weighted.choices)


def check_errors(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "text"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "P", "schema": schema}}
    for body, pointer in (
        ({"response_format": wanted}, "/response_format/json_schema/schema/properties/a/type"),
        ({"extra_body": {"guided_json": {}}}, "/guided_json"),
        ({"extra_body": {"respones_format": {}}}, "/respones_format"),
        ({"tool_choice": "required"}, "/tool_choice"),
    ):
        try:
            client.chat.completions.create(model="demo", messages=MESSAGES, **body)
        except openai.BadRequestError as error:
            assert error.param == pointer, error.param
        else:
            raise AssertionError(f"{body} was not refused")
    try:
        client.chat.completions.create(model="other", messages=MESSAGES)
    except openai.NotFoundError as error:
        assert error.code == "model_not_found"


async def check_async(client: openai.AsyncOpenAI) -> None:
    several = await asyncio.gather(*(
        client.chat.completions.parse(model="demo", messages=MESSAGES, response_format=Person) for _ in range(4)
    ))  # fmt: skip
    assert all(isinstance(one.choices[0].message.parsed, Person) for one in several)
    for seed in range(3):  # a free text may be empty
        text = ""
        request = {"model": "demo", "messages": MESSAGES, "max_tokens": 10, "seed": seed}
        async for chunk in await client.chat.completions.create(**request, stream=True):
            text += chunk.choices[0].delta.content or ""
        assert text == ((await client.chat.completions.create(**request)).choices[0].message.content or "")
    async with client.responses.stream(model="demo", input="Describe a person.", text_format=Person) as stream:
        async for _ in stream:
            pass
        assert isinstance((await stream.get_final_response()).output_parsed, Person)


def main(url: str) -> None:
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["demo"]
    for check in (check_chat, check_tools, check_streams, check_responses, check_completions, check_errors):
        check(client)
    asyncio.run(check_async(openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)))
    print(f"openai {openai.__version__}: ok")


if __name__ == "__main__":
    main(sys.argv[1])

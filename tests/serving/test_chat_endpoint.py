"""`/v1/chat/completions` without streams: answers are what the request says, in the shape of OpenAI's types."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import jsonschema
import pytest
from fastapi.testclient import TestClient
from openai.types.chat import ChatCompletion

from tests.serving.request_bodies import CITY, PERSON, PROMPT, chat, custom, function, post, refusal, schema_format

TAG = {"triggers": ["<p>"], "structures": [{"begin": "<p>", "schema": PERSON, "end": "</p>"}]}


def ask(client: TestClient, **more: Any) -> ChatCompletion:
    return ChatCompletion.model_validate(post(client, "chat/completions", chat(**more)))


def find_tokens(client: TestClient, text: str) -> list[int]:
    """Return the tokens that contain a text."""
    vocabulary = client.app.state.service.engine.vocabulary  # type: ignore[attr-defined]
    return [number for number, data in enumerate(vocabulary.tokens) if data and text.encode() in data]


def is_person(text: str | None) -> bool:
    return text is not None and jsonschema.Draft202012Validator(PERSON).is_valid(json.loads(text))


@pytest.mark.parametrize("strict", [{"strict": True}, {"strict": False}, {"strict": None}, {}], ids=str)
def test_a_schema_is_enforced_whatever_strict_says(client: TestClient, strict: dict[str, Any]) -> None:
    made = ask(client, response_format=schema_format(**strict), n=2)
    assert [choice.index for choice in made.choices] == [0, 1]
    assert all(is_person(choice.message.content) and choice.finish_reason == "stop" for choice in made.choices)
    assert made.object == "chat.completion" and made.model == "demo"
    assert made.usage is not None and made.usage.prompt_tokens > 0 and made.usage.completion_tokens > 0


@pytest.mark.parametrize(
    ("fields", "valid"),
    [
        ({"response_format": {"type": "json_object"}}, lambda text: isinstance(json.loads(text), dict)),
        ({"response_format": {"type": "structural_tag", **TAG}}, lambda text: "<p>" not in text or "</p>" in text),
        ({"structured_outputs": {"json": PERSON}}, is_person),
        ({"structured_outputs": {"json": json.dumps(PERSON)}}, is_person),
        ({"structured_outputs": {"json": PERSON, "disable_any_whitespace": True}}, lambda text: '","age":' in text),
        ({"structured_outputs": {"json_object": True}}, lambda text: isinstance(json.loads(text), dict)),
        ({"structured_outputs": {"choice": ["red", "blue"]}}, lambda text: text in ("red", "blue")),
        ({"structured_outputs": {"regex": "[ab]{3}"}}, lambda text: re.fullmatch("[ab]{3}", text)),
        ({"structured_outputs": {"grammar": 'root ::= "a" | "b"'}}, lambda text: text in ("a", "b")),
        ({"structured_outputs": {"structural_tag": json.dumps(TAG)}}, lambda text: "<p>" not in text or "</p>" in text),
        ({"regex": "[0-9]{4}"}, lambda text: re.fullmatch("[0-9]{4}", text)),
        ({"ebnf": 'root ::= "yes" | "no"'}, lambda text: text in ("yes", "no")),
        ({"grammar": 'start: "yes" | "no"'}, lambda text: text in ("yes", "no")),
        ({"json_schema": PERSON}, is_person),
        ({"json_schema": json.dumps(PERSON)}, is_person),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else "",
)
def test_every_field_that_constrains_the_answer(client: TestClient, fields: dict[str, Any], valid: Any) -> None:
    assert valid(ask(client, **fields, seed=1).choices[0].message.content)


def test_the_budget_is_kept_by_a_complete_answer(client: TestClient) -> None:
    made = ask(
        client, response_format=schema_format({"type": "array", "items": {"type": "string"}}), max_tokens=12, n=4
    )
    for choice in made.choices:
        assert isinstance(json.loads(choice.message.content or ""), list)
        assert choice.finish_reason == "stop"
    assert made.usage is not None and made.usage.completion_tokens <= 48
    assert (
        "takes" in refusal(client, "chat/completions", chat(response_format=schema_format(), max_tokens=3))["message"]
    )


def test_free_text_that_is_cut_off_has_that_reason(client: TestClient) -> None:
    made = ask(client, max_completion_tokens=3, seed=1)
    assert made.choices[0].finish_reason == "length"
    assert made.usage is not None and made.usage.completion_tokens == 3
    made = ask(client, response_format={"type": "structural_tag", **TAG}, max_completion_tokens=3, seed=1)
    assert made.choices[0].finish_reason == "length"


@pytest.mark.parametrize("more", [{}, {"max_tokens": 100}, {"max_completion_tokens": 9}, {"sampler": "awrs"}])
def test_a_prompt_that_leaves_no_room_for_an_answer_is_named(client: TestClient, more: dict[str, Any]) -> None:
    """Not max_tokens, of which no other value would help."""
    long = chat(response_format=schema_format(), messages=[{"role": "user", "content": "cat " * 968}])
    error = refusal(client, "chat/completions", {**long, **more})
    left = int(re.findall(r"the prompt leaves (\d+) tokens", error["message"])[0])
    assert left < int(re.findall(r"found takes (\d+)", error["message"])[0])
    assert "Shorten the prompt" in error["message"] and "max_" not in error["message"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "/messages")


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_below_the_shortest_answer_is_named_as_the_request_names_it(client: TestClient, name: str) -> None:
    error = refusal(client, "chat/completions", chat(response_format=schema_format(), **{name: 3}))
    assert f"{name} is 3" in error["message"] and f"Give {name}=" in error["message"]


def test_the_same_seed_gives_the_same_answers(client: TestClient) -> None:
    options = {"response_format": schema_format(), "seed": -5, "n": 2, "temperature": 0.9, "top_p": 0.95, "top_k": 50}
    first, second = (ask(client, **options) for _ in range(2))
    assert [one.message.content for one in first.choices] == [one.message.content for one in second.choices]


def test_options_that_choose_tokens_reach_the_engine(client: TestClient) -> None:
    likeliest = ask(client, regex="[0-9]{6}", temperature=0, n=2)
    assert len({choice.message.content for choice in likeliest.choices}) == 1
    stopped = ask(client, regex="[ab]{0,20}", stop="b", seed=1, logit_bias={"66": 5.0}).choices[0]
    assert stopped.finish_reason == "stop" and "b" not in (stopped.message.content or "")
    never_b = {str(token): -100 for token in find_tokens(client, "b")}
    assert ask(client, regex="[ab]{8}", logit_bias=never_b).choices[0].message.content == "a" * 8


def test_logprobs_are_those_of_the_tokens_of_the_answer(client: TestClient) -> None:
    [choice] = ask(client, response_format=schema_format(), logprobs=True, top_logprobs=3, seed=2).choices
    assert choice.logprobs is not None and choice.logprobs.content is not None
    tokens = choice.logprobs.content
    assert b"".join(bytes(one.bytes or ()) for one in tokens).decode() == choice.message.content
    for one in tokens:
        assert one.logprob <= 0 and len(one.top_logprobs) == 3
        assert one.top_logprobs[0].logprob >= one.logprob - 1e-9
        assert sum(math.exp(other.logprob) for other in one.top_logprobs) <= 1 + 1e-6
    without = ask(client, response_format=schema_format(), logprobs=True).choices[0].logprobs
    assert without is not None and without.content is not None and without.content[0].top_logprobs == []


def test_required_and_named_calls(client: TestClient) -> None:
    tools = [function("person", strict=True), function("weather", CITY)]
    [choice] = ask(client, tools=tools, tool_choice="required", parallel_tool_calls=False).choices
    assert choice.finish_reason == "tool_calls" and choice.message.content is None
    assert len(choice.message.tool_calls or ()) == 1
    for name, schema in (("person", PERSON), ("weather", CITY)):
        named = {"type": "function", "function": {"name": name}}
        allowed = {"mode": "required", "tools": [named]}
        for tool_choice in (named, {"type": "allowed_tools", "allowed_tools": allowed}):
            for call in ask(client, tools=tools, tool_choice=tool_choice).choices[0].message.tool_calls or ():
                assert call.type == "function" and call.function.name == name and call.id.startswith("call_")
                jsonschema.validate(json.loads(call.function.arguments), schema)


def test_tools_that_may_be_called_beside_an_answer(client: TestClient) -> None:
    """With a schema for the answer, it is a call or conforms; tool_choice none allows no call."""
    both = {"tools": [function("weather", CITY)], "response_format": schema_format()}
    for choice in ask(client, **both, n=6, seed=1).choices:
        calls = choice.message.tool_calls or []
        assert is_person(choice.message.content) if not calls else choice.message.content is None
    assert is_person(ask(client, **both, tool_choice="none").choices[0].message.content)
    free = ask(client, tools=[function("person")], n=4, seed=1, max_tokens=60)
    for choice in free.choices:
        for call in choice.message.tool_calls or ():
            assert call.type == "function" and is_person(call.function.arguments)
            assert choice.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("syntax", "definition", "pattern"),
    [
        ("lark", 'start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]{1,3}/', r"[0-9]{1,3}(\+[0-9]{1,3})*"),
        ("regex", "[ab]{2}", "[ab]{2}"),
    ],
)
def test_custom_tools(client: TestClient, syntax: str, definition: str, pattern: str) -> None:
    tool = custom("write", syntax, definition)
    for choice in ({"type": "custom", "custom": {"name": "write"}}, "required"):
        made = ask(client, tools=[tool], tool_choice=choice, parallel_tool_calls=False, max_tokens=60).choices[0]
        [call] = made.message.tool_calls or []
        assert call.type == "custom" and re.fullmatch(pattern, call.custom.input)


def test_a_bad_tool_is_named_and_leaves_the_others(client: TestClient) -> None:
    bad = {"type": "object", "properties": {"a": {"type": "text"}}}
    tools = [function("person"), function("bad", bad)]
    body = post(client, "chat/completions", chat(tools=tools, tool_choice="required", parallel_tool_calls=False))
    [found] = body["constrain"]["refused_tools"]
    assert found["name"] == "bad" and found["param"] == "/tools/1/function/parameters/properties/a/type"
    assert body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "person"
    for tools, choice in (
        ([function("person"), function("bad", bad, strict=True)], "auto"),
        ([function("person"), function("bad", bad)], {"type": "function", "function": {"name": "bad"}}),
    ):
        error = refusal(client, "chat/completions", chat(tools=tools, tool_choice=choice))
        assert error["param"] == "/tools/1/function/parameters/properties/a/type" and "'bad'" in error["message"]


def test_a_conversation_with_calls_and_their_results(client: TestClient) -> None:
    made = ask(client, tools=[function("weather", CITY)], tool_choice="required", parallel_tool_calls=False)
    message = made.choices[0].message.model_dump(exclude_none=True)
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Answer in "}, {"type": "text", "text": "JSON."}]},
        {"role": "user", "content": PROMPT},
        {**message, "content": None},
        {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sunny"},
    ]
    assert is_person(ask(client, messages=messages, response_format=schema_format()).choices[0].message.content)


def test_thoughts_come_before_the_constraint(client: TestClient) -> None:
    body = chat(response_format=schema_format(), thinking={"open": "<t>", "close": "</t>", "max_bytes": 30}, seed=1)
    made = post(client, "chat/completions", {**body, "logprobs": True})
    [choice] = made["choices"]
    assert is_person(choice["message"]["content"]) and choice["message"]["reasoning_content"]
    assert "</t>" not in choice["message"]["reasoning_content"]
    tokens = [one["token"] for one in choice["logprobs"]["content"]]
    assert "".join(tokens) == choice["message"]["content"]
    usage = made["usage"]
    count = usage["completion_tokens_details"]["reasoning_tokens"] + len(tokens)
    assert count <= usage["completion_tokens"] <= count + 1  # the end token is not in the text
    plain = post(client, "chat/completions", {**body, "thinking": False})["choices"][0]["message"]
    assert "reasoning_content" not in plain


@pytest.mark.parametrize("sampler", ["masked", "awrs", "smc", "auto"])
def test_samplers_report_weights(client: TestClient, sampler: str) -> None:
    body = post(client, "chat/completions", chat(regex="[ab]{2}", sampler=sampler, n=2, seed=1))
    for choice in body["choices"]:
        assert re.fullmatch("[ab]{2}", choice["message"]["content"])
        assert choice["constrain"]["log_weight"] <= 0 and choice["constrain"]["logprob"] < 0
    assert body["constrain"]["sampler"] in (sampler, "exact", "masked", "awrs", "smc")
    assert "ess" in body["constrain"]["weights"]

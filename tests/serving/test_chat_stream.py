"""Streams of `/v1/chat/completions`: the chunks of an answer add up to the answer without a stream."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from openai.types.chat import ChatCompletionChunk

from tests.serving.request_bodies import CITY, chat, custom, function, post, post_stream, schema_format

SUM = 'start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]{1,3}/'
END = "2"
"""The id of the token that ends a text of the embedded model."""
NAMED = {"type": "function", "function": {"name": "weather"}}


def fold(chunks: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Add up the deltas of each choice as clients do."""
    folded: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            message = folded.setdefault(choice["index"], {"content": None, "thoughts": "", "calls": [], "finish": None})
            delta = choice["delta"]
            assert message["finish"] is None, "nothing comes after the end"
            if delta.get("content") is not None:
                message["content"] = (message["content"] or "") + delta["content"]
            message["thoughts"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", ()):
                if call["index"] == len(message["calls"]):
                    message["calls"].append({"kind": call["type"], "name": call[call["type"]]["name"], "text": ""})
                    assert call["id"].startswith("call_")
                part = call.get("function", {}).get("arguments", "") + call.get("custom", {}).get("input", "")
                message["calls"][call["index"]]["text"] += part
            message["finish"] = choice["finish_reason"]
    return folded


def of_message(choice: dict[str, Any]) -> dict[str, Any]:
    """Return a choice of an answer without a stream in the same form."""
    message = choice["message"]
    calls = [
        {"kind": call["type"], "name": call[call["type"]]["name"],
         "text": call[call["type"]]["arguments" if call["type"] == "function" else "input"]}
        for call in message.get("tool_calls", ())
    ]  # fmt: skip
    thoughts = message.get("reasoning_content", "")
    return {
        "content": message["content"], "thoughts": thoughts, "calls": calls, "finish": choice["finish_reason"]
    }  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 12},
        {"max_tokens": 12, "logit_bias": {END: 100}},
        {"tools": [function("weather", CITY)], "max_tokens": 12, "logit_bias": {END: 100}},
        {"response_format": schema_format(), "n": 3},
        {"tools": [function("weather", CITY)], "tool_choice": NAMED},
        {"tools": [function("weather", CITY), function("person")], "tool_choice": "required", "max_tokens": 80},
        {"tools": [function("weather", CITY)], "n": 3, "max_tokens": 60},
        {"tools": [function("weather", CITY)], "response_format": schema_format(), "n": 4},
        {"tools": [custom("sum", "lark", SUM)], "tool_choice": "required", "max_tokens": 60},
        {"response_format": schema_format(), "thinking": {"open": "<t>", "close": "</t>", "max_bytes": 30}},
        {"regex": "[ab]{3}", "sampler": "awrs", "n": 2},
    ],
    ids=str,
)
def test_chunks_add_up_to_the_answer(client: TestClient, fields: dict[str, Any]) -> None:
    body = chat(**fields, seed=11)
    chunks = post_stream(client, "chat/completions", body)
    whole = post(client, "chat/completions", body)
    assert fold(chunks) == {choice["index"]: of_message(choice) for choice in whole["choices"]}
    assert len({chunk["id"] for chunk in chunks}) == 1
    for chunk in chunks:
        assert chunk["object"] == "chat.completion.chunk"
        if not any("custom" in call for one in chunk["choices"] for call in one["delta"].get("tool_calls", ())):
            ChatCompletionChunk.model_validate(chunk, strict=True)


@pytest.mark.parametrize("more", [{}, {"thinking": {"max_bytes": 20}, "n": 2}], ids=["text", "thoughts"])
def test_the_role_comes_first_and_usage_last(client: TestClient, more: dict[str, Any]) -> None:
    body = chat(response_format=schema_format(), stream_options={"include_usage": True}, seed=1, **more)
    chunks = post_stream(client, "chat/completions", body)
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert sum("role" in one["delta"] for chunk in chunks for one in chunk["choices"]) == body.get("n", 1)
    assert chunks[-1]["choices"] == [] and chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    del body["stream_options"]
    assert chunks[-1]["usage"] == post(client, "chat/completions", body)["usage"]
    assert all("usage" not in chunk for chunk in post_stream(client, "chat/completions", body))


@pytest.mark.parametrize("thinking", [False, {"max_bytes": 20}], ids=["text", "thoughts"])
def test_log_probabilities_of_a_stream_are_those_of_the_answer(client: TestClient, thinking: Any) -> None:
    body = chat(response_format=schema_format(), logprobs=True, top_logprobs=2, seed=4, thinking=thinking)
    streamed = [
        one
        for chunk in post_stream(client, "chat/completions", body)
        for choice in chunk["choices"]
        for one in (choice["logprobs"] or {"content": []})["content"]
    ]
    whole = post(client, "chat/completions", body)["choices"][0]["logprobs"]["content"]
    assert [one["token"] for one in streamed] == [one["token"] for one in whole]
    assert [one["logprob"] for one in streamed] == pytest.approx([one["logprob"] for one in whole], abs=1e-3)


def test_an_error_before_the_first_token_is_an_ordinary_answer(client: TestClient) -> None:
    answer = client.post("/v1/chat/completions", json=chat(regex="(", stream=True))
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "/regex"

"""Warnings about schemas: the answer to the request returns them, once, and the server does not print them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.serving.request_bodies import chat, function, post, post_stream, responses, schema_format

MISSPELT = {"type": "object", "properties": {"a": {"type": "integer", "maximun": 3}}, "additionalProperties": False}
TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<a>", "schema": MISSPELT, "end": "</a>"}],
    "triggers": ["<a>"],
}
SCHEMA = "/response_format/json_schema/schema"
TOOLS = {"tools": [function("one", MISSPELT), function("two", MISSPELT), function("right")]}
TOOL_PLACES = ["/tools/0/function/parameters", "/tools/1/function/parameters"]


@pytest.fixture(autouse=True)
def _are_no_warnings_of_python() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def check(notes: list[dict[str, str]], places: list[str]) -> None:
    assert [note["param"] for note in notes] == places
    for note in notes:
        assert "did you mean maximum?\n  at /properties/a/maximun" in note["message"]


CASES = [
    ("chat/completions", chat(response_format=schema_format(MISSPELT)), [SCHEMA]),
    ("chat/completions", chat(json_schema=MISSPELT, sampler="awrs"), ["/json_schema"]),
    ("chat/completions", chat(**TOOLS, tool_choice="required", max_tokens=200), TOOL_PLACES),
    ("chat/completions", chat(**TOOLS, response_format=schema_format(MISSPELT)), [*TOOL_PLACES, SCHEMA]),
    ("chat/completions", chat(response_format=TAG), ["/response_format"]),
    ("completions", {"model": "demo", "prompt": ["a", "b"], "json_schema": MISSPELT, "echo": True}, ["/json_schema"]),
    ("responses", responses(structured_outputs={"json": MISSPELT}), ["/structured_outputs/json"]),
]


@pytest.mark.parametrize(("path", "body", "places"), CASES)
def test_answers_return_them(client: TestClient, path: str, body: dict[str, Any], places: list[str]) -> None:
    for _ in range(2):  # the second time the constraint is cached
        check(post(client, path, body)["constrain"]["warnings"], places)


@pytest.mark.parametrize(("path", "body", "places"), CASES)
def test_streams_return_them_once(client: TestClient, path: str, body: dict[str, Any], places: list[str]) -> None:
    events = post_stream(client, path, {**body, "stream": True})
    if path == "responses":
        assert all("constrain" not in event for event in events)
        events = [event["response"] for event in events if event["type"] == "response.completed"]
    [chunk] = [event for event in events if "constrain" in event]
    check(chunk["constrain"]["warnings"], places)


def test_a_request_without_them_has_no_such_member(client: TestClient) -> None:
    post(client, "chat/completions", chat(json_schema=MISSPELT))
    assert "constrain" not in post(client, "chat/completions", chat(response_format=schema_format()))

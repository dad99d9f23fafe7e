"""Bodies of requests as clients send them, and what all tests of a shape have in common."""

from __future__ import annotations

import json
from typing import Any

from fastapi.testclient import TestClient

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}  # fmt: skip
CITY = {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"],
    "additionalProperties": False,
}  # fmt: skip
SUM = 'start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]{1,3}/'
PROMPT = "Describe a person."


def function(name: str, parameters: Any = PERSON, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def custom(name: str, syntax: str, definition: str) -> dict[str, Any]:
    grammar = {"syntax": syntax, "definition": definition}
    return {"type": "custom", "custom": {"name": name, "format": {"type": "grammar", "grammar": grammar}}}


def schema_format(schema: Any = PERSON, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "Person", "schema": schema, **more}}


def chat(**more: Any) -> dict[str, Any]:
    return {"model": "demo", "messages": [{"role": "user", "content": PROMPT}], **more}


def responses(**more: Any) -> dict[str, Any]:
    return {"model": "demo", "input": PROMPT, **more}


def post(client: TestClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request, which must be a good one."""
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def post_stream(client: TestClient, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the data of the events of a stream but for [DONE], which must end one of chunks."""
    answer = client.post(f"/v1/{path}", json={**body, "stream": True})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    if path != "responses":
        assert found.pop() == "[DONE]"
    return [json.loads(one) for one in found]


def refusal(client: TestClient, path: str, body: dict[str, Any], status: int = 400) -> dict[str, Any]:
    """Return the error that answers a request, after a check of its shape."""
    answer = client.post(f"/v1/{path}", content=json.dumps(body))
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["message"]
    return error

"""A request brings no path, pickle, code or document to fetch: each try is a 400, or has no effect."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.running_server import chat_body, json_format

PICKLE = "cos\nsystem\n(S'touch /tmp/owned'\ntR."


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail every connection that the server would open."""

    def refuse(*_: Any) -> None:
        raise AssertionError("the server opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize(
    "fields",
    [
        json_format({"$ref": "http://127.0.0.1:9/schema.json"}),
        json_format({"$ref": "file:///etc/passwd"}),
        json_format({"$ref": "../../etc/passwd"}),
        json_format("/etc/passwd"),
        {"structured_outputs": {"json": "/etc/passwd"}},
        {"structured_outputs": {"grammar": "/etc/passwd"}},
        {"structured_outputs": {"grammar": 'start: secret\n%import .secret.secret'}},
        {"structured_outputs": {"grammar": "start: secret\n%import .PATH.secret"}},
        {"structured_outputs": {"grammar": PICKLE}},
        {"structured_outputs": {"json": PICKLE}},
        {"import_paths": ["/"]}, {"registry": {}}, {"type": "os.system"}, {"check": "print"},
        {"custom_logit_processor": "print(1)"}, {"logits_processors": ["os.system"]},
    ],
    ids=lambda fields: str(fields)[:60],
)  # fmt: skip
def test_nothing_foreign_is_read(client: TestClient, tmp_path: Path, fields: dict[str, Any]) -> None:
    (tmp_path / "secret.lark").write_text('secret: "found"\n')
    body = chat_body(max_tokens=20, **fields)
    if "PATH" in str(fields):
        body["structured_outputs"]["grammar"] = fields["structured_outputs"]["grammar"].replace(
            "PATH", str(tmp_path / "secret")
        )
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400, answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize("kind", ["application/x-python-pickle", "application/octet-stream", "text/plain"])
def test_a_pickle_is_not_json(client: TestClient, kind: str) -> None:
    answer = client.post("/v1/chat/completions", content=PICKLE.encode(), headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "invalid_content_type")
    answer = client.post("/v1/chat/completions", content=PICKLE.encode())
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json")


@pytest.mark.parametrize("path", ["chat/completions", "completions", "responses"])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
def test_cross_site_simple_requests_are_rejected(client: TestClient, path: str, kind: str | None) -> None:
    """Requests that browsers send without asking the server first."""
    headers = {"origin": "https://elsewhere.example"} | ({} if kind is None else {"content-type": kind})
    body = b'{"model": "demo", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}'
    answer = client.post(f"/v1/{path}", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "invalid_content_type")
    asked = client.options(f"/v1/{path}", headers={**headers, "access-control-request-method": "POST"})
    assert asked.status_code == 405 and not any(name.startswith("access-control") for name in asked.headers)


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/problem+json", None]
)
def test_json_is_read_by_any_of_its_types(client: TestClient, kind: str | None) -> None:
    body = b'{"model": "demo", "prompt": "x", "max_tokens": 1}'
    headers = {} if kind is None else {"content-type": kind, "origin": "https://elsewhere.example"}
    assert client.post("/v1/completions", content=body, headers=headers).status_code == 200

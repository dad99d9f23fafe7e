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
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_json"

"""Limits of one request and of all together, deadlines, request ids, the drain: status, code, pointer, and the log."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from constrain.base.errors import ArgumentError
from constrain.serving.application import create_app
from constrain.serving.request_log import RequestLog
from constrain.serving.server_settings import ServerSettings
from tests.running_server import RunningServer, chat_body, read_answer, run_in_thread, wait_until

TIGHT = ServerSettings(
    max_body_bytes=4_000, max_schema_bytes=300, max_tokens=50, max_n=2, max_prompt_tokens=600, max_tools=1,
    max_stops=2, compile_work=5_000,
)  # fmt: skip
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return []


@pytest.fixture(scope="module")
def tight(served: FastAPI, lines: list[str]) -> Iterator[TestClient]:
    app = create_app(served.state.service.engine, TIGHT, RequestLog("json", lines.append))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(
    ("fields", "status", "code", "param"),
    [
        ({"user": "x" * 5_000}, 413, "body_too_large", None),
        ({"n": 3}, 400, "limit_exceeded", "/n"),
        ({"max_tokens": 51}, 400, "limit_exceeded", "/max_tokens"),
        ({"max_completion_tokens": 10**30}, 400, "limit_exceeded", "/max_completion_tokens"),
        ({"tools": [TOOL, TOOL]}, 400, "limit_exceeded", "/tools"),
        ({"stop": ["a", "b", "c"]}, 400, "limit_exceeded", "/stop"),
        ({"stop": ["a", "\u00e9" * 513]}, 400, "limit_exceeded", "/stop"),
        ({"stop": "x" * 1_025}, 400, "limit_exceeded", "/stop"),
        ({"structured_outputs": {"regex": "x" * 400}}, 400, "limit_exceeded", "/structured_outputs/regex"),
        ({"structured_outputs": {"regex": ".*a.{12}"}}, 400, "limit_exceeded", "/structured_outputs/regex"),
        ({"messages": [{"role": "user", "content": "word " * 400}]}, 400, "limit_exceeded", None),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_limits_of_a_request(
    tight: TestClient, lines: list[str], fields: dict[str, Any], status: int, code: str, param: str | None
) -> None:
    answer = tight.post("/v1/chat/completions", json=chat_body("Hello", max_tokens=5) | fields)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), error
    assert param is None or error["param"] == param
    line = json.loads(lines[-1])
    assert (line["status"], line["reason"], line["id"]) == (status, code, answer.headers["x-request-id"])
    assert tight.post("/v1/chat/completions", json=chat_body("Hello", max_tokens=5)).status_code == 200


def test_depth_of_the_body(tight: TestClient) -> None:
    text = json.dumps(chat_body()).replace('"Describe a person."', "[" * 1_000 + "]" * 1_000)
    answer = tight.post("/v1/chat/completions", content=text)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "too_deep")


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready", "/metrics", "/v1/models", "/v1/nothing"])
def test_head_is_answered_as_get_without_a_body(tight: TestClient, path: str) -> None:
    answer, whole = tight.head(path), tight.get(path)
    assert (answer.status_code, answer.content) == (whole.status_code, b"")
    assert answer.headers["content-type"] == whole.headers["content-type"] and whole.content


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"content-encoding": "gzip"}, "invalid_content_encoding"),
        ({"content-type": "application/json; charset=latin-1"}, "invalid_content_type"),
    ],
)
def test_bodies_are_plain_utf8(tight: TestClient, headers: dict[str, str], code: str) -> None:
    body = json.dumps(chat_body("Hello", max_tokens=5)).encode()
    answer = tight.post("/v1/chat/completions", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, code)
    fine = {"content-encoding": "identity", "content-type": 'application/json; charset="UTF-8"'}
    assert tight.post("/v1/chat/completions", content=body, headers=fine).status_code == 200


def test_a_body_without_a_length_is_counted(tight: TestClient) -> None:
    answer = tight.post("/v1/chat/completions", content=(b" " * 1_000 for _ in range(10)))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def test_limits_are_whole_and_positive() -> None:
    for wrong in ({"max_n": 0}, {"max_queue": -1}, {"request_seconds": 0}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            ServerSettings(**wrong)
    with pytest.raises(TypeError, match="max_n"):
        ServerSettings(max_n=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="max_n"):
        ServerSettings(max_n=None)  # type: ignore[arg-type]


def test_larger_vocabularies_have_more_memory_for_their_masks() -> None:
    assert ServerSettings().bound_cache(4_096) == 80 << 20
    assert ServerSettings().bound_cache(131_072) == 576 << 20
    assert ServerSettings(cached_bytes=1_000).bound_cache(4_096) == 1_000


def test_request_ids(tight: TestClient) -> None:
    assert tight.get("/health", headers={"x-request-id": "abc-1.2:3"}).headers["x-request-id"] == "abc-1.2:3"
    for odd in ("has space", "x" * 200, "new\tline", ""):
        found = tight.get("/health", headers={"x-request-id": odd}).headers["x-request-id"]
        assert found != odd and len(found) == 32


def test_draining_refuses_new_requests(served: FastAPI) -> None:
    app = create_app(served.state.service.engine)
    client = TestClient(app)
    assert client.get("/health/ready").status_code == 200
    app.state.operations.begin_drain()
    assert client.get("/health/live").status_code == 200
    for path in ("/health/ready", "/health"):
        assert client.get(path).json() == {"status": "draining"}
        assert client.get(path).status_code == 503
    answer = client.get("/v1/models")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")
    assert answer.headers["retry-after"] == "1"


def test_refused_requests_are_counted_at_their_endpoints(served: FastAPI) -> None:
    app = create_app(served.state.service.engine, ServerSettings(api_keys=("key-1234",), max_body_bytes=100))
    client, keyed = TestClient(app), {"authorization": "Bearer key-1234"}
    assert client.post("/v1/completions", json={}).status_code == 401
    assert client.get("/v1/models/demo").status_code == 401
    assert client.get("/nowhere").status_code == 401
    assert client.get("/v1/chat/completions", headers=keyed).status_code == 405
    assert client.post("/v1/responses", headers=keyed, json={"input": "x" * 200}).status_code == 413
    app.state.operations.begin_drain()
    assert client.post("/v1/chat/completions", headers=keyed, json={}).status_code == 503
    text = app.state.operations.metrics.render().decode()
    counted = set(re.findall(r'constrain_requests_total\{endpoint="(.*)",status="(\d+)"\} 1.0', text))
    assert counted == {
        ("/v1/completions", "401"), ("/v1/models/{name:path}", "401"), ("other", "401"),
        ("/v1/chat/completions", "405"), ("/v1/responses", "413"), ("/v1/chat/completions", "503"),
    }  # fmt: skip


@pytest.fixture(scope="module")
def small() -> Iterator[RunningServer]:
    with run_in_thread(ServerSettings(max_queue=3, body_seconds=0.2), slots=1) as running:
        yield running


def test_a_full_queue_is_429(small: RunningServer) -> None:
    first = small.send(chat_body(max_tokens=900, n=4))
    wait_until(lambda: small.engine.scheduler.used == 1)
    status, headers, body = read_answer(small.send(chat_body()))
    assert (status, headers["retry-after"]) == (429, "1")
    error = json.loads(body)["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "queue_full")
    first.close()
    wait_until(lambda: not small.operations.admitted)
    assert read_answer(small.send(chat_body(max_tokens=3)))[0] == 200


def test_more_texts_than_places_run_where_nothing_else_does(small: RunningServer) -> None:
    assert read_answer(small.send(chat_body(max_tokens=2, n=10)))[0] == 200


def test_a_body_that_does_not_come_is_408(small: RunningServer) -> None:
    status, _, body = read_answer(small.send(b'{"mod', **{"content-length": "100"}))
    assert (status, json.loads(body)["error"]["code"]) == (408, "body_timeout")


@pytest.mark.slow
def test_an_answer_that_takes_too_long_is_504_and_frees_its_slot() -> None:
    with run_in_thread(ServerSettings(request_seconds=0.5), slots=1) as running:
        status, _, body = read_answer(running.send(chat_body(max_tokens=1_000, n=16)))
        assert (status, json.loads(body)["error"]["code"]) == (504, "request_timeout")
        wait_until(lambda: not running.engine.scheduler.used and not running.operations.admitted)
        streaming = running.send(chat_body(max_tokens=1_000, n=16, stream=True)).makefile("rb").read()
        assert b"200 OK" in streaming
        assert b'"request_timeout"' in streaming


def test_the_event_loop_answers_while_constraints_are_compiled(
    small: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling runs in threads: requests that need none of it are answered meanwhile."""
    go_on, prepare = threading.Event(), small.engine._prepare
    loops = []

    def wait_and_prepare(*arguments: Any) -> Any:
        try:
            loops.append(asyncio.get_running_loop())
        except RuntimeError:
            loops.append(None)
        go_on.wait()
        return prepare(*arguments)

    monkeypatch.setattr(small.engine, "_prepare", wait_and_prepare)
    waiting = [small.send(chat_body(max_tokens=1)) for _ in range(3)]
    wait_until(lambda: len(loops) == 3)
    assert read_answer(small.send({}, "/v1/nothing"))[0] == 404
    go_on.set()
    assert [read_answer(one)[0] for one in waiting] == [200, 200, 200]
    assert loops == [None, None, None]

"""Log lines and metrics of requests: what they count, and that no prompt, schema or text is in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from constrain.base.errors import ArgumentError
from constrain.compilation.compile_caches import recent
from constrain.serving.application import create_app
from constrain.serving.request_log import RequestLog
from constrain.serving.request_record import RequestRecord
from tests.running_server import chat_body, json_format

SECRET = {"type": "object", "properties": {"hidden_name": {"enum": ["hidden_value"]}}, "required": ["hidden_name"]}


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def logged(served: FastAPI, lines: list[str]) -> Iterator[TestClient]:
    app = create_app(served.state.service.engine, log=RequestLog("json", lines.append))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def read_metric(client: TestClient, name: str) -> float:
    """Return the value of a metric; 0 if it is not there."""
    found = re.search(rf"^constrain_{re.escape(name)} (\S+)$", client.get("/metrics").text, re.M)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_request_is_counted_and_logged_without_its_contents(
    logged: TestClient, lines: list[str], is_streamed: bool
) -> None:
    body = chat_body("hidden_prompt", max_tokens=40, n=2, stream=is_streamed, **json_format(SECRET))
    if is_streamed:
        body["stream_options"] = {"include_usage": True}
    answer = logged.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200
    assert "hidden_value" in answer.text or is_streamed
    events = [json.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: {")]
    usage = events[-1]["usage"] if is_streamed else answer.json()["usage"]
    [line] = lines
    assert "hidden" not in line
    record = json.loads(line)
    assert (record["status"], record["endpoint"], record["texts"]) == (200, "/v1/chat/completions", 2)
    assert re.fullmatch(r"schema:[0-9a-f]{16}", record["constraint"])
    assert record["generated_tokens"] == usage["completion_tokens"]
    assert record["prompt_tokens"] == usage["prompt_tokens"]
    assert (record["first_token_seconds"] is not None) == is_streamed
    assert read_metric(logged, "generated_tokens_total") == usage["completion_tokens"]
    assert read_metric(logged, "prompt_tokens_total") == usage["prompt_tokens"]
    assert read_metric(logged, "time_to_first_token_seconds_count") == is_streamed
    assert read_metric(logged, "mask_seconds_count") == 2
    assert read_metric(logged, "compile_seconds_count") == 1
    assert read_metric(logged, 'requests_total{endpoint="/v1/chat/completions",status="200"}') == 1
    assert read_metric(logged, "running_texts") == read_metric(logged, "queued_texts") == 0
    assert read_metric(logged, "free_slots") == 32


def test_the_cache_of_constraints_is_counted(logged: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "most", 8)  # `tests/conftest.py` switches it off
    body = chat_body(max_tokens=20, **json_format({"enum": ["counted once"]}))
    assert logged.post("/v1/chat/completions", json=body).status_code == 200
    hits = read_metric(logged, "constraint_cache_hits_total")
    assert logged.post("/v1/chat/completions", json=body).status_code == 200
    assert read_metric(logged, "constraint_cache_hits_total") > hits


def test_refusals_are_counted_by_reason(logged: TestClient, lines: list[str]) -> None:
    assert logged.post("/v1/chat/completions", json=chat_body(nonsense=1)).status_code == 400
    reason = json.loads(lines[-1])["reason"]
    assert read_metric(logged, f'refusals_total{{reason="{reason}"}}') == 1
    assert logged.get("/nothing").status_code == 404
    assert read_metric(logged, 'requests_total{endpoint="other",status="404"}') == 1


def test_servers_do_not_share_metrics(served: FastAPI, logged: TestClient) -> None:
    logged.get("/v1/models")
    other = TestClient(create_app(served.state.service.engine))
    assert read_metric(logged, 'requests_total{endpoint="/v1/models",status="200"}') == 1
    assert read_metric(other, 'requests_total{endpoint="/v1/models",status="200"}') == 0


def test_formats() -> None:
    for name, pattern in {"json": r'\{"time": .*"id": "a".*\}\n', "text": r"[\d:]{8} 0 - other, 0.00 s, a\n"}.items():
        lines: list[str] = []
        RequestLog(name, lines.append).write_request(RequestRecord("a"))
        assert re.fullmatch(pattern, lines[0])
    RequestLog("none", lines.append).write_request(RequestRecord("a"))
    assert len(lines) == 1
    with pytest.raises(ArgumentError, match="xml"):
        RequestLog("xml")

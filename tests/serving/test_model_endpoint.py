"""`/v1/models`, `/health`, and errors that belong to no endpoint."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from openai.types import Model


def test_the_model_is_listed(client: TestClient) -> None:
    listed = client.get("/v1/models").json()
    assert listed["object"] == "list"
    [model] = [Model.model_validate(one) for one in listed["data"]]
    assert model.id == "demo"
    assert client.get("/v1/models/demo").json() == listed["data"][0]


def test_health(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}


ENDPOINTS = "This server has GET /v1/models, POST /v1/chat/completions, POST /v1/completions, POST /v1/responses."


@pytest.mark.parametrize(
    ("method", "path", "code", "said"),
    [
        ("GET", "/v1/models/other", "model_not_found", "This server has 'demo'."),
        ("POST", "/v1/embeddings", "unknown_endpoint", ENDPOINTS),
        ("GET", "/v1/files", "unknown_endpoint", ENDPOINTS),
        ("POST", "/chat/completions", "unknown_endpoint", "Did you mean POST /v1/chat/completions?"),
        ("POST", "/v1/v1/responses", "unknown_endpoint", "Did you mean POST /v1/responses?"),
        ("GET", "/v1/responses/resp_1", "unknown_endpoint", f"{ENDPOINTS[:-1]}, and stores nothing."),
        ("POST", "/v1/conversations", "unknown_endpoint", f"{ENDPOINTS[:-1]}, and stores nothing."),
    ],
)
def test_unknown_models_and_paths_are_404_in_the_shape_of_openai(
    client: TestClient, method: str, path: str, code: str, said: str
) -> None:
    answer = client.request(method, path)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (404, "not_found_error", code)
    assert said in error["message"]
    assert code == "model_not_found" or f"there is no endpoint {method} {path}" in error["message"]


def test_another_method_of_a_path_is_405_with_those_it_has(client: TestClient) -> None:
    """RFC 9110, section 15.5.6: the answer must have the header Allow."""
    answer = client.get("/v1/chat/completions")
    assert answer.status_code == 405 and answer.headers["allow"] == "POST"
    assert answer.json()["error"]["code"] == "method_not_allowed" and "Use POST." in answer.json()["error"]["message"]

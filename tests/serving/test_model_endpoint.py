"""`/v1/models`, `/health`, and errors that belong to no endpoint."""

from __future__ import annotations

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


def test_unknown_models_and_paths_are_404_in_the_shape_of_openai(client: TestClient) -> None:
    for path in ("/v1/models/other", "/v1/nothing"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["error"]["type"] == "not_found_error"

"""A server of the embedded model, shared by all tests: they run it without a port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("openai")

from fastapi import FastAPI
from fastapi.testclient import TestClient

import constrain
from constrain.serving.application import create_app
from constrain.serving.server_settings import ServerSettings


@pytest.fixture(scope="session")
def served() -> Iterator[FastAPI]:
    with constrain.Engine("demo") as engine:
        yield create_app(engine, ServerSettings(default_tokens=200))


@pytest.fixture(scope="session")
def client(served: FastAPI) -> Iterator[TestClient]:
    with TestClient(served, raise_server_exceptions=False) as one:
        yield one

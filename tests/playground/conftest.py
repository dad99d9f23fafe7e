"""Playgrounds over the embedded model, over a small one, and without any; they run without a port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi")

from fastapi import FastAPI
from fastapi.testclient import TestClient

import constrain
from constrain.playground.play_application import create_play_app
from constrain.serving.server_settings import ServerSettings


@pytest.fixture(scope="session")
def playing() -> Iterator[FastAPI]:
    """The playground of the embedded model."""
    with constrain.Engine("demo") as engine:
        yield create_play_app(engine, ServerSettings())


@pytest.fixture(scope="session")
def client(playing: FastAPI) -> Iterator[TestClient]:
    with TestClient(playing, raise_server_exceptions=False) as one:
        yield one


@pytest.fixture(scope="session")
def bare() -> Iterator[TestClient]:
    """A playground without a model."""
    with TestClient(create_play_app(None, ServerSettings()), raise_server_exceptions=False) as one:
        yield one

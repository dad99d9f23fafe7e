"""API keys: which are accepted, and that nothing but /health is answered without one."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given, strategies as st

import constrain
from constrain.base.errors import ArgumentError
from constrain.serving.api_keys import ApiKeys, read_key_lines, split_keys
from constrain.serving.application import create_app
from constrain.serving.server_settings import ServerSettings

PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40)


@given(st.lists(PRINTABLE, min_size=1, max_size=4), st.text(max_size=40))
def test_exactly_the_keys_are_accepted(keys: list[str], other: str) -> None:
    known = ApiKeys(keys)
    assert all(known.accepts(f"Bearer {key}") and known.accepts(f"bearer {key}") for key in keys)
    assert not known.accepts(keys[0]) and not known.accepts(f"Basic {keys[0]}") and not known.accepts(None)
    assert known.accepts(f"Bearer {other}") == (other.strip() in keys)


def test_without_keys_everything_is_accepted() -> None:
    assert not ApiKeys().is_required
    assert ApiKeys().accepts(None)


@pytest.mark.parametrize("key", ["", "short", "with space in it", "ümläute-ümläute", "line\nfeed-in-it"])
def test_malformed_keys_are_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ArgumentError) as found:
        ApiKeys(["good-key-1", key])
    assert "API key 2" in str(found.value)
    assert not key or key not in str(found.value)


def test_key_files() -> None:
    assert read_key_lines("# of the team\n\n  first-key-1  \nsecond-key-2\n", "keys") == ("first-key-1", "second-key-2")
    with pytest.raises(ArgumentError, match="keys contains no API key"):
        read_key_lines("# none\n", "keys")
    assert split_keys(" a-key-of-mine, ,another-key ") == ("a-key-of-mine", "another-key")


def test_only_health_is_answered_without_a_key(served: FastAPI) -> None:
    engine: constrain.Engine = served.state.service.engine
    client = TestClient(create_app(engine, ServerSettings(api_keys=("first-key-1", "second-key-2"))))
    for path in ("/v1/models", "/metrics", "/nothing", "/v1/chat/completions"):
        answer = client.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        error = answer.json()["error"]
        assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")
        assert client.get(path, headers={"authorization": "Bearer second-key-3"}).status_code == 401
    for path in ("/health", "/health/live", "/health/ready"):
        assert client.get(path).status_code == 200
    assert client.get("/v1/models", headers={"authorization": "Bearer second-key-2"}).status_code == 200

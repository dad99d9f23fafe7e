"""A refused request whose body is still being sent gets its answer rather than a reset of the connection."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI

from constrain.serving import operations_middleware
from constrain.serving.application import create_app
from constrain.serving.server_settings import ServerSettings
from tests.serving.live_server import serve_live

BODY = b" " * (24 << 20)
"""More than the buffers of both ends of a connection hold."""
PATH = "/v1/completions"


@pytest.fixture(scope="module")
def address(served: FastAPI) -> Iterator[str]:
    settings = ServerSettings(max_body_bytes=4_000, api_keys=("a-valid-key",))
    with serve_live(create_app(served.state.service.engine, settings)) as url:
        yield url.removesuffix("/v1")


def send_all_then_read(address: str, head: str, body: bytes) -> bytes:
    """Send a request without reading before its end, as many clients do; return the answer, up to the close."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:  # type: ignore[arg-type]
        lines = f"POST {PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a-valid-key\r\n{head}\r\n\r\n"
        connection.sendall(lines.encode() + body)
        received = b""
        while part := connection.recv(1 << 16):
            received += part
    return received


def test_a_body_of_a_stated_length(address: str) -> None:
    answer = send_all_then_read(address, f"content-length: {len(BODY)}", BODY)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error"]["code"] == "body_too_large"


@pytest.mark.parametrize("key", ["a-valid-key", "another"])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_an_ordinary_client(address: str, key: str, is_chunked: bool) -> None:
    pieces = [BODY[: 1 << 20]] * 24
    with httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=30) as client:
        for _ in range(2):  # the second request has a connection of its own, or the first one's
            answer = client.post(address + PATH, content=iter(pieces) if is_chunked else BODY)
            assert answer.status_code == (413 if key == "a-valid-key" else 401)
        assert client.get(address + "/health").status_code == 200


def test_discarded_body_size_is_bounded(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed while the client still sends, which it notices in one way or another."""
    monkeypatch.setattr(operations_middleware, "MOST_DISCARDED", 1 << 20)
    with pytest.raises(OSError):
        send_all_then_read(address, f"content-length: {len(BODY)}", BODY)


def test_a_client_that_waits_to_be_told_to_continue(address: str) -> None:
    """It sends no body after a refusal (RFC 9110, section 10.1.1), and the server does not wait for one."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:  # type: ignore[arg-type]
        head = f"POST {PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a-valid-key\r\nexpect: 100-continue\r\n"
        connection.sendall(f"{head}content-length: {len(BODY)}\r\n\r\n".encode())
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413 ")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass

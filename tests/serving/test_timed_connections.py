"""Connections whose clients neither send nor read are closed, and there is only a certain number of them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from constrain.serving.server_settings import ServerSettings
from tests.running_server import PATIENCE, RunningServer, chat_body, read_answer, run_in_thread, wait_until

HEAD = b"GET /health HTTP/1.1\r\nhost: x\r\n"
BRIEF = ServerSettings(body_seconds=0.3, stalled_seconds=0.3, max_connections=3)


@pytest.fixture(scope="module")
def running() -> Iterator[RunningServer]:
    with run_in_thread(BRIEF, slots=2) as one:
        yield one


def connect(running: RunningServer) -> socket.socket:
    wait_until(lambda: len(running.server.server_state.connections) < BRIEF.max_connections)
    return socket.create_connection(("127.0.0.1", running.port), PATIENCE)


def is_closed(connection: socket.socket) -> bool:
    """Wait until the server closes a connection; return whether it said nothing before."""
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"G", HEAD])
def test_a_head_that_does_not_come(running: RunningServer, sent: bytes) -> None:
    with connect(running) as connection:
        connection.sendall(sent)
        assert is_closed(connection)


def test_a_head_that_drips(running: RunningServer) -> None:
    """Each byte comes in time; all of them do not."""
    with connect(running) as connection:
        connection.sendall(HEAD)
        connection.settimeout(0.05)
        for _ in range(200):
            try:
                connection.sendall(b"a")
                assert connection.recv(1) == b""
                break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("the connection stays open")


def test_the_head_of_a_second_request(running: RunningServer) -> None:
    with connect(running) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert read_answer(connection)[0] == 200
        connection.sendall(HEAD)
        assert is_closed(connection)


def test_answers_may_take_longer(running: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a head ends with the head."""
    prepare, is_late = running.engine._prepare, threading.Event()

    def prepare_late(*arguments: Any) -> Any:
        is_late.wait(2 * BRIEF.body_seconds)
        return prepare(*arguments)

    monkeypatch.setattr(running.engine, "_prepare", prepare_late)
    with running.send(chat_body(max_tokens=2)) as connection:
        assert read_answer(connection)[0] == 200
        connection.sendall(HEAD + b"\r\n")
        assert read_answer(connection)[0] == 200


def test_a_client_that_reads_nothing(running: RunningServer) -> None:
    """What waits for it, and does not fit into the buffers of both ends, is dropped, and its slots are free."""
    running.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)  # of connections made from now on
    before = len(running.logged())
    data = json.dumps(chat_body(max_tokens=900, n=16, stream=True)).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.connect(("127.0.0.1", running.port))
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data) + data
        )
        wait_until(lambda: running.engine.scheduler.used)
        wait_until(lambda: len(running.logged()) > before)
        assert running.logged()[-1]["status"] == 499
        wait_until(lambda: not running.engine.scheduler.used and not running.operations.admitted)


def test_connections_beyond_the_limit(running: RunningServer) -> None:
    held = []
    for _ in range(BRIEF.max_connections):
        held.append(connect(running))
        wait_until(lambda: len(running.server.server_state.connections) == len(held))
    with socket.create_connection(("127.0.0.1", running.port), PATIENCE) as further:
        status, headers, body = read_answer(further)
    assert (status, headers["connection"]) == (503, "close")
    assert json.loads(body)["error"]["code"] == "too_many_connections"
    held.pop().close()
    with connect(running) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert read_answer(connection)[0] == 200
    for one in held:
        one.close()

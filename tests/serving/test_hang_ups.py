"""A client that hangs up frees its slots and its place in the queue, whatever its request waits for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from constrain.serving.server_settings import ServerSettings
from tests.running_server import RunningServer, chat_body, json_format, read_answer, run_in_thread, wait_until

ENDLESS = {"max_tokens": 4_000, "n": 8}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningServer]:
    with run_in_thread(ServerSettings(), slots=2, prefill_tokens=4) as one:
        yield one


def is_idle(running: RunningServer) -> bool:
    scheduler, operations = running.engine.scheduler, running.operations
    return not (scheduler.used or scheduler.has_work or operations.admitted or operations.active)


def wait_for_hang_up(running: RunningServer, connection: socket.socket) -> None:
    """Close a connection; wait until nothing of its request is left, and check its line in the log."""
    before = len(running.logged())
    connection.close()
    wait_until(lambda: is_idle(running) and len(running.logged()) > before)
    line = running.logged()[-1]
    assert (line["status"], line["reason"]) == (499, "client_closed")


def test_while_texts_are_generated(running: RunningServer) -> None:
    connection = running.send(chat_body(**ENDLESS))
    wait_until(lambda: running.engine.scheduler.used == 2)
    wait_for_hang_up(running, connection)


def test_while_texts_are_streamed(running: RunningServer) -> None:
    connection = running.send(chat_body(stream=True, **ENDLESS))
    assert b"200 OK" in connection.recv(100)
    wait_until(lambda: running.engine.scheduler.used == 2)
    wait_for_hang_up(running, connection)
    assert running.logged()[-1]["generated_tokens"] > 0


def test_while_the_prompt_is_fed(running: RunningServer) -> None:
    connection = running.send(chat_body("a b c d " * 200, max_tokens=1))
    wait_until(lambda: running.engine.scheduler.used == 1)
    wait_for_hang_up(running, connection)
    assert running.logged()[-1]["generated_tokens"] == 0


def test_while_others_occupy_the_slots(running: RunningServer) -> None:
    first = running.send(chat_body(**ENDLESS))
    wait_until(lambda: running.engine.scheduler.used == 2)
    second = running.send(chat_body(**ENDLESS))
    wait_until(lambda: running.engine.scheduler.queue)
    second.close()
    wait_until(lambda: not running.engine.scheduler.queue and running.operations.admitted == 8)
    assert running.engine.scheduler.used == 2
    wait_for_hang_up(running, first)


def test_while_a_constraint_is_compiled(running: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, prepare = threading.Event(), threading.Event(), running.engine._prepare

    def wait_and_prepare(*arguments: object) -> object:
        begun.set()
        go_on.wait()
        return prepare(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(running.engine, "_prepare", wait_and_prepare)
    connection = running.send(chat_body(**json_format({"type": "integer"})))
    begun.wait()
    assert running.operations.admitted == 1
    wait_for_hang_up(running, connection)
    go_on.set()


def test_while_the_body_is_sent(running: RunningServer) -> None:
    connection = running.send(b'{"model"', **{"content-length": "1000"})
    wait_until(lambda: running.operations.active == 1)
    wait_for_hang_up(running, connection)


def test_others_do_not_notice(running: RunningServer) -> None:
    alone = read_answer(running.send(chat_body(max_tokens=20, seed=3)))[2]
    leaving = running.send(chat_body(**ENDLESS))
    wait_until(lambda: running.engine.scheduler.used == 2)
    staying = running.send(chat_body(max_tokens=20, seed=3))
    wait_until(lambda: running.engine.scheduler.queue)
    leaving.close()
    status, _, body = read_answer(staying)
    assert status == 200
    assert body.split(b'"choices"')[1].split(b'"usage"')[0] == alone.split(b'"choices"')[1].split(b'"usage"')[0]
    wait_until(lambda: is_idle(running))

"""A server on a free port, in a thread, and clients that can hang up."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

import constrain
from constrain.serving.application import create_app
from constrain.serving.request_log import RequestLog
from constrain.serving.server_process import bind_socket
from constrain.serving.server_settings import ServerSettings
from constrain.serving.timed_connection import build_connection

PATIENCE = 60.0


class RunningServer:
    """engine, operations: of the server. lines: of its log."""

    def __init__(self, engine: constrain.Engine, settings: ServerSettings) -> None:
        self.engine, self.lines = engine, list[str]()
        self.app = create_app(engine, settings, RequestLog("json", self.lines.append))
        self.operations = self.app.state.operations
        self.listener = bind_socket("127.0.0.1", 0)
        self.port = self.listener.getsockname()[1]
        connection = build_connection(settings)
        self.server = uvicorn.Server(
            uvicorn.Config(self.app, http=connection, log_config=None, timeout_graceful_shutdown=5)
        )
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]}, daemon=True)

    def send(self, body: dict[str, Any] | bytes, path: str = "/v1/chat/completions", **headers: str) -> socket.socket:
        """Send a request, and return the socket from which its answer can be read."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        fields = {"host": "x", "content-type": "application/json", "content-length": str(len(data)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
        return connection

    def logged(self) -> list[dict[str, Any]]:
        """Return the lines of requests."""
        return [line for line in map(json.loads, self.lines) if line["event"] == "request"]


@contextmanager
def run_in_thread(settings: ServerSettings = ServerSettings(), **options: Any) -> Iterator[RunningServer]:
    """Run a server with an Engine of its own, until the end of the block."""
    with constrain.Engine("demo", **options) as engine:
        running = RunningServer(engine, settings)
        running.thread.start()
        wait_until(lambda: running.server.started)
        try:
            yield running
        finally:
            running.server.should_exit = True
            running.thread.join(PATIENCE)
            running.listener.close()


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds; fail if it never does."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, "the condition did not come true"
        time.sleep(0.005)


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer with a length."""
    file = connection.makefile("rb")
    status = int(file.readline().split()[1])
    headers = {}
    while line := file.readline().strip().decode("latin-1"):
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    return status, headers, file.read(int(headers["content-length"]))


def chat_body(text: str = "Describe a person.", **fields: Any) -> dict[str, Any]:
    """Return the body of a chat completion."""
    return {"model": "demo", "messages": [{"role": "user", "content": text}], **fields}


def json_format(schema: Any) -> dict[str, Any]:
    """Return the fields of a request for a JSON answer."""
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}

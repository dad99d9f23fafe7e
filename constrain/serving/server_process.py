"""Run a server in this process until SIGTERM or SIGINT: bind, serve, drain, stop.

    with bind_socket("127.0.0.1", 8000) as listener:
        run_engine("demo", ServerSettings(), listener, slots=32, log_format="json", on_start=print)

The first signal begins the drain: new requests are answered 503 and /health/ready says so, while running ones go on.
The server stops when the last one has ended, after `drain_seconds` at the latest, or at a second signal; what still
runs then is cut off with an error. Either way the exit code is 0; a thread that nothing can stop ends with the process.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import monotonic
from types import FrameType
from typing import Any

import uvicorn

from ..base.errors import ArgumentError, shorten_text
from ..compilation.compile_caches import recent
from ..generation.inference_engine import Engine
from .application import Addition, create_app
from .operations import Operations
from .request_log import RequestLog
from .server_settings import ServerSettings
from .timed_connection import build_connection

__all__ = ["bind_socket", "run_engine", "run_server"]

GIVING_UP = 5
"""Seconds for what was cut off to end, and for clients to close their connections."""
STUCK = 2 * GIVING_UP
"""Seconds after the drain until the process ends although a thread still works, which nothing can stop."""
SWITCH_SECONDS = 0.0005
"""`sys.setswitchinterval` of a server. The thread that steps the model waits so long for the interpreter lock each time
that a compilation holds it, many times a step; Python's default is 0.005.
"""


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket of an address.

    Raises
    ------
    ArgumentError
        If the address is not of this machine, in use, or needs rights that this user lacks.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(1024)
        except BaseException:
            listener.close()
            raise
    except (OSError, UnicodeError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ArgumentError(
            f"cannot listen on {shorten_text(host)}, port {port}: {why}",
            hint="Another program may use the port: give another --port, or 0 for any that is free.",
        ) from None
    return listener


def run_engine(
    model: Any, settings: ServerSettings, listener: socket.socket, *, slots: int, log_format: str,
    on_start: Callable[[], None], additions: Sequence[Addition] = (),
) -> None:  # fmt: skip
    """Make an Engine and serve it until a signal arrives; then drain, and close it.

    Parameters
    ----------
    model : object
        As for `constrain.Engine`.
    settings : ServerSettings
    listener : socket
        As `bind_socket` returns it. It is closed.
    slots : int
        Maximum number of texts in a batch.
    log_format : {"json", "text", "none"}
        How the lines of requests are written to stderr.
    on_start : callable
        Called once requests are accepted.
    additions : sequence of callable
        As for `create_app`.
    """
    with ExitStack() as stack:
        engine = stack.enter_context(Engine(model, slots=slots))
        stack.enter_context(recent.resized(settings.cached_constraints, settings.bound_cache(engine.vocabulary.size)))
        app = create_app(engine, settings, RequestLog(log_format), additions=additions)
        run_server(app, listener, on_start)


def run_server(app: Any, listener: socket.socket, on_start: Callable[[], None] = lambda: None) -> None:
    """Serve an application until a signal arrives; then drain.

    Parameters
    ----------
    app : FastAPI
        As `create_app` returns it.
    listener : socket
        As `bind_socket` returns it. It is closed.
    on_start : callable
        Called once requests are accepted.
    """
    config = uvicorn.Config(
        app, http=build_connection(app.state.operations.settings), log_config=None, access_log=False,
        timeout_graceful_shutdown=GIVING_UP, ws="none", server_header=False,
    )  # fmt: skip
    server = DrainingServer(config, app.state.operations, on_start)
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # modules, model and kernels: a full collection that looks at them stops everything for 100 ms
    try:
        server.run([listener])
    finally:
        server.end.cancel()
        gc.unfreeze()
        sys.setswitchinterval(before)
        listener.close()


def leave_process() -> None:
    """End the process with exit code 0, whatever its threads do: Python would wait for them."""
    sys.stderr.write("constrain: a thread did not end in time; the process ends without it\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class DrainingServer(uvicorn.Server):
    """A uvicorn server that drains before it stops."""

    def __init__(self, config: uvicorn.Config, operations: Operations, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self.operations, self.on_start = operations, on_start
        self.deadline = 0.0
        self.end = threading.Timer(STUCK, leave_process)
        self.end.daemon = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the drain, or end it."""
        self.deadline = 0.0 if self.operations.is_draining else monotonic() + self.operations.settings.drain_seconds
        self.operations.begin_drain()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests."""
        await super().startup(sockets)
        self.on_start()

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop."""
        operations = self.operations
        if operations.is_draining and (not operations.active or monotonic() >= self.deadline):
            operations.cut_tasks()
            self.end.start()
            return True
        return await super().on_tick(counter)

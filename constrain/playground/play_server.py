"""Run a server with the playground in this process: beside the interface for programs, or alone.

with bind_socket("127.0.0.1", 8000) as listener:
    serve_playground(model, ServerSettings(), listener, slots=16, log_format="none", on_start=print)
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Literal

from ..base.errors import check_choice
from ..compilation.compile_caches import recent
from ..generation.inference_engine import Engine
from ..serving import server_process
from ..serving.request_log import RequestLog
from ..serving.server_process import bind_socket
from ..serving.server_settings import ServerSettings
from .play_application import create_play_app
from .playground_routes import add_playground

__all__ = ["bind_socket", "serve_model_with_page", "serve_playground"]


def serve_model_with_page(
    model: Any, settings: ServerSettings, listener: socket.socket, *, page: Literal["playground", "none"], slots: int,
    log_format: str, on_start: Callable[[], None],
) -> None:  # fmt: skip
    """Serve a model as `server_process.run_engine` does, which explains the parameters.

    page: "playground" to serve the playground at /; "none" for nothing there.
    """
    check_choice("page", page, ("playground", "none"))
    additions = (add_playground,) if page == "playground" else ()
    server_process.run_engine(
        model, settings, listener, slots=slots, log_format=log_format, on_start=on_start, additions=additions
    )


def serve_playground(
    model: Any, settings: ServerSettings, listener: socket.socket, *, slots: int, log_format: str,
    on_start: Callable[[], None],
) -> None:  # fmt: skip
    """Serve the page alone until a signal arrives, see `server_process.run_engine` for the parameters.

    model: as for `constrain.Engine`; None for a page without one.
    """
    with ExitStack() as stack:
        engine = None if model is None else stack.enter_context(Engine(model, slots=slots))
        app = create_play_app(engine, settings, RequestLog(log_format))
        size = app.state.playground.vocabulary.size
        stack.enter_context(recent.resized(settings.cached_constraints, settings.bound_cache(size)))
        server_process.run_server(app, listener, on_start)

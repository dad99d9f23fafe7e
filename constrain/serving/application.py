"""`create_app`: the server as a FastAPI application.

uvicorn.run(create_app(constrain.Engine("demo"), ServerSettings()))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fastapi import FastAPI

from ..base.errors import check_type
from ..base.version import __version__
from ..generation.inference_engine import Engine
from .answer_service import AnswerService
from .chat_endpoint import build_chat_router
from .completion_endpoint import build_completion_router
from .health_endpoint import build_health_router
from .model_endpoint import build_model_router
from .operations import Operations
from .operations_middleware import OperationsMiddleware
from .request_errors import add_error_handlers
from .request_log import RequestLog
from .responses_endpoint import build_responses_router
from .server_settings import ServerSettings
from .unknown_endpoints import answer_unknown_endpoints

__all__ = ["Addition", "add_operations", "create_app", "open_app"]


Addition = Callable[[FastAPI], Collection[str]]
"""Adds routes to an application whose state is complete; returns the paths of those that need no key."""


def create_app(
    engine: Engine,
    settings: ServerSettings = ServerSettings(),
    log: RequestLog | None = None,
    *,
    additions: Sequence[Addition] = (),
) -> FastAPI:
    """Return the application that serves an Engine.

    Parameters
    ----------
    engine : Engine
        The model. The caller closes it after the server has stopped.
    settings : ServerSettings
    log : RequestLog, optional
        Where the lines of requests go; by default nowhere.
    additions : sequence of callable
        What else is served, such as the playground; see `Addition`.

    Returns
    -------
    fastapi.FastAPI
        ``app.state.service`` is its AnswerService, ``app.state.operations`` its Operations.

    Raises
    ------
    TypeError
        If an argument is of another type.
    """
    check_type("engine", engine, Engine, "give constrain.Engine(model)")
    check_type("settings", settings, ServerSettings, "give ServerSettings(...)")
    check_type("log", log, (RequestLog, type(None)), "give RequestLog(...)")
    operations = Operations(engine.scheduler, settings, log or RequestLog("none"))
    app = open_app(operations)
    app.state.service = AnswerService(engine, settings, operations)
    for build in (
        build_health_router, build_model_router, build_chat_router, build_completion_router, build_responses_router,
    ):  # fmt: skip
        app.include_router(build())
    add_operations(app, additions)
    return app


def open_app(operations: Operations) -> FastAPI:
    """Return an application without routes. ``app.state.operations`` is set; it ends with `add_operations`."""
    app = FastAPI(title="constrain", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.operations = operations
    add_error_handlers(app)
    answer_unknown_endpoints(app)
    return app


def add_operations(app: FastAPI, additions: Sequence[Addition]) -> None:
    """Add further routes to an application, and put the operations layer around all of them."""
    open_paths = {path for add in additions for path in add(app)}
    app.add_middleware(OperationsMiddleware, operations=app.state.operations, open_paths=open_paths)

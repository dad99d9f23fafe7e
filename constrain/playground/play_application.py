"""`create_play_app`: the playground alone, with or without a model.

uvicorn.run(create_play_app(None, ServerSettings()))
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI

from ..base.errors import UnsupportedError
from ..decoding.language_model_runner import LanguageModelRunner
from ..decoding.scheduler import Scheduler
from ..generation.inference_engine import Engine
from ..sampling.core.language_model import LanguageModel
from ..serving.application import add_operations, open_app
from ..serving.health_endpoint import build_health_router
from ..serving.operations import Operations
from ..serving.request_log import RequestLog
from ..serving.server_settings import ServerSettings
from ..vocabulary.vocabulary import Vocabulary
from .playground_routes import add_service
from .playground_service import PlaygroundService

__all__ = ["create_play_app"]


def create_play_app(engine: Engine | None, settings: ServerSettings, log: RequestLog | None = None) -> FastAPI:
    """Return the application that serves the page alone.

    Parameters
    ----------
    engine : Engine or None
        The model; the caller closes it. None: without one, for which neither torch nor transformers is needed.
    settings : ServerSettings
        The limits.
    log : RequestLog, optional
        Where the lines of requests go; by default nowhere.

    Returns
    -------
    fastapi.FastAPI
        ``app.state.playground`` is its PlaygroundService, ``app.state.operations`` its Operations.
    """
    scheduler = open_idle_scheduler() if engine is None else engine.scheduler
    app = open_app(Operations(scheduler, settings, log or RequestLog("none")))
    app.include_router(build_health_router())
    add_operations(app, [lambda app: add_service(app, PlaygroundService(app.state.operations, engine))])
    return app


def open_idle_scheduler() -> Scheduler:
    """Return a scheduler of no model. It counts the requests that run at the same time."""

    def refuse(_: Sequence[int]) -> LanguageModel:
        raise UnsupportedError("this playground runs without a model")

    return Scheduler(LanguageModelRunner(refuse, Vocabulary.bytes().size))

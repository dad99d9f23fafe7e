"""Requests of paths and methods that this server does not have: answered by 404 and 405 with what it has instead.

Clients of OpenAI's API have methods for many more endpoints. For those that read or delete stored answers, the error
says that nothing is stored; for a path that differs little from one that exists, as without the /v1 of the base URL, it
suggests that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..base.errors import shorten_text
from .request_errors import RequestError, describe_error

__all__ = ["answer_unknown_endpoints", "list_routes"]

STORED = ("/v1/responses/", "/v1/chat/completions/", "/v1/conversations")
"""Beginnings of the paths by which what was stored is reached."""
CLOSE = 0.8
"""Least similarity of a path to one that is suggested for it."""


def list_routes(routes: Iterable[Any]) -> Iterator[Any]:
    """Yield routes, and in place of a router that newer versions of FastAPI include as one route those that it has."""
    for route in routes:
        router = getattr(route, "original_router", None)
        yield from (route,) if router is None else list_routes(router.routes)


def answer_unknown_endpoints(app: FastAPI) -> None:
    """Make an application answer requests that no route matches in the shape of `request_errors`."""

    async def answer(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        status, body = describe_error(explain_unknown(request, error))
        return JSONResponse(body, status, headers=error.headers)

    app.add_exception_handler(HTTPException, answer)


def explain_unknown(request: Request, error: HTTPException) -> RequestError:
    """Return the error of a request that no route matches: of its method, if there is one for its path."""
    path = request.url.path
    cause = f"there is no endpoint {request.method} {shorten_text(path, 100)}"
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return RequestError(cause, hint=f"Use {allowed}.", status=405, code="method_not_allowed")
    if error.status_code != 404:
        return RequestError(str(error.detail), status=error.status_code, code="invalid_request")
    served = dict(list_endpoints(request.app))
    close = get_close_matches(path, served, 1, CLOSE)
    if close and not path.startswith(STORED):
        hint = f"Did you mean {served[close[0]]} {close[0]}?"
    else:
        shown = ", ".join(f"{method} {name}" for name, method in served.items())
        hint = f"This server has {shown}{', and stores nothing' if path.startswith(STORED) else ''}."
    return RequestError(cause, hint=hint, status=404, code="unknown_endpoint")


def list_endpoints(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Yield the paths of the programming interface and their methods, but for paths with parameters."""
    for route in list_routes(app.routes):
        path = getattr(route, "path", "")
        if path.startswith("/v1/") and "{" not in path:
            yield path, ", ".join(sorted(route.methods))

"""Errors of requests, and their answers in the shape that OpenAI's clients read.

    {"error": {"message": "...", "type": "invalid_request_error", "param": "/messages/0/role", "code": "..."}}

`param` is a JSON pointer (RFC 6901) into the body of the request. An error in a schema has the pointer of the schema,
followed by its own within the schema. Any other exception is answered by a 500 without details, and logged.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from ..base.errors import ConstrainError, LimitError, UnsatisfiableError, UnsupportedError
from .request_record import note_refusal

__all__ = ["RequestError", "add_error_handlers", "describe_error", "locate_errors"]

LOGGER = logging.getLogger("constrain.serving")
TOO_LONG = "the prompt is too long"
"""Words by which clients (LiteLLM, LangChain) recognise this error, to shorten the conversation and try again: their
exceptions have the message, and not always the code.
"""
RAISED_LIMIT = re.compile(r",? or raise Limits(?:\([^)]*\)|\.\w+)")
PYTHON_ONLY = re.compile(r"Limits[.(]|Style\(|Path\(|\b[a-z_]+=|\bconstrain\.\w|\bsys\.|(?<!\S)--\w|pip install")
"""What only callers from Python, and users of the command line, can do."""
TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class RequestError(ConstrainError):
    """A request that the server refuses.

    Parameters
    ----------
    cause, pointer, hint
        As for ConstrainError; pointer is that of the place in the body.
    status : int
        The HTTP status.
    code : str
        A short name of the error, for programs.
    """

    def __init__(
        self, cause: str, pointer: str | None = None, *, hint: str = "", status: int = 400, code: str = "invalid_value"
    ) -> None:
        super().__init__(cause, pointer=pointer, hint=hint)
        self.status, self.code = status, code


@contextmanager
def locate_errors(pointer: str) -> Iterator[None]:
    """Turn an error of constrain that is raised inside into a RequestError at this place of the body.

    The error's own pointer is relative to the place.
    """
    try:
        yield
    except RequestError:
        raise
    except ConstrainError as error:
        raise as_request_error(error, pointer) from error
    except (TypeError, ValueError) as error:
        raise RequestError(str(error), pointer) from error


def as_request_error(error: ConstrainError, pointer: str | None = None) -> RequestError:
    """Return an error of constrain as a RequestError at a place of the body."""
    if isinstance(error, RequestError):
        return error
    codes = {LimitError: "limit_exceeded", UnsupportedError: "unsupported", UnsatisfiableError: "unsatisfiable"}
    code = next((name for kind, name in codes.items() if isinstance(error, kind)), "invalid_value")
    if isinstance(error, LimitError) and error.is_of_context:
        code = "context_length_exceeded"
    place = pointer if error.pointer is None else (pointer or "") + error.pointer
    located = RequestError(error.cause, place, hint=select_hints(error.hint), code=code)
    located.source, located.position = error.source, error.position
    located.args = (located.render(),)
    return located


def select_hints(hint: str) -> str:
    """Return what a client can do of a hint: it sets no limits, arguments of Python or options of the command line."""
    sentences = re.split(r"(?<=[.!?])\s+", RAISED_LIMIT.sub("", hint))
    return " ".join(sentence for sentence in sentences if not PYTHON_ONLY.search(sentence))


def describe_error(error: BaseException) -> tuple[int, dict[str, Any]]:
    """Return the HTTP status and the body that answer an exception. One that is not constrain's is logged."""
    if isinstance(error, ConstrainError):
        found = as_request_error(error)
        note_refusal(found.code)
        kind = TYPES.get(found.status, "invalid_request_error" if found.status < 500 else "server_error")
        said = f"{TOO_LONG}: {found}" if found.code == "context_length_exceeded" else str(found)
        return found.status, make_body(said, kind, found.pointer, found.code)
    LOGGER.error("a request failed", exc_info=error)
    note_refusal("internal_error")
    return 500, make_body("the server failed to answer this request", "server_error", None, "internal_error")


def make_body(message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
    """Return the body of an error."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def add_error_handlers(app: FastAPI) -> None:
    """Make an application answer every exception in the shape of this module."""

    async def answer(request: Request, error: Exception) -> JSONResponse:
        app.state.operations.refused.note(getattr(request.state, "digest", ""), error)
        status, body = describe_error(error)
        return JSONResponse(body, status)

    app.add_exception_handler(ConstrainError, answer)
    app.add_exception_handler(Exception, answer)

"""Members of requests that all endpoints read alike: the model, and how the answer is streamed."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.errors import shorten_text
from .request_errors import RequestError
from .request_objects import RequestObject
from .server_settings import ServerSettings

__all__ = ["StreamOptions", "check_model", "make_model_error", "read_stream_options"]


@dataclass(frozen=True)
class StreamOptions:
    """How an answer is sent. shows_usage: whether a stream ends with the numbers of tokens."""

    is_streamed: bool
    shows_usage: bool


def check_model(body: RequestObject, settings: ServerSettings) -> None:
    """Raise RequestError unless the request names the model of this server."""
    name = body.require_text("model")
    if name != settings.model_name:
        raise make_model_error(name, "/model", settings)


def make_model_error(name: str, pointer: str | None, settings: ServerSettings) -> RequestError:
    """Return the error of a model that this server does not have. pointer: the place of its name in the body."""
    return RequestError(
        f"there is no model {shorten_text(repr(name))}", pointer, status=404, code="model_not_found",
        hint=f"This server has {settings.model_name!r}.",
    )  # fmt: skip


def read_stream_options(body: RequestObject) -> StreamOptions:
    """Return how an answer is sent."""
    is_streamed = bool(body.read_flag("stream"))
    given = body.read_object("stream_options")
    if given is None:
        return StreamOptions(is_streamed, False)
    if not is_streamed:
        raise body.refuse("stream_options", "stream_options needs a stream", hint='Give "stream": true.')
    shows_usage = bool(given.read_flag("include_usage"))
    for name in ("include_obfuscation", "continuous_usage_stats"):
        given.read_flag(name)
    given.finish()
    return StreamOptions(is_streamed, shows_usage)

"""The body of a request as JSON, within the limits of the server."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from fastapi import Request

from ..base.errors import shorten_text
from ..base.json_documents import find_deeper, parse_strictly, pointer_token
from .request_errors import RequestError
from .request_limits import check_request_size
from .server_settings import ServerSettings

__all__ = ["parse_body", "parse_text", "read_body", "receive_body"]

MOST_NESTING = 200
"""Deepest nesting of brackets in a body."""
JSON_TYPE = re.compile(r"application/(?:[\w!#$&^.+-]+\+)?json")
"""JSON, also with a suffix (RFC 6839, section 3.1), in lower case."""
CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.I)
"""The charset of a Content-Type, which JSON does not have, but clients send."""
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be half of a surrogate pair."""


async def read_body(request: Request, settings: ServerSettings) -> dict[str, Any]:
    """Return the JSON object of a request's body, parsed in a thread. Raise RequestError as the next two do."""
    return await asyncio.to_thread(parse_body, await receive_body(request, settings), settings)


async def receive_body(request: Request, settings: ServerSettings) -> bytes:
    """Return the bytes of a request's body. Raise RequestError if there are too many of them (413), or they are not
    JSON by their Content-Type (415).
    """
    check_content_type(request)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > settings.max_body_bytes:
            raise RequestError(
                f"the body has more than {settings.max_body_bytes:,} bytes", "", status=413, code="body_too_large"
            )
        parts.append(part)
    return b"".join(parts)


def check_content_type(request: Request) -> None:
    """Raise RequestError (415) unless the Content-Type is JSON; programs may leave it out, browsers may not. The body
    must not be compressed.

    A page of any site may send text, forms and bodies without a type to any server, and its browser asks this server
    for consent, which it does not give, only before it sends JSON (WHATWG Fetch, section 3.3, CORS protocol).
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise RequestError(
            f"the Content-Encoding of the request is {shorten_text(repr(encoding), 80)}",
            hint="Send the body as it is.", status=415, code="invalid_content_encoding",
        )  # fmt: skip
    given = request.headers.get("content-type", "")
    if not given and "origin" not in request.headers:
        return
    kind = given.partition(";")[0].strip().lower()
    if not JSON_TYPE.fullmatch(kind):
        raise RequestError(
            f"the Content-Type of the request is {shorten_text(repr(given), 80) if given else 'missing'}",
            hint="Send JSON as application/json.", status=415, code="invalid_content_type",
        )  # fmt: skip
    charset = CHARSET.search(given)
    if charset is not None and charset[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise RequestError(
            f"the charset of the request is {shorten_text(charset[1], 80)}", hint="Send JSON as UTF-8 (RFC 8259).",
            status=415, code="invalid_content_type",
        )  # fmt: skip


def parse_body(data: bytes, settings: ServerSettings) -> dict[str, Any]:
    """Return the JSON object of a request's body. In a thread: a body of 4 MiB takes up to a second.

    Raises
    ------
    RequestError
        If it is not a JSON object or exceeds a limit (400), names a member twice, or is nested too deeply.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"the body is not UTF-8: {error.reason} at byte {error.start}", "", code="invalid_json"
        ) from None
    value = parse_text(text, "the body", "")
    if not isinstance(value, dict):
        raise RequestError("the body is not a JSON object", "", code="invalid_json")
    check_request_size(value, settings)
    return value


def parse_text(text: str, what: str, pointer: str) -> Any:
    """Return the value of JSON text that is, or is in, the body of a request.

    what: the name of the text in messages. pointer: that of its place in the body. Raise RequestError if it is not
    JSON, names a member twice, is nested too deeply or has half of a surrogate pair.
    """
    if find_deeper(text, MOST_NESTING) >= 0:
        raise RequestError(f"{what} is nested deeper than {MOST_NESTING} levels", pointer, code="too_deep")
    try:
        value = parse_strictly(text, MOST_NESTING)
    except ValueError as error:
        raise RequestError(f"{what} is not JSON: {error}", pointer, code="invalid_json") from None
    if SURROGATE.search(text) and isinstance(value, (dict, list)):
        refuse_surrogates(value, pointer)
    return value


def refuse_surrogates(body: dict[str, Any] | list[Any], pointer: str) -> None:
    """Raise RequestError for a text with half of a surrogate pair: it is not a character, and has no UTF-8.

    pointer: that of the body.
    """
    parents: list[tuple[int, str]] = [(0, "")]  # of lists and objects: the number of the one around it, and its name
    waiting: list[tuple[int, Any]] = [(0, body)]
    while waiting:
        number, value = waiting.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, item in items:
            if has_surrogate(name):
                cause = "the name of a member has half of a surrogate pair, which is not a character"
                raise RequestError(cause, pointer + write_pointer(parents, number))
            if has_surrogate(item):
                cause = "the text has half of a surrogate pair, which is not a character"
                raise RequestError(cause, f"{pointer}{write_pointer(parents, number)}/{pointer_token(str(name))}")
            if isinstance(item, (dict, list)):
                parents.append((number, name if isinstance(name, str) else str(name)))
                waiting.append((len(parents) - 1, item))


def write_pointer(parents: list[tuple[int, str]], number: int) -> str:
    """Return the JSON pointer of a list or object. Pointers are written for errors only: names may be long."""
    tokens = []
    while number:
        number, name = parents[number]
        tokens.append(f"/{pointer_token(name)}")
    return "".join(reversed(tokens))


def has_surrogate(value: Any) -> bool:
    """Return whether a value is a text with half of a surrogate pair."""
    if not isinstance(value, str) or value.isascii():
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False

"""The operations layer around all endpoints: keys, request ids, deadlines, hang-ups, log lines and request metrics.

    request -> a record -> draining? key? length? -> endpoint, in a task of its own -> response with x-request-id
                                                     | client hangs up, deadline, end of the drain: cancelled

The endpoint's task is cancelled as soon as the client's connection is lost, whatever it waits for: a place in the
queue, a compilation, the next token. Cancelling abandons its texts, whose slots are free from the next step on.
Endpoints must not wait for a disconnect themselves.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from starlette.routing import Match

from ..base.work import use_budget
from .event_responses import write_event
from .paced_budget import PacedBudget
from .request_errors import make_body
from .request_record import RequestRecord, enter_record
from .unknown_endpoints import list_routes

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .operations import Operations

__all__ = ["OperationsMiddleware"]

OPEN_PATHS = frozenset({"/health", "/health/live", "/health/ready"})
"""Paths that need no key and are answered while the server drains."""
REQUEST_ID = re.compile(rb"[\w.:-]{1,128}")
MOST_DISCARDED = 64 << 20
"""Most bytes of the body of a refused request that are read and discarded before its connection is closed."""
CLIENT_CLOSED = 499
"""The status in logs and metrics of a request whose client hung up (nginx's convention)."""


class OperationsMiddleware:
    """An ASGI application around another one.

    Parameters
    ----------
    app : ASGI application
        The endpoints.
    operations : Operations
        The state that they share.
    open_paths : collection of str
        Further paths that need no key, such as those of a page's files.
    """

    def __init__(self, app: ASGIApp, operations: Operations, open_paths: Collection[str] = ()) -> None:
        self.app, self.operations = app, operations
        self.open_paths = OPEN_PATHS.union(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":  # the Engine compiles and encodes in the loop's default executor
            asyncio.get_running_loop().set_default_executor(self.operations.pool)
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        record = RequestRecord(given.decode() if REQUEST_ID.fullmatch(given) else uuid4().hex, scope["method"])
        if scope["method"] == "HEAD":  # as GET, without its body (RFC 9110, section 9.3.2)
            scope, send = {**scope, "method": "GET"}, drop_body(send)
        exchange = Exchange(record, receive, send)
        with self.operations.count_request():
            refusal = self.find_refusal(scope["path"], headers)
            try:
                if refusal is None:
                    await self.run_endpoint(scope, exchange)
                else:
                    await exchange.refuse(*refusal, discard_seconds=self.operations.settings.body_seconds)
            finally:
                record.endpoint = find_endpoint(scope)
                record.status = record.status or 500
                self.operations.finish_request(record)

    def find_refusal(self, path: str, headers: Mapping[bytes, bytes]) -> tuple[int, str, str] | None:
        """Return why a request is refused before it is read, as status, code and message; None if it is not."""
        operations, settings = self.operations, self.operations.settings
        if path in self.open_paths:
            return None
        if operations.is_draining:
            return 503, "shutting_down", "the server is shutting down"
        if not operations.keys.accepts(headers.get(b"authorization", b"").decode("latin-1")):
            message = "give an API key of this server in the header Authorization: Bearer KEY"
            return 401, "invalid_api_key", message
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > settings.max_body_bytes:
            return 413, "body_too_large", f"the body has more than {settings.max_body_bytes:,} bytes"
        return None

    async def run_app(self, scope: Scope, exchange: Exchange) -> None:
        """Run the endpoint."""
        await self.app(scope, exchange.receive, exchange.send)

    async def run_endpoint(self, scope: Scope, exchange: Exchange) -> None:
        """Run the endpoint in a task, until it ends, its client hangs up, or its time is over."""
        settings, record = self.operations.settings, exchange.record
        enter_record(record)
        budget = PacedBudget(settings.compile_work, self.operations.pool, lambda: self.operations.scheduler.has_work)
        with use_budget(budget):  # whatever the endpoint constructs, here or in threads
            task = asyncio.create_task(self.run_app(scope, exchange))
        reader = asyncio.create_task(exchange.read(settings.body_seconds))
        self.operations.tasks.add(task)
        try:
            await asyncio.wait({task, reader}, timeout=settings.request_seconds, return_when=asyncio.FIRST_COMPLETED)
            why = find_interruption(task, reader)
            if why is not None:
                await cancel_task(task)
                await exchange.interrupt(*why)
            elif task.cancelled():
                await exchange.interrupt(503, "shutting_down", "the server was stopped before the answer was complete")
            elif not exchange.was_hung_up:
                task.result()
        finally:
            budget.abandon()
            self.operations.tasks.discard(task)
            for one in (task, reader):
                await cancel_task(one)


def drop_body(send: Send) -> Send:
    """Return a `send` that sends the head of an answer only."""

    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_head


def find_endpoint(scope: Scope) -> str:
    """Return the path of the route of a request, or of what its route would be if it was refused before; "other" for
    none.
    """
    matching = (route for route in list_routes(scope["app"].routes) if route.matches(scope)[0] is not Match.NONE)
    route = scope.get("route") or next(matching, None)
    return getattr(route, "path", "other")


def find_interruption(
    task: asyncio.Task[None], reader: asyncio.Task[tuple[int, str, str]]
) -> tuple[int, str, str] | None:
    """Return why a running endpoint is to be interrupted, as status, code and message; None if it has ended."""
    if task.done():
        return None
    if reader.done():
        return reader.result()
    return 504, "request_timeout", "the answer was not complete within the time that this server allows"


async def cancel_task(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end; its own exception does not matter any more."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


class Exchange:
    """The messages of one request and its response.

    Attributes
    ----------
    record : RequestRecord
    was_hung_up : bool
        Whether the client's connection was lost before the response was complete.
    """

    def __init__(self, record: RequestRecord, receive: Receive, send: Send) -> None:
        self.record, self.client_receive, self.client_send = record, receive, send
        self.parts: asyncio.Queue[Message] = asyncio.Queue(1)
        self.was_hung_up = self.is_complete = self.is_stream = False

    async def read(self, body_seconds: float) -> tuple[int, str, str]:
        """Pass on the body as the endpoint reads it, and then wait for a disconnect. Return why it ended."""

        async def read_body() -> bool:
            while True:
                message = await self.client_receive()
                if message["type"] != "http.request":
                    return False
                await self.parts.put(message)
                if not message.get("more_body", False):
                    return True

        try:
            is_whole = await asyncio.wait_for(read_body(), body_seconds)
        except asyncio.TimeoutError:
            return 408, "body_timeout", f"the body did not arrive within {body_seconds:g} seconds"
        while is_whole and (await self.client_receive())["type"] != "http.disconnect":
            pass
        self.was_hung_up = not self.is_complete
        return CLIENT_CLOSED, "client_closed", "the client closed the connection"

    async def receive(self) -> Message:
        """Return the next part of the body, for the endpoint; a disconnect never comes, it is a cancellation."""
        return await self.parts.get()

    async def send(self, message: Message) -> None:
        """Pass on a message of the endpoint."""
        if message["type"] == "http.response.start":
            self.record.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-request-id", self.record.id.encode())]
            if self.record.status in (429, 503):
                headers.append((b"retry-after", b"1"))
            self.is_stream = any(
                name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers
            )
            message = {**message, "headers": headers}
        elif not message.get("more_body", False):
            self.is_complete = True
        await self.client_send(message)

    async def refuse(self, status: int, code: str, message: str, *, discard_seconds: float = 0.0) -> None:
        """Answer an error in place of the endpoint, and close the connection.

        discard_seconds: how long to read what is left of the body before that. A connection that is closed with unread
        bytes is reset, and a client that is still sending would see the reset rather than the answer.
        """
        self.record.reason = code
        body = json.dumps(make_error(status, code, message)).encode()
        headers = [
            (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]  # fmt: skip
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": True})
        if discard_seconds:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.discard_body(), discard_seconds)
        await self.send({"type": "http.response.body", "body": b""})

    async def discard_body(self) -> None:
        """Read the rest of the body, up to MOST_DISCARDED bytes."""
        left = MOST_DISCARDED
        while left > 0:
            message = await self.client_receive()
            if not message.get("more_body", False):  # the end of the body, or a disconnect
                return
            left -= len(message["body"])

    async def interrupt(self, status: int, code: str, message: str) -> None:
        """End an exchange whose endpoint was cancelled: by an error, or within a stream by an error event."""
        self.record.reason = code
        if status == CLIENT_CLOSED:
            self.record.status = CLIENT_CLOSED
        elif self.record.status == 0:
            await self.refuse(status, code, message)
        elif not self.is_complete:
            event = self.record.describe_interruption(make_error(status, code, message))
            data = write_event(event) if self.is_stream else ""
            with suppress(OSError):
                await self.send({"type": "http.response.body", "body": data.encode(), "more_body": False})


def make_error(status: int, code: str, message: str) -> dict[str, Any]:
    """Return the body of an error in the shape of OpenAI's."""
    kinds = {401: "authentication_error", 413: "invalid_request_error", 429: "rate_limit_error"}
    return make_body(
        message, kinds.get(status, "server_error" if status >= 500 else "invalid_request_error"), None, code
    )

"""`TimedConnection`: a connection that is closed when its client neither sends nor reads.

A client may send the head of a request byte by byte, or read nothing of its answer, for as long as it likes (slow loris
and its inverse); each such connection occupies a file descriptor. The limits of a request begin with its head, so
connections have these three of their own:

    connection -> head of a request within head_seconds -> request -> answer, of which something is read every
                | closed at once beyond max_connections                stalled_seconds
"""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from .request_errors import make_body
from .server_settings import ServerSettings

__all__ = ["TimedConnection", "build_connection"]

BODY = json.dumps(make_body("there are too many connections", "server_error", None, "too_many_connections")).encode()
TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(BODY), BODY)
)


class TimedConnection(H11Protocol):
    """A connection of HTTP/1.1, whose heads h11 limits to 64 KiB.

    Attributes
    ----------
    head_seconds : float
        Most seconds until the head of a request has arrived: of the first one since the connection was made, and of a
        further one since its first byte. Until that byte, uvicorn waits its `timeout_keep_alive`.
    stalled_seconds : float
        Most seconds for which bytes wait that the client does not read.
    max_connections : int
        Most connections of the server.
    """

    head_seconds: ClassVar[float]
    stalled_seconds: ClassVar[float]
    max_connections: ClassVar[int]
    head_timer: asyncio.TimerHandle | None = None
    stall_timer: asyncio.TimerHandle | None = None

    @property
    def awaits_head(self) -> bool:
        """Whether no request is being read or answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.write(TOO_MANY)
            transport.close()
        transport.set_write_buffer_limits(high=0)  # `pause_writing` whenever bytes wait for the client
        self.watch_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        super().data_received(data)
        self.watch_head()

    def watch_head(self) -> None:
        """Start the time of a head, or stop it when the head is there."""
        if not self.awaits_head:
            self.stop_head_timer()
        elif self.head_timer is None:
            self.head_timer = self.loop.call_later(self.head_seconds, self.close_without_head)

    def close_without_head(self) -> None:
        """Close a connection whose head did not arrive."""
        self.head_timer = None
        if self.awaits_head:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Wait for another request, the beginning of which may be there already."""
        super().on_response_complete()
        self.stop_head_timer()

    def pause_writing(self) -> None:
        """Start the time of a client that does not read."""
        super().pause_writing()
        if self.stall_timer is None:
            self.stall_timer = self.loop.call_later(self.stalled_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop it."""
        super().resume_writing()
        self.stop_stall_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        super().connection_lost(exc)
        self.stop_head_timer()
        self.stop_stall_timer()

    def stop_head_timer(self) -> None:
        """Stop the time of a head, if it runs."""
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None

    def stop_stall_timer(self) -> None:
        """Stop the time of a client that does not read, if it runs."""
        if self.stall_timer is not None:
            self.stall_timer.cancel()
            self.stall_timer = None


def build_connection(settings: ServerSettings) -> type[TimedConnection]:
    """Return the class of the connections of a server, as `uvicorn.Config(http=...)` takes it."""
    limits = {
        "head_seconds": settings.body_seconds, "stalled_seconds": settings.stalled_seconds,
        "max_connections": settings.max_connections,
    }  # fmt: skip
    return type("LimitedConnection", (TimedConnection,), limits)

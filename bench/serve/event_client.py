"""A small HTTP/1.1 client for event streams, which takes less CPU time than a general one.

    client = EventClient("127.0.0.1", port)
    answer = await client.post("/v1/completions", body)              # Answer
    answer = await client.post(path, body, hang_up_after=3)          # closes the connection after three events

It reads bodies with a length or in chunks, and server-sent events of one `data:` line each.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

__all__ = ["Answer", "EventClient"]

LONGEST = 1 << 24
"""Maximum number of bytes of a line."""


@dataclass(slots=True)
class Answer:
    """One answer. times: `perf_counter()` of each event with text. text: of all events, or the body. tokens: from
    `usage`. error: the reason if there is no answer, else "". was_cut: whether the client closed the connection.
    """

    status: int = 0
    begin: float = field(default_factory=perf_counter)
    end: float = 0.0
    times: list[float] = field(default_factory=list)
    text: str = ""
    tokens: int = 0
    finish: str = ""
    error: str = ""
    was_cut: bool = False


class EventClient:
    """One client: one connection, kept alive between requests."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes, hang_up_after: int | None = None) -> Answer:
        """Send a request. Return its answer, or the part before the client closed the connection."""
        answer = Answer()
        try:
            await self.exchange(path, body, hang_up_after, answer)
        except (OSError, EOFError, ValueError) as error:
            answer.error = f"{type(error).__name__}: {error}"
            self.close()
        answer.end = perf_counter()
        return answer

    async def exchange(self, path: str, body: bytes, hang_up_after: int | None, answer: Answer) -> None:
        """Send a request and fill its answer."""
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.host, self.port, limit=LONGEST)
        reader, writer = self.streams
        head = f"POST {path} HTTP/1.1\r\nhost: {self.host}\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        answer.status = int(start.split()[1])
        headers = dict(line.split(": ", 1) for line in lines if line)
        if "text/event-stream" in headers.get("content-type", ""):
            await self.read_events(reader, hang_up_after, answer)
        elif "content-length" in headers:
            take_body(answer, await reader.readexactly(int(headers["content-length"])))
        else:
            take_body(answer, b"".join([part async for part in read_chunks(reader)]))
        if answer.was_cut or headers.get("connection") == "close":
            self.close()

    async def read_events(self, reader: asyncio.StreamReader, hang_up_after: int | None, answer: Answer) -> None:
        """Read the events of a stream, at most until the client closes the connection."""
        parts, rest = list[str](), b""
        async for chunk in read_chunks(reader):
            *events, rest = (rest + chunk).split(b"\n\n")
            for event in events:
                if event.startswith(b"data: {"):
                    parts.append(take_event(answer, json.loads(event[6:])))
            if hang_up_after is not None and len(answer.times) >= hang_up_after:
                answer.was_cut = True
                break
        answer.text = "".join(parts)

    def close(self) -> None:
        """Close the connection."""
        if self.streams is not None:
            self.streams[1].transport.abort()
            self.streams = None


def take_event(answer: Answer, event: dict[str, Any]) -> str:
    """Add an event of a completion or a chat to an answer. Return its text."""
    if "error" in event:
        answer.error = f"error event: {event['error'].get('message')}"
    if event.get("usage"):
        answer.tokens = event["usage"]["completion_tokens"]
    text = ""
    for choice in event.get("choices", ()):
        text += choice.get("text") or choice.get("delta", {}).get("content") or ""
        answer.finish = choice.get("finish_reason") or answer.finish
    if text:
        answer.times.append(perf_counter())
    return text


def take_body(answer: Answer, body: bytes) -> None:
    """Set the text of an answer that is not a stream."""
    answer.text = body.decode("utf-8", "replace")


async def read_chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the chunks of a body (RFC 9112, section 7.1)."""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
